"""Solvers as users state them: a word, or one of these with parameters of its own."""

from numbers import Integral, Real

from ..penalties import RULES
from ..samplings import SAMPLING_WORDS, Sampling
from ..utils._compat import HasMethods, Interval, StrOptions
from ..utils._stated import Stated
from ..utils._typing import Auto

_AUTO = StrOptions({"auto"})
_COUNT_OR_NONE = [None, Interval(Integral, 1, 2**53, closed="both")]
_INNER = {"averaging": {"auto", "last", "tail", "periodic"}, "n_inner": _COUNT_OR_NONE}
_WEIGHTED = {"auto", "last", "tail", "weighted"}


def _of(averaging=None, **constraints):
    """The table of one solver's parameters."""
    table = {"step_size": [_AUTO, Interval(Real, 0, 1e15, closed="right")]}
    if averaging is not None:
        table["averaging"] = [StrOptions(averaging)]
    return table | constraints


_MOMENTUM = [_AUTO, Interval(Real, 0, 1, closed="left")]
_RATE = [_AUTO, Interval(Real, 0, 1, closed="right")]
_DECAY = [Interval(Real, 0, None, closed="left")]
_SHARE = Interval(Real, 0, 1, closed="neither")


class Solver(Stated):
    """What all solvers answer, be it their parameter or not; "auto" itself.

    Attributes
    ----------
    word : str
        The value of an estimator's `solver` that stands for it.
    """

    word = "auto"
    # What a solver has no parameter for.
    step_size = averaging = momentum = sampling = "auto"
    n_inner = block_size = None
    selection = "full"
    accounting = "composition"


class CD(Solver):
    """Proximal coordinate descent (DP-CD): one coordinate at a time.

    Parameters
    ----------
    sampling : {"uniform", "importance"}, default="uniform"
        Which coordinate an update moves: any, or one with a probability proportional to M_j.
    step_size : float in (0, 1e15] or "auto", default="auto"
        γ: coordinate j moves with the step γ / M_j, M_j its smoothness. Steps below 2 are safe.
        "auto" follows n, p, epsilon and delta.
    averaging : {"auto", "last", "tail", "periodic"}, default="auto"
        What `coef_` is: the last iterate ("last"); the mean of the last half of the iterates
        ("tail", "auto"); or the end of the papers' outer loop, which restarts from the mean of
        every `n_inner` iterates ("periodic"). Coefficients that end at zero are exactly zero in
        means too, but for "periodic".
    n_inner : int >= 1, default=None
        K, the number of updates between two restarts of "periodic"; None is a tenth of all.

    References
    ----------
    Mangold, Bellet, Salmon & Tommasi (2022). Differentially private coordinate descent for
    composite empirical risk minimization. ICML. Algorithm 1, mended.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.solvers import CD
    >>> DPLinearRegressor(penalty="l1", solver=CD(sampling="importance"))
    DPLinearRegressor(penalty='l1', solver=CD(sampling='importance'))
    """

    word = "cd"
    _parameter_constraints = _of(**_INNER | {"sampling": [StrOptions({"uniform", "importance"})]})

    def __init__(
        self,
        sampling: str = "uniform",
        *,
        step_size: Auto = "auto",
        averaging: str = "auto",
        n_inner: int | None = None,
    ):
        self.sampling = sampling
        self.step_size = step_size
        self.averaging = averaging
        self.n_inner = n_inner


