"""The part of benchopt that these files need, for environments that have none."""

import itertools
import sys
import types


class _Base:
    """Parameters of a class, as benchopt reads them: every combination is one object."""

    parameters = {}

    def __init__(self, **params):
        defaults = {name: values[0] for name, values in self.parameters.items()}
        for name, value in (defaults | params).items():
            setattr(self, name, value)

    @classmethod
    def all(cls):
        for values in itertools.product(*cls.parameters.values()):
            yield cls(**dict(zip(cls.parameters, values, strict=True)))

    def skip(self, **objective):
        return False, None


def stand_in():
    """Make ``from benchopt import BaseSolver`` work where benchopt is not installed."""
    module = types.ModuleType("benchopt")
    module.BaseObjective = module.BaseDataset = module.BaseSolver = _Base
    sys.modules["benchopt"] = module
