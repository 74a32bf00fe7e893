"""What the two generic estimators share."""

from ..utils._public import check_real


class GenericLinearModel:
    """Mixin: any loss, penalty and solver."""

    def _check_numbers(self):
        super()._check_numbers()
        for name in ("alpha", "l1_ratio", "step_decay"):
            check_real(getattr(self, name), name, low=0.0, closed="left")