class GCD(Solver):
    """Greedy coordinate descent (DP-GCD): the coordinates that promise most.

    Parameters
    ----------
    rule : {"gs-s", "gs-r", "gs-q"}, default="gs-r"
        Score of a coordinate: the slope of the objective ("gs-s"), the length of the proximal step
        ("gs-r"), or the root of twice the decrease that it promises ("gs-q"); each in the norm of
        M_j.
    block_size : int >= 1, default=1
        Number of coordinates that an update chooses and moves.
    selection : {"full", "lazy"}, default="full"
        How coordinates are chosen: by one random draw for each candidate, or by a few in all
        ("lazy"), with the same law at the same privacy loss and many times faster where features
        are many. Its **running time depends on records**: use it only where nobody who must not
        learn about them can time the fit. More than 6 coordinates at once are drawn in full.
    selection_share : float in (0, 1), default=0.8
        Share of the privacy loss (η²/8 against 1/(2 z²)) that goes to choosing coordinates; the
        rest goes to the partial derivatives.
    step_size : float in (0, 1e15] or "auto", default="auto"
        γ: coordinate j moves with the step γ / (λ M_j), λ a public bound on how much steeper than
        coordinates a set of `block_size` of them is.
    averaging : {"auto", "last", "tail", "periodic"}, default="auto"
        See :class:`CD`; "auto" is "last".
    n_inner : int >= 1, default=None
        See :class:`CD`.

    References
    ----------
    Mangold, Bellet, Salmon & Tommasi (2023). High-dimensional private empirical risk minimization
    by greedy coordinate descent. AISTATS. Algorithm 1, mended.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearClassifier
    >>> from dpcd_sklearn.solvers import GCD
    >>> DPLinearClassifier(solver=GCD("gs-s", block_size=4)).get_params()["solver__rule"]
    'gs-s'
    """

    word = "gcd"
    _parameter_constraints = _of(
        **_INNER
        | {
            "rule": [StrOptions(set(RULES))],
            "block_size": _COUNT_OR_NONE[1:],
            "selection": [StrOptions({"full", "lazy"})],
            "selection_share": [_SHARE],
        }
    )

    def __init__(
        self,
        rule: str = "gs-r",
        *,
        block_size: int | None = 1,
        selection: str = "full",
        selection_share: float = 0.8,
        step_size: Auto = "auto",
        averaging: str = "auto",
        n_inner: int | None = None,
    ):
        self.rule = rule
        self.block_size = block_size
        self.selection = selection
        self.selection_share = selection_share
        self.step_size = step_size
        self.averaging = averaging
        self.n_inner = n_inner


class SkGD(Solver):
    """Sketched gradient descent (DP-SkGD): a random block at a time, or all coordinates.

    Parameters
    ----------
    sampling : str or object of `dpcd_sklearn.samplings`, default="full"
        Which coordinates an update moves: all ("full"); one ("uniform", "importance"); a block of a
        fixed partition, drawn uniformly ("block") or with a probability proportional to its largest
        M_j ("block-importance"); any set of `block_size` coordinates ("nice"); or what an object
        with ``block_size`` and ``draw(generator, count)`` draws, see
        :class:`~dpcd_sklearn.samplings.Sampling`. One that fails in the fit, after a sound trial of
        ten draws, is replaced by its first ``block_size`` coordinates, with a UserWarning.
    block_size : int >= 1, default=None
        Number of coordinates in a set or block, the intercept being the last coordinate; None is
        the square root of their number, rounded up.
    step_size : float in (0, 1e15] or "auto", default="auto"
        γ: coordinate j moves with the step γ / (λ M_j), λ a public bound on how much steeper than
        coordinates the set is that moves. Without momentum steps below 2 are safe.
    momentum : float in [0, 1) or "auto", default="auto"
        Heavy ball in the (1 - momentum)-normalised form. "auto" follows n, p, epsilon and delta
        with full sampling, and is 0 otherwise.
    averaging : {"auto", "last", "tail", "periodic"}, default="auto"
        See :class:`CD`; "auto" is "last" for a hidden state.
    n_inner : int >= 1, default=None
        See :class:`CD`.
    accounting : {"composition", "hidden_state"}, default="composition"
        "composition" counts every update, and all iterates could be published. "hidden_state"
        counts the last iterate only. It needs full sampling, no momentum, an l2 penalty with
        alpha > 0 on everything, and works with the squared and the Huber loss; it looks for no
        scales of features.

    References
    ----------
    Maranjyan, Sadiev & Richtárik (2024). Differentially private random block coordinate descent.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.solvers import SkGD
    >>> DPLinearRegressor(solver=SkGD("block", block_size=3)).solver.block_size
    3
    """

    word = "skgd"
    _parameter_constraints = _of(
        **_INNER
        | {
            "sampling": [StrOptions(set(SAMPLING_WORDS)), HasMethods(["draw"])],
            "block_size": _COUNT_OR_NONE,
            "momentum": _MOMENTUM,
            "accounting": [StrOptions({"composition", "hidden_state"})],
        }
    )

    def __init__(
        self,
        sampling: str | Sampling = "full",
        *,
        block_size: int | None = None,
        step_size: Auto = "auto",
        momentum: Auto = "auto",
        averaging: str = "auto",
        n_inner: int | None = None,
        accounting: str = "composition",
    ):
        self.sampling = sampling
        self.block_size = block_size
        self.step_size = step_size
        self.momentum = momentum
        self.averaging = averaging
        self.n_inner = n_inner
        self.accounting = accounting


