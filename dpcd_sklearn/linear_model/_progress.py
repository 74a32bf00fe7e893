"""How far a fit is, for the console and for scikit-learn's callbacks: public numbers alone.

The number of updates was fixed before a record was read. Callbacks are given neither X and y nor
an estimator that was fitted so far, and none of them can stop a fit.
"""

import math
import sys

_STEPS = 100  # at most so many times something is told


class Progress:
    """Tells who listens to a fit.

    Parameters
    ----------
    model : estimator
        With `verbose`, and callbacks where scikit-learn has them.
    n_updates : int
        T; 0 where updates are not seen one by one.
    event : FitEvent
        What is released.
    """

    def __init__(self, model, n_updates, event):
        self._model, self._n_updates = model, n_updates
        self.every = max(1, math.ceil(n_updates / _STEPS))
        self._context = None
        self._lines = {0: 0, 1: 10}.get(int(model.verbose), _STEPS)
        self._printed = 0
        self._stepped, self._n_steps = 0, math.ceil(n_updates / self.every)
        if hasattr(model, "_skl_callbacks"):  # scikit-learn 1.9 on
            self._context = model._init_callback_context(max_subtasks=self._n_steps)
            self._context.call_on_fit_task_begin(estimator=model)
        self._say(f"{n_updates} updates, {event}\n" if n_updates else f"{event}\n")
        # files have a line for each; notebooks say that they are no terminal
        stream = sys.stdout
        is_terminal = self._lines and getattr(stream, "isatty", bool)()
        self._in_place = is_terminal or type(stream).__module__.startswith("ipykernel")

    @property
    def is_followed(self):
        """Whether anybody listens."""
        return self._context is not None or self._lines > 0

    def tell(self, n_done):
        """So many updates are done."""
        n_steps = self._n_steps if n_done == self._n_updates else n_done // self.every
        while self._context is not None and self._stepped < n_steps:
            step = self._context.subcontext(task_name="updates")
            step.call_on_fit_task_begin(estimator=self._model)
            step.call_on_fit_task_end(estimator=self._model)
            self._stepped += 1
        lines = self._lines * n_done // self._n_updates
        if lines > self._printed:
            self._printed = lines
            end = "\r" if self._in_place and n_done < self._n_updates else "\n"
            self._say(f"{n_done} of {self._n_updates} updates{end}")

    def end(self):
        """The model is fitted."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._model)

    def _say(self, text):
        if self._lines:
            print(f"{type(self._model).__name__}: {text}", end="", flush=True)
