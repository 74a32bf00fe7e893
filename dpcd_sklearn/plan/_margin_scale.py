"""How much of its margins a classifier's last gradients bear out: post-processing, and no records.

Beyond a clip a residual counts by its sign alone, so a narrow clip lets margins grow until few
records lie within it, whatever the classes: of a share of .3 against .7 and a clip of .1 the fit
says .04 against .96. By how much follows from numbers that were released. Let margins m be normal,
of the mean and the covariance that the coefficients and the released curvature give them, and let
a record with margins m have its class by

    softmax(b + a (m - b)),    b the margins of the classes' shares alone.

Then the mean clipped gradient along the coefficients is a number that grows with a, and what was
released in the tail is one: the a at which both are equal is how far margins are borne out.
"""

import numpy as np

from ..loops._problem import moments_of_margins, normal_margins, softmax


def margin_scale(tail, loss, start, clip):
    """The share of margins that is borne out, at most 1.

    Parameters
    ----------
    tail : Tail
        Tail of a fit with a free intercept, its last coordinate.
    loss : Loss
        The logistic one or the multinomial one.
    start : ndarray of shape (n_outputs,)
        Margins of the classes' shares alone.
    clip : float
        Clip of a residual, in a row of typical length.
    """
    moments, coef = tail.second_moments / loss.curvature, tail.point[:, :-1]
    mean, covariance = moments_of_margins(moments, tail.point, True)
    with np.errstate(all="ignore"):
        centre = moments[:-1, -1] / moments[-1, -1]
        told = np.sum(coef * (np.outer(tail.gradient[:, -1], centre) - tail.gradient[:, :-1]))
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        return 1.0  # the noisy moments are not finite
    if len(mean) == 1:  # two classes: margins of none and of one, whose residual counts twice
        mean, covariance = np.append(0.0, mean), np.pad(covariance, ((1, 0), (1, 0)))
        start, clip = np.append(0.0, start), clip * 2**0.5
    moved = normal_margins(mean, covariance)
    residual = softmax(mean + moved)
    along = np.sum(residual * moved, axis=1, keepdims=True)
    # |p - e_y|, of each class y that a record may have
    length = np.sqrt(np.maximum(np.sum(residual**2, axis=1, keepdims=True) - 2 * residual + 1, 0))
    clipped = (moved - along) * np.minimum(1.0, clip / np.maximum(length, 1e-12))

    def expected(scale):
        of_classes = softmax(start + scale * (mean + moved - start))
        return np.mean(np.sum(of_classes * clipped, axis=1))

    if expected(1.0) <= told:
        return 1.0
    low, high = np.log(0.02), 0.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(np.exp(middle)) < told else (low, middle)
    return float(np.exp(high))
