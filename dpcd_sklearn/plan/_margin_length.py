"""How long the margins of classes should be, by derivatives of the log loss in their length.

Noise and narrow clips leave margins too long, whatever the public numbers say. With D = margin - b,
b the margins of the classes' shares alone, the loss of the margins b + f D is convex in f. Its
derivatives at a few public f are released, clipped record by record; a monotone fit of them and of
the penalty's is zero at the length that the records bear out. No margin gets longer. A clip cuts
most the derivatives of records that speak against long margins. Where the signal is clear a weight
that depends on a record's D and not on its class, as in Mallows' estimators, bounds them before.

Each record has one number an f, which is a function of the record and of what was released before.
So these are partial derivatives of a model with as many features: ``proofs/release_length.md``.
"""

import math

import numpy as np
from scipy.optimize import isotonic_regression

from ..loops._iterate import partials
from ..losses import SquaredLoss
from ..privacy.mechanisms._record_oracle import RecordOracle
from ..privacy.mechanisms._units import CoordinateUnits
from ._label_prior import could_count
from ._penalty import slopes_in_length
from ._release import Release
from ._shrinkage import is_shrunk, lacks_scale, moved_by, signal_of_rows, size_of_margins

# f, in lengths of the margins that public numbers keep.
_LENGTHS = (0.05, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0)


def length_share(request):
    """Share of μ² for the derivatives, by public numbers; 0 where they are not released."""
    wanted = (
        could_count(request)
        and is_shrunk(request)
        and not lacks_scale(request)
        and request.class_weight is None  # weighted shares are those of other records
        # enough to gain by a length and by the classes' shares
        and request.evidence >= 30 * request.n_classes
    )
    if not wanted or request.n_classes == 2:
        return 0.05 * wanted
    # n μ above 300 tells a length for less, which matters below a loud signal
    return 0.05 * min(max(300 / request.evidence, signal_of_rows(request) / 300), 1.0)


class Length(Release):
    """Derivatives of the log loss in the length of margins."""

    name = "length"
    count = len(_LENGTHS)

    def units(self, plan, n_samples):
        clip = _clip(plan.request) * math.sqrt(self.count)  # of each coordinate
        smoothness = np.ones(self.count)
        return CoordinateUnits(**self.paid(plan, n_samples), smoothness=smoothness, clip=clip)


LENGTH = Length()


def _clip(request):
    return 1.0 if request.evidence < 300 else 1.5


def with_length(plan, receipt, records, key, solution, known):
    """A solution whose margins have the length that released derivatives bear out, if any are.

    Parameters
    ----------
    plan : SolverPlan
    receipt : Receipt
        What pays for the derivatives is redeemed here.
    records : Arrays, or what has their methods
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.
    solution : Solution
    known : (coef, intercept)
        The model of the classes' shares alone.
    """
    if plan.part_of(LENGTH.name) is None:
        return solution
    request, base = plan.request, np.zeros(solution.coef.shape)
    base[..., -1] = np.reshape(known[1], base.shape[:-1])
    moved = np.atleast_2d(solution.coef - base)
    # Clips are of D over half its public size, or over 1 where that is larger. Short margins have
    # small derivatives, which noise for a clip of 1 would hide: on cancer cells at ε = 0.7 the
    # median accuracy is .63, that of the larger class, and .83 with a clip of their size.
    size = size_of_margins(plan, moved)
    unit = max(min(size / 2, 1.0), 1e-6)
    largest = _clip(request) * min(max(300 / signal_of_rows(request), 1.0), 2.0)  # D of weight 1
    public = known[1], moved / unit, unit * np.array(_LENGTHS), largest
    bounds, n_threads = plan.geometry.bounds, request.n_threads
    place = records.slopes(request.loss, *public, bounds, n_threads).place(None, n_threads)
    stated = {"loss": SquaredLoss(), "fit_intercept": False}
    _, oracle = LENGTH.opened(plan, receipt, place, key, RecordOracle, **stated)
    slopes = partials(oracle, np.zeros((LENGTH.count, LENGTH.count)), np.arange(LENGTH.count))
    # the penalty's are multiplied by what weights leave of the loss, if D are normal, of columns
    # whose spread is .4 of the size that bounds allow
    kept = math.erf(largest * unit / max(0.4 * math.sqrt(2) * size, 1e-6))
    of_penalty = kept * slopes_in_length(request, solution.coef, _LENGTHS)
    return moved_by(root(slopes + of_penalty / unit), solution, base)


def root(slopes):
    """The length at which a monotone fit of noisy derivatives is zero, or the end next to that."""
    return float(np.interp(0.0, isotonic_regression(slopes).x, _LENGTHS))
