"""The help of the estimators: short signatures, parameters by theme, and texts that they share.

The short signature leaves parameters out that few need; ``__init__`` has all of them.
"""

import inspect
import re
import textwrap

# Parameters that few need: a signature that is read by people leaves them out.
_OF_FEW = {
    *("sampling", "block_size", "rule", "constraint", "penalize_intercept"),
    *("tol", "coef_path", "unknown_label"),
}


def by_name(texts):
    """Texts of parameters, each of which begins ``name : type``, by their names."""
    listed = re.split(r"\n(?=    \S)", texts.rstrip())
    return {re.split(" : |, ", text)[0].strip(): text for text in listed}


# ---- parameters of docstrings: five to start with, then the rest by theme ------------------------

_THEMES = {
    "Start with": "alpha alphas C Cs epsilon feature_bounds target_bounds classes accountant",
    "The model": "loss quantile width penalty l1_ratio l1_ratios constraint fit_intercept "
    "penalize_intercept positive class_weight unknown_label",
    "The guarantee": "delta neighboring n_public",
    "Public facts": "feature_scale row_norm_bound",
    "The algorithm": "solver sampling block_size rule clip max_iter tol cv warm_start",
    "What is released beside": "inference coef_path",
    "The run": "verbose random_state n_threads",
}


class ShortSignature:
    """The first line of `help`: no types, parameters by theme, and none that few need.

    Whoever calls by it, as checks of scikit-learn do, passes parameters that there are.
    """

    def __get__(self, estimator, cls):
        _, *parameters = inspect.signature(cls.__init__).parameters.values()
        listed = " ".join([*_THEMES.values(), *(one.name for one in parameters)]).split()
        shown = [
            parameter.replace(annotation=parameter.empty)
            for parameter in sorted(parameters, key=lambda one: (one.kind, listed.index(one.name)))
            if parameter.name not in _OF_FEW
        ]
        return inspect.Signature(shown)


# Chapters of the guide, and what larger values do, each with its parameters.
_CHAPTERS = {
    "accountants": "accountant",
    "bounds": "feature_bounds target_bounds row_norm_bound clip",
    "classes_and_targets": "classes class_weight unknown_label",
    "epsilon": "epsilon delta",
    "guarantee": "n_public",
    "inference": "inference",
    "large_data": "verbose n_threads",
    "leaks": "cv",
    "persons": "neighboring",
    "scales": "feature_scale",
    "searches": "alpha alphas C Cs l1_ratio l1_ratios",
    "seeds": "random_state",
    "solvers": "loss penalty constraint fit_intercept penalize_intercept positive solver sampling "
    "block_size rule max_iter tol warm_start coef_path",
}
_GROWTH = {
    "A larger one draws coefficients further towards zero.": "alpha alphas",
    "A larger one is a weaker penalty.": "C Cs",
    "A larger one sets more coefficients to zero.": "l1_ratio l1_ratios",
    "A larger one means less noise and less privacy.": "epsilon",
    "A larger one means a little less noise; it should stay far below 1/n.": "delta",
    "Wider ones mean more noise, unless narrower ones are found.": "feature_bounds target_bounds",
    "A larger one makes its class be found more often.": "class_weight",
    "A larger one means less noise; above their number steps are short.": "n_public",
    "A larger one means shorter steps.": "feature_scale row_norm_bound",
    "A larger one moves more coordinates by each release.": "block_size",
    "A larger one cuts fewer gradients, and adds noise in proportion.": "clip",
    "A larger one comes nearer to the optimum, by noisier updates.": "max_iter",
    "A larger one stops earlier.": "tol",
    "A larger one prints more lines.": "verbose",
    "A larger one is faster on large data.": "n_threads",
}

_SYMBOLS = """
    **Symbols**: n is the number of records and p that of features. M_j is the smoothness of
    coordinate j, the largest curvature of the mean loss along it, which follows from bounds or
    scales. g is a record's gradient. σ is the deviation of the noise and z = σ / sensitivity. The
    privacy of a fit is that of telling N(0, 1) from N(μ, 1), with one μ (mu) for each epsilon and
    delta. A choice releases which of several items has the best noisy score; it can move the odds
    of two items by e^η at most.
"""