class CompGD(Solver):
    """Gradients in a few random directions (DP-CompGD, DP-CompMiniBatch).

    Parameters
    ----------
    n_directions : int >= 1, default=None
        m, the number of random directions; None is 4 log(p' + 1), rounded up, for p' coordinates
        with the intercept. More than p' are p', and so is every number with epsilon = inf.
    sampling_rate : float in (0, 1], default=1.0
        Probability of a record to be in a mini-batch; 1 is all records in every update.
    step_size : float in (0, 1e15] or "auto", default="auto"
        See :class:`SkGD`.
    step_decay : float in [0, inf), default=0.0
        The step of update t = 1, 2, ... is multiplied by t^(-step_decay).
    averaging : {"auto", "last", "tail", "weighted"}, default="auto"
        What `coef_` is: the last iterate, the mean of the last half of them ("tail", "auto"), or of
        all, weighted by their steps ("weighted").

    References
    ----------
    Huang, Lei & Kabán (2023). Optimization and learning with randomly compressed gradient updates.
    Neural Computation. Mended: each record's projection is clipped.

    Examples
    --------
    >>> from dpcd_sklearn.solvers import CompGD
    >>> CompGD(sampling_rate=0.1)
    CompGD(sampling_rate=0.1)
    """

    word = "compgd"
    _parameter_constraints = _of(
        _WEIGHTED, n_directions=_COUNT_OR_NONE, sampling_rate=_RATE[1:], step_decay=_DECAY
    )

    def __init__(
        self,
        n_directions: int | None = None,
        *,
        sampling_rate: Auto = 1.0,
        step_size: Auto = "auto",
        step_decay: float = 0.0,
        averaging: str = "auto",
    ):
        self.n_directions = n_directions
        self.sampling_rate = sampling_rate
        self.step_size = step_size
        self.step_decay = step_decay
        self.averaging = averaging


class SGD(Solver):
    """Stochastic gradient descent (DP-SGD): Poisson mini-batches, or all records.

    Parameters
    ----------
    sampling_rate : float in (0, 1], default=0.1
        Probability of a record to be in a mini-batch; 1 is all records in every update. Without
        noise every batch is all records.
    step_size : float in (0, 1e15] or "auto", default="auto"
        See :class:`SkGD`.
    step_decay : float in [0, inf), default=0.0
        See :class:`CompGD`.
    momentum : float in [0, 1) or "auto", default="auto"
        Heavy ball in the (1 - momentum)-normalised form.
    averaging : {"auto", "last", "tail", "weighted"}, default="auto"
        See :class:`CompGD`.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang (2016). Deep learning with differential
    privacy. CCS.

    Examples
    --------
    >>> from dpcd_sklearn.solvers import SGD
    >>> SGD(sampling_rate=0.01, momentum=0.9)
    SGD(momentum=0.9, sampling_rate=0.01)
    """

    word = "sgd"
    _parameter_constraints = _of(
        _WEIGHTED, sampling_rate=_RATE[1:], step_decay=_DECAY, momentum=_MOMENTUM
    )

    def __init__(
        self,
        sampling_rate: Auto = 0.1,
        *,
        step_size: Auto = "auto",
        step_decay: float = 0.0,
        momentum: Auto = "auto",
        averaging: str = "auto",
    ):
        self.sampling_rate = sampling_rate
        self.step_size = step_size
        self.step_decay = step_decay
        self.momentum = momentum
        self.averaging = averaging


