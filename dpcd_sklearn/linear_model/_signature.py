"""The signature that `help` and notebooks show first; that of ``__init__`` has all."""

import inspect

# Parameters that few need: a signature that is read by people leaves them out.
_OF_FEW = {
    *("sampling", "block_size", "rule", "constraint", "penalize_intercept"),
    *("tol", "coef_path", "unknown_label"),
}


def short_signature(cls):
    """The first line of `help`: no types, and no parameters that few need.

    Whoever calls by it, as checks of scikit-learn do, passes parameters that there are.
    """
    _, *parameters = inspect.signature(cls.__init__).parameters.values()
    shown = [
        parameter.replace(annotation=parameter.empty)
        for parameter in parameters
        if parameter.name not in _OF_FEW
    ]
    return inspect.Signature(shown)