def in_two_tiers(doc):
    """Sort the parameters of a docstring by theme, say what growth does, and link the chapters."""
    head, mark, tail = (doc or "").partition("\n    Parameters\n    ----------\n")
    listed, end, rest = tail.partition("\n    Attributes\n")
    if not (mark and end):
        return doc
    texts = {}
    for name, text in by_name(listed).items():
        if chapter := _with(name, _CHAPTERS):  # a subclass of a user's may have other parameters
            text += f"\n\n        {f'{_with(name, _GROWTH)} See :doc:`/guide/{chapter}`.'.strip()}"
        texts[name] = text
    themes = {theme: [n for n in names.split() if n in texts] for theme, names in _THEMES.items()}
    if others := [name for name in texts if not _with(name, _CHAPTERS)]:
        themes["Others"] = others
    lines = [f"{theme}: `{'`, `'.join(names)}`. " for theme, names in themes.items() if names]
    intro = f"**Parameters by theme**, in this order. {''.join(lines)}Every default depends on "
    intro = textwrap.indent(textwrap.fill(f"{intro}public numbers alone.", 96), " " * 4)
    order = "\n".join(texts[name] for names in themes.values() for name in names)
    return f"{head}{_SYMBOLS}\n{intro}\n{mark}{order}\n{end}{rest}"


def _with(name, table):
    """The key of a table whose parameters have this one, or an empty string."""
    return next((key for key, names in table.items() if name in names.split()), "")


# ---- Texts of parameters and attributes that several estimators share, each written once ---------