class SVRG(Solver):
    """Full gradients now and then, and how mini-batches differ from them (DP-SVRG).

    Parameters
    ----------
    sampling_rate : float in (0, 1], default=0.1
        See :class:`SGD`.
    n_inner : int >= 1, default=None
        Number of updates between two full gradients; None is one pass, 1 / sampling_rate.
    step_size : float in (0, 1e15] or "auto", default="auto"
        See :class:`SkGD`.
    step_decay : float in [0, inf), default=0.0
        See :class:`CompGD`.
    averaging : {"auto", "last", "tail", "weighted"}, default="auto"
        See :class:`CompGD`.

    References
    ----------
    Johnson & Zhang (2013). Accelerating stochastic gradient descent using predictive variance
    reduction. NIPS.

    Examples
    --------
    >>> from dpcd_sklearn.solvers import SVRG
    >>> SVRG(n_inner=20)
    SVRG(n_inner=20)
    """

    word = "svrg"
    _parameter_constraints = _of(
        _WEIGHTED, sampling_rate=_RATE[1:], n_inner=_COUNT_OR_NONE, step_decay=_DECAY
    )

    def __init__(
        self,
        sampling_rate: Auto = 0.1,
        *,
        n_inner: int | None = None,
        step_size: Auto = "auto",
        step_decay: float = 0.0,
        averaging: str = "auto",
    ):
        self.sampling_rate = sampling_rate
        self.n_inner = n_inner
        self.step_size = step_size
        self.step_decay = step_decay
        self.averaging = averaging


class FrankWolfe(Solver):
    """Frank–Wolfe steps: nothing but vertices of an l1 ball is released.

    Its steps are its own, and `coef_` is the last iterate.

    Parameters
    ----------
    selection : {"full", "lazy"}, default="full"
        See :class:`GCD`.

    References
    ----------
    Talwar, Guha Thakurta & Zhang (2015). Nearly optimal private LASSO. NIPS.

    Examples
    --------
    >>> from dpcd_sklearn.solvers import FrankWolfe
    >>> FrankWolfe(selection="lazy")
    FrankWolfe(selection='lazy')
    """

    word = "frank-wolfe"
    _parameter_constraints = {"selection": [StrOptions({"full", "lazy"})]}

    def __init__(self, selection: str = "full"):
        self.selection = selection


class Newton(Solver):
    """Proximal Newton steps: a noisy curvature, and a few gradients in its geometry.

    Parameters
    ----------
    curvature_share : float in (0, 1) or "auto", default="auto"
        Share of the privacy loss (μ² of Gaussian DP) that goes to the matrix of second moments; up
        to 5 % of the rest go to the mean of rows and of their squared norms, all else to the
        gradients. "auto" is 0.2, and 0.15 of more than two classes.
    step_size : float in (0, 1e15] or "auto", default="auto"
        Steps are divided by the released curvature.
    momentum : float in [0, 1) or "auto", default="auto"
        Nesterov's: gradients are taken where this share of the last move would lead again.
    averaging : {"auto", "last", "tail"}, default="auto"
        The last model, or the mean of those of the last half of the steps ("tail", "auto"); with
        `inference` of a regression of all but the first fifth.

    Examples
    --------
    >>> from dpcd_sklearn.solvers import Newton
    >>> Newton(curvature_share=0.3)
    Newton(curvature_share=0.3)
    """

    word = "newton"
    _parameter_constraints = _of(
        {"auto", "last", "tail"}, curvature_share=[_AUTO, _SHARE], momentum=_MOMENTUM
    )

    def __init__(
        self,
        curvature_share: Auto = "auto",
        *,
        step_size: Auto = "auto",
        momentum: Auto = "auto",
        averaging: str = "auto",
    ):
        self.curvature_share = curvature_share
        self.step_size = step_size
        self.momentum = momentum
        self.averaging = averaging


SOLVERS = {solver.word: solver for solver in (CD, GCD, SkGD, CompGD, SGD, SVRG, FrankWolfe, Newton)}
