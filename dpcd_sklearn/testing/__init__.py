"""Tools for tests: reproducible noise, and a tape that shows what a fit depends on.

A private fit is a function of three things: the records, the answers that the privacy room
releases, and secret coins (who is in a batch, how many runs a search makes). A `Recording` of a
fit keeps the questions, answers and coins. A `Replay` on a neighbouring data set forces the same
answers and coins. What is asked and what is visible must then be the same to the bit: anything else
depended on a record by another way than through a release. And the exact answers, which are whole
numbers, may differ by no more than the sensitivity that the noise was scaled to.

A tape tests control flow, sensitivity, and what follows from answers. It holds coins fixed, so it
says nothing of amplification by sampling, and nothing of the law of the noise. It does not see
time, memory, files, or what C code prints.
"""

from ..utils._expected_checks import expected_failed_checks
from ..utils._stated import ReproducibleNoise
from ._tape import LeakError, Recording, Replay, replay, unpaid
from ._visible import fingerprint

__all__ = ["LeakError", "Recording", "Replay", "ReproducibleNoise", "expected_failed_checks"]
__all__ += ["fingerprint", "replay", "unpaid"]