TEXTS = {
    "words_of_presets": """\
        - "auto" is one public rule, that of all five estimators, from the problem, n, p, epsilon
          and delta: "newton" where records are many and dense columns few, unless a path of
          iterates is asked for; "gcd" for l1, and from l1_ratio = 0.5 on, where noise dominates;
          "skgd" otherwise; for constraints, which the generic estimators have, "compgd" or
          "frank-wolfe". With ``epsilon=inf`` it is scikit-learn's own solver, where that has the
          objective and nothing is asked of its steps.
        - "cd": proximal coordinate descent (DP-CD).
        - "gcd": greedy coordinate descent (DP-GCD).
        - "skgd": sketched gradient descent (DP-SkGD), of blocks or of all coordinates.
        - "newton": a few proximal Newton steps, by one noisy matrix of second moments and gradients
          that are clipped and noised in its geometry. As fast as a fit without noise, and best
          where records are many and features correlated; up to 4,000 features.
        - "sgd": stochastic gradient descent (DP-SGD).
        - "svrg": variance-reduced stochastic gradients (DP-SVRG).""",
    "words_of_generic_estimators": """\
        - "compgd": gradient descent in random directions (DP-CompGD); of mini-batches
          DP-CompMiniBatch. For the penalties None and "l2".
        - "frank-wolfe": Frank–Wolfe on the l1 ball, without a penalty; with an intercept it needs
          `penalize_intercept=True`.""",
    "several_strengths": """\

        Of several values, or with "auto", a grid that follows what was released, **one is chosen at
        no further charge** from what the Newton steps of this one fit release (see `alpha_` or
        `C_`, `strength_path_`). Where n, p and epsilon are too small for a choice, n mu / sqrt(p) <
        max(75, p), one strength is fitted, with a warning before the charge. Without noise it is
        chosen by cross-validation, as scikit-learn's LassoCV, RidgeCV, ElasticNetCV and
        LogisticRegressionCV do.""",
    "privacy_of_presets": """\
    **Privacy**

    - Guarantee: `coef_`, `intercept_` and every other fitted attribute are together (epsilon,
      delta)-differentially private under the `neighboring` relation; all iterates, and what is
      released before the first one, could be published at the same cost.
    - Neighbours: data sets that differ in one record, a row of X with its target and weight
      ("replace_one": another record instead; "add_remove": none instead, with a public `n_public`).
      Where a person has several rows, :class:`~dpcd_sklearn.Persons` protects the person.
    - Not protected: the number of records (under "replace_one"), shapes, column names, parameters
      and bounds, and the set of labels unless `classes` states it; running time and memory; scores
      on training records; errors about NaN, infinite values, shapes and targets that the loss does
      not have.
    - Assumptions: bounds and hyper-parameters were not chosen by looking at the records;
      no `ReproducibleNoise`; no step before this one learnt from the records without a charge.
    - Ledger: one entry for each fit with an `accountant`, written before a record is used.""",
    "clip_of_choices": """\
    clip : float > 0 or "auto", default="auto"
        Norm that M^(-1/2) g is clipped to by Newton steps, public, in the units of the target.
        "auto" follows n, p, epsilon and delta.""",
    "errors_of_fits": """\
    BudgetExceededError
        If the accountant's budget does not admit the fit; nothing was drawn.
    LedgerError
        If the ledger can't be written; nothing was drawn.
    TypeError, ValueError
        If a parameter or the input is invalid; nothing was charged.""",
} | by_name(
    """\
    strength_path_ : dict of arrays of length n_strengths
        Where a strength was chosen: all candidates ("penalty", "alpha" or "C", "l1_ratio"), their
        coefficients ("coef", "intercept"), and by how much the mean loss of each is estimated to
        exceed that of the chosen one ("excess_loss"), with the standard deviation of that by
        privacy noise ("excess_loss_std"). The estimate is of the fit's own clipped loss on these
        records. Released.
    alpha_, penalty_, l1_ratio_ : float, str, float
        What was chosen, where several were stated. Released.
    cv : int, splitter or None, default=None
        For ``epsilon=inf`` only: as of scikit-learn's estimator. With noise no record is set
        aside.
    l1_ratio : float in [0, 1] or list of them, default=0.15
        ρ for "elasticnet"; not used by the other penalties.
    constraint : {"l1_ball", "l2_ball"}, L1Ball or L2Ball, default=None
        Ball around zero that the vector of coefficients stays in, of radius 1 or, as an object of
        `dpcd_sklearn.penalties`, of a stated one: "l1_ball" for "compgd" and "frank-wolfe",
        "l2_ball" for "compgd".
    epsilon : float, default=1.0
        Privacy loss, in (0, inf]. ``float("inf")`` fits without noise and clipping; the result is
        not private.
    delta : float in (0, 1) or "auto", default="auto"
        Probability that the loss exceeds epsilon, roughly. "auto" is 1 / n_samples²; an error under
        "add_remove".
    neighboring : {"replace_one", "add_remove"} or Persons, default="replace_one"
        What neighbouring data sets are: see Privacy above. ``Persons(k)`` are those that differ in
        all records of one person, at most k, with k times the noise; ``Persons()`` in any number,
        whose ids `fit` is told as `groups`.
    n_public : int, default=None
        Public number of records for "add_remove", which normalises every sum. None otherwise.
    max_iter : float > 0 or "auto", default="auto"
        Number of passes; may be a fraction. A pass of "cd" and "skgd" moves every coordinate once
        on average. An update of "gcd" and "frank-wolfe" is a pass; one of "sgd" and "compgd" is
        its `sampling_rate` of a pass; an outer loop of "svrg" is two, one of
        "newton" a step. "auto" follows n, p, epsilon and
        delta.
    fit_intercept : bool, default=True
        Whether to fit an intercept: a coordinate that is clipped and paid for like any other.
    penalize_intercept : bool, default=False
        Whether penalties and constraints are on the intercept too; "frank-wolfe" needs that, or no
        intercept.
    feature_bounds : tuple (lo, hi), list of pairs or dict {column: (lo, hi)}, default=None
        Public bounds of the features, never from the data: a tuple of two scalars or arrays of
        shape (n_features,), a list of one pair a feature, or a dict of one pair for the name of
        every column of a data frame. Gives M_j. Values outside are clipped, in predictions too.
        Where n, p, epsilon and delta allow it narrower scales are **looked for within them**, so
        they may be wide; not beside `feature_scale` or for an inference: an intercept then centres
        features on their middle. Nothing is clipped with epsilon = inf.
    feature_scale : float, array of shape (n_features,) or "private", default=None
        Public root mean square of each feature; gives M_j in place of the bounds. "private" is for
        `feature_bounds` that may be far too wide: before the first update mean squares of the
        features within them, and their means where a free intercept makes that good, are
        **released**, for 1 to 10 % of the budget; they give M_j and centres. Where n, p, epsilon
        and delta allow none that tell more than the bounds, nothing is released, and with epsilon =
        inf neither. It asks for a descent: Newton steps, which look at rows already, refuse it, and
        "auto" takes none.
    row_norm_bound : float, default=None
        Public bound on the euclidean norm of a record; gives M_j if nothing else does, and a bound
        on the curvature of blocks. Longer records only fit worse, their gradients are clipped
        anyway. Without any of the three, the **scales are found in the records**, for a share of
        the budget: a centre and bounds for each column, bounds around zero, or one bound on rows,
        as n, p, epsilon and delta allow (one on rows if X is sparse; without an intercept nothing
        is centred). Where they allow nothing, there is a warning, and coefficients are zero; with
        a stated `clip` or `max_iter` features are taken to be of unit scale. State
        ``feature_scale=1.0`` if they are.
    target_bounds : tuple (lo, hi) or list of pairs, default=None
        Public bounds of the target, in its units; of several targets a tuple of two scalars or
        arrays of shape (n_outputs,), or a list of one pair a target. Values outside are clipped
        while fitting, and so are predictions. None finds them in the records too; ``(-1, 1)`` is
        unit scale. Where they may be far too wide, by public numbers, narrower ones or the median
        are looked for within them, for at most 10 % of the budget, unless you state a
        `feature_scale`.
    tol : float, default=1e-6
        For epsilon = inf only: stop when a sweep moves no coefficient by more than this share of
        the largest one; scikit-learn's solvers stop at measures of their own, as fine as this.
    coef_path : bool, default=False
        Whether to keep one iterate of every pass in `coef_path_` and `intercept_path_`. Iterates
        are released anyway, so it costs no privacy.
    warm_start : bool, default=False
        Whether to start from the coefficients of the earlier fit of this object, at a price of its
        own. It needs an accountant, and the earlier fit in the same ledger.
    verbose : int or bool, default=0
        Whether to print what is released, and how far the fit is: ten times, or a hundred from 2
        on, in one line that stays in place in terminals and notebooks. All of it is public.
    accountant : PrivacyAccountant, default=None
        Ledger that every fit is charged to.
    random_state : int, RandomState instance, ReproducibleNoise or None, default=None
        An int or a RandomState draws the public choices of a fit, such as the order of coordinates.
        Noise, noisy choices and batches of records come from the operating system all the same,
        so two fits differ. :class:`~dpcd_sklearn.testing.ReproducibleNoise` makes all of it
        reproducible, hence **not private**: it warns, and an accountant refuses it. With
        ``epsilon=inf`` nothing is secret, and an int determines the fit.
    n_threads : int >= 1 or None, default=None
        How many threads may read records, at most. None stands for as many as OpenMP admits, and
        outside the main thread for one. The result does not depend on it, bit for bit: what
        threads add up are integers. The limits of OpenMP (``OMP_NUM_THREADS``,
        threadpoolctl, the share of a worker process of joblib) lower it; joblib's worker threads
        and forked processes have one thread. It pays where a pass reads millions of cells: a pass
        has at most one thread for every 131,072 cells, which are records times columns read (an
        update of DP-CD reads two), or stored entries. Mini-batches, columns of sparse X and
        epsilon = inf have one thread.
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients, float32 if X was. Of several targets each has a fit of its own, with its
        share of the budget. Released.
    sparse_coef_ : CSR matrix of shape (1, n_features) or (n_outputs, n_features)
        The same, made when it is asked for: smaller where most of them are zero.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept. Released.
    coef_path_ : ndarray of shape (n_points, n_features) or (n_points, n_outputs, n_features)
        Iterates at the start, after each pass and at the end; only with `coef_path`. With "tail"
        averaging `coef_` is a mean of iterates, not the last of these. Released.
    intercept_path_ : ndarray of shape (n_points,) or (n_points, n_outputs)
        Intercepts of the same iterates. Released.
    feature_bounds_ : tuple (lo, hi) of ndarrays of shape (n_features,), or None
        What features are clipped to, in the fit and in predictions; None is no clip. Stated, or
        found and released.
    row_norm_bound_ : float or None
        Bound on the norm of records, stated or found and released; None is none.
    target_bounds_ : tuple (lo, hi) of floats or ndarrays of shape (n_outputs,), or None
        What the target is clipped to in the fit, stated or found and released, within the stated
        ones too; None is no clip.
    coef_cov_ : ndarray of shape (n_coefs, n_coefs)
        With `inference`: covariance of `coef_` and, last, of the intercept if there is one, by
        sampling and by the noise. NaN where it is not `inference_valid_`, and of coefficients that
        the released curvature does not tell apart, which `summary` names. Released.
    coef_std_, privacy_std_ : ndarrays of shape (n_coefs,)
        Standard errors, and the part of them that is the noise. Released. Without `inference`
        `privacy_std_` is there after Newton steps for one target, the squared loss and no penalty
        or a ridge: of first order, around the fit without noise that has the same bounds, the same
        clip of gradients and the same penalty. Where many records are at the clip, that is another
        than least squares within the bounds. It is NaN of coefficients that the released curvature
        does not tell apart, and of all where the last step was longer than six of it: the steps
        had not arrived. Other fits release no curvature, which it depends on: after them it is an
        AttributeError.
    inference_valid_ : bool
        Whether the noisy moments are safely positive in some direction at least, the steps arrived
        and, where bounds were found, hardly any record lies outside of them (1.2/sqrt(n) of all).
        False where public numbers rule intervals out: then the fit is that of ``inference=False``.
        Released.
    outside_share_ : float
        With `inference`, where bounds were found: the share of records that lie outside of them, by
        a noisy count. Released.
    solver_ : str
        The solver that ran, a word of `solver`, or "scikit-learn" where its own solver did, without
        noise. Public.
    n_iter_ : int
        T, the number of updates; public (with epsilon = inf, how many were needed).
    n_features_in_ : int
        Number of features. Public.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings. Public.
    privacy_spent_ : PrivacySpent
        Named tuple (epsilon, delta) of this fit. Public.
    privacy_event_ : FitEvent
        What was released, at which noise, the choices that find scales among it. Public.
    noise_multiplier_ : float
        z, the standard deviation of the noise over the sensitivity of a gradient release. Public.
    clip_ : float or ndarray of shape (n_outputs,)
        C that was used, in the units of each target. Public.
    class_weight : dict {label: weight}, default=None
        Public weights of the classes, 1 for a label that is left out; needs `classes`. They
        multiply weights of records before contributions are clipped, so those above 1 are refused
        where there is noise, with what to write. "balanced" is refused, because it counts the
        labels of the records: where the shares of the classes are public, weights of ``min(shares)
        / (4 * share)`` find rare classes nearly as often.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted. Public if `classes` states them, else published without noise.
    positive : bool, default=False
        Whether coefficients are kept from being negative; the intercept is free.
"""
)

