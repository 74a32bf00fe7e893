"""The result of an audit, and how it reads."""

from dataclasses import dataclass

from ..utils._shown import Shown
from ._bounds import shown


@dataclass(frozen=True, repr=False)
class AuditResult(Shown):
    """Errors of the best guess of an audit, and what they prove.

    Attributes
    ----------
    verdict : {"contradiction", "passed", "inconclusive"}
        "passed" says that nothing contradicts the claim and that half the noise would have been
        noticed, with a power of 0.9 or more, of every kind of release.
    epsilon_lower : float
        Lower confidence bound on epsilon at `delta`, for a single record.
    mu_lower : float
        Lower confidence bound on the parameter of Gaussian DP.
    epsilon, delta : float
        The claim.
    mu : float or None
        The claim in Gaussian DP, if the estimator makes one.
    kind : str
        The kind of release that tells most against the claim, or least for it: what follows is of
        this one.
    error : float
        Share of wrong guesses.
    error_upper : float
        Upper confidence bound on the probability of a wrong guess.
    error_claimed : float
        The least that the claim allows.
    power : float or None
        Probability that the same audit contradicts the release with half of its noise; None if it
        is not known.
    n_runs : int
        Fits on each data set.
    confidence : float
        Probability that both lower bounds hold.
    releases : tuple of ReleaseResult
        One for each kind.
    unpaid : tuple of str
        Fitted attributes that tell of records and that no mechanism released; "`privacy_spent_`" if
        the event costs more than it says, "`privacy_event_`" if mechanisms release by another one.
    """

    verdict: str
    epsilon_lower: float
    mu_lower: float
    epsilon: float
    delta: float
    mu: float | None
    kind: str
    error: float
    error_upper: float
    error_claimed: float
    power: float | None
    n_runs: int
    confidence: float
    releases: tuple
    unpaid: tuple = ()

    @property
    def passed(self) -> bool:
        """Whether nothing contradicts the claim in an audit that would have noticed."""
        return self.verdict == "passed"

    @property
    def contradicts(self) -> bool:
        """Whether the claim is wrong, with the stated confidence."""
        return self.verdict == "contradiction"

    def __str__(self):
        verdict = {
            "contradiction": "CONTRADICTION to",
            "passed": "no contradiction to",
            "inconclusive": "INCONCLUSIVE, no contradiction to",
        }[self.verdict]
        head = f"{verdict} epsilon={self.epsilon:.4g} at delta={self.delta:.4g}"
        unpaid = f"; not paid for: {', '.join(self.unpaid)}" if self.unpaid else ""
        lines = [f"{head}, release by release (confidence {self.confidence:.4g} of all){unpaid}"]
        return "\n".join(lines + table_of(self.releases))

    __repr__ = __str__


_HEADS = ("release", "claim", "draws", "errors", "allowed", "power", "noticed", "verdict")


def table_of(releases):
    """Lines of a table: power is that against half the noise, noticed the largest share of it."""
    rows = [_HEADS]
    for one in releases:
        noticed = "none" if one.noticed_noise is None else f"{one.noticed_noise:.2f}"
        seen = (f"{one.error_upper:.3f}", f"{one.error_claimed:.3f}") if one.n_draws else ("", "")
        row = (one.kind, one.claim, f"{one.n_draws:,}", *seen)
        rows.append((*row, shown(one.power), noticed, one.verdict))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = {0, 1, len(_HEADS) - 1}
    return [
        "  ".join(
            text.ljust(width) if k in left else text.rjust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
