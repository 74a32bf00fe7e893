"""A recorder that is handed to a whole fit: its plan, and the transcript of its updates.

It rides on the fit's receipt, as a tape does. What a transcript holds was released; the records
that its likelihood is computed from are for the audit to know, which was given both data sets.
"""

from ..linear_model._private_linear_model import PrivateLinearModel
from ..linear_model._records_in_memory import RecordsInMemory
from ..pipeline._budget_of_step import last_step
from ..privacy.mechanisms._batch_oracle import IterateOracle
from ..privacy.mechanisms._curvature import CurvatureOracle
from ..privacy.mechanisms._oracle import Oracle
from ._recorder_of_curvature import RecordingCurvatureOracle
from ._recorders import RecordingIterateOracle, RecordingOracle
from ._released_answers import with_share_of_noise

# Numbers of the iterates of one transcript; a longer one is not kept.
_MOST_NUMBERS = 5e7


def is_recordable(model):
    """Whether its fits can be recorded: those of a pipeline with one budget are charged."""
    return isinstance(last_step(model), PrivateLinearModel) and not (
        hasattr(model, "named_steps") and hasattr(model, "planned_event")
    )


def recorded(model, recorder, fit):
    """Call `fit` of a clone that nobody else uses, while a recorder listens to it."""
    last = last_step(model)
    last._recorder = recorder
    try:
        return fit()
    finally:
        del last._recorder


def records_of(fitted, data):
    """Records as the fitted model's oracle was told to read them: its `scaled` takes a request."""
    X, y, *weights = data
    if last_step(fitted) is not fitted:
        X = fitted[:-1].transform(X)
    return RecordsInMemory.checked(last_step(fitted), X, y, weights[0] if weights else None)


class Transcript:
    """Keeps plan and updates of one fit.

    Parameters
    ----------
    noise : float, default=1.0
        The fit releases with this share of the noise that its plan says; a power of two.

    Attributes
    ----------
    updates : RecordingOracle, RecordingIterateOracle, RecordingCurvatureOracle or None
        None if a fit has several outputs, each with updates of its own, or too many numbers.
    """

    def __init__(self, noise=1.0):
        self.updates = None
        self._noise, self._plan = noise, None

    def __reduce__(self):
        raise TypeError("a transcript belongs to one fit: it is never copied or pickled")

    @property
    def plan(self):
        """The latest plan of the fit, with all of its noise."""
        return with_share_of_noise(self._plan, 1 / self._noise)

    def planned(self, plan):
        """The plan with the share of its noise; one in found scales has it already."""
        self._plan = plan if self._plan else with_share_of_noise(plan, self._noise)
        return self._plan

    def stand_before(self, mechanism, units):
        """The object that a solver sees in place of a mechanism."""
        if self.updates is not None or not self._is_kept():
            return mechanism  # what follows the updates is no part of the transcript
        if isinstance(mechanism, Oracle):
            self.updates = RecordingOracle(mechanism, len(units.smoothness))
        elif isinstance(mechanism, IterateOracle):
            sizes = units.n_outputs, len(units.smoothness)
            self.updates = RecordingIterateOracle(mechanism, *sizes)
        elif isinstance(mechanism, CurvatureOracle):
            self.updates = RecordingCurvatureOracle(mechanism)
        return mechanism if self.updates is None else self.updates

    def _is_kept(self):
        if not hasattr(self._plan, "outputs") or len(self._plan.outputs) > 1:
            return False
        problem = self._plan.problem
        size = problem.n_updates * problem.n_coordinates * problem.n_outputs
        return size <= _MOST_NUMBERS