# Blocks of the regressors that choose a strength.
_PARAMETERS_OF_CHOICES = (
    "epsilon", "delta", "neighboring", "n_public", "clip_of_choices", "fit_intercept",
    "positive", "feature_bounds", "feature_scale", "row_norm_bound", "target_bounds", "tol",
    "verbose", "accountant", "random_state", "n_threads", "cv",
)  # fmt: skip
_ATTRIBUTES_OF_CHOICES = (
    "coef_", "sparse_coef_", "intercept_", "alpha_", "strength_path_", "feature_bounds_",
    "row_norm_bound_", "target_bounds_", "solver_", "n_iter_", "n_features_in_",
    "feature_names_in_", "privacy_spent_", "privacy_event_", "noise_multiplier_", "clip_",
)  # fmt: skip
TEXTS["parameters_of_choices"] = "\n".join(TEXTS[name] for name in _PARAMETERS_OF_CHOICES)
TEXTS["attributes_of_choices"] = "\n".join(TEXTS[name] for name in _ATTRIBUTES_OF_CHOICES)
# Blocks of the regressors of means and quantiles.
TEXTS["solver_of_means"] = f"""\
    solver : str or object of `dpcd_sklearn.solvers`, default="auto"
        A word, or an object with parameters of its own.

{TEXTS["words_of_presets"]}"""
_PARAMETERS_OF_MEANS = [*_PARAMETERS_OF_CHOICES, "max_iter", "coef_path", "warm_start"]
_PARAMETERS_OF_MEANS.insert(2, "solver_of_means")
TEXTS["parameters_of_means"] = "\n".join(
    TEXTS[name] for name in _PARAMETERS_OF_MEANS if name not in ("positive", "cv")
)
TEXTS["attributes_of_means"] = "\n".join(
    TEXTS[name] for name in _ATTRIBUTES_OF_CHOICES if name not in ("alpha_", "strength_path_")
)
