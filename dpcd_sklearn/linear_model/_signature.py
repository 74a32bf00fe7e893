"""The signature that `help` and notebooks show first; that of ``__init__`` has all."""

import inspect

# Parameters that one solver alone has: a signature that is read by people leaves them out.
_OF_A_SOLVER = {
    *("sampling", "block_size", "rule", "selection_share", "selection", "sampling_rate"),
    *("n_directions", "n_inner", "curvature_share", "step_decay", "momentum", "accounting"),
    *("coef_bounds", "constraint", "radius", "averaging", "inference_share", "penalize_intercept"),
    *("step_size", "tol", "coef_path", "unknown_label"),
}


def short_signature(cls):
    """What `help` begins with: no types, and no parameters of single solvers.

    Whoever calls by it, as checks of scikit-learn do, passes parameters that there are.
    """
    _, *parameters = inspect.signature(cls.__init__).parameters.values()
    shown = [
        parameter.replace(annotation=parameter.empty)
        for parameter in parameters
        if parameter.name not in _OF_A_SOLVER
    ]
    return inspect.Signature(shown)
