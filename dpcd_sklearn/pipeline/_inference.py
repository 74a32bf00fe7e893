"""The inference of the model at the end of a pipeline, by the names of columns that reach it."""

from ..utils._compat import available_if
from ..utils._typing import ArrayLike
from ._joint_plan import names_at_the_end


class InferenceOfModel:
    """Tables and tests of the last step, of a pipeline that has one."""

    @available_if(lambda self: hasattr(self.steps[-1][1], "summary"))
    def summary(self, level: float = 0.95, method: str | None = None):
        """The table of the last step's coefficients, by the names of the columns that reached it.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
            Level of the intervals.
        method : {"fdr_bh", "fdr_by"}, default=None
            By which p-values are adjusted for their number.

        Returns
        -------
        summary : object
            As of the last step, which was fitted with ``inference=True``.

        Raises
        ------
        TypeError, ValueError
            If the level is not in (0, 1), there is no such method, or the fit was made without
            `inference`.
        """
        return self.steps[-1][1]._table(level, self._names_at_the_end(), method)

    @available_if(lambda self: hasattr(self.steps[-1][1], "wald_test"))
    def wald_test(self, R: ArrayLike, r: ArrayLike | None = None) -> tuple[float, float]:
        """Wald test of the last step's coefficients, by the names of the columns that reached it.

        Parameters
        ----------
        R, r : as of the last step

        Returns
        -------
        statistic, p_value : float

        Raises
        ------
        ValueError
            As of the last step.
        """
        last = self.steps[-1][1]
        return last._wald_test(R, r, last._coef_names(self._names_at_the_end()))

    @available_if(lambda self: hasattr(self.steps[-1][1], "bic_difference"))
    def bic_difference(self, R: ArrayLike) -> tuple[float, float]:
        """As of the last step, by the names of the columns that reached it.

        Parameters
        ----------
        R : as of the last step

        Returns
        -------
        difference, std : float

        Raises
        ------
        ValueError
            As of the last step.
        """
        last = self.steps[-1][1]
        return last._bic_difference(R, last._coef_names(self._names_at_the_end()))

    def _names_at_the_end(self):
        """Names of the columns that reach the last step, or None."""
        names = getattr(self.steps[-1][1], "feature_names_in_", None)
        return names_at_the_end(self) if names is None else names
