"""The help of the estimators: short signatures, parameters by theme, and texts that they share.

The short signature leaves parameters out that few need; ``__init__`` has all of them.
"""

import inspect
import textwrap

from ..utils._texts import entries_of, parameters_of, with_inherited_texts

# Parameters that few need: a signature that is read by people leaves them out.
_OF_FEW = {
    *("sampling", "block_size", "rule", "constraint", "penalize_intercept"),
    *("tol", "coef_path", "unknown_label"),
}


# ---- docstrings: entries of bases, and parameters by theme ---------------------------------------

# Attributes that are there if a parameter is.
_MADE_BY = {
    "classes": {"classes_"},
    "coef_path": {"coef_path_", "intercept_path_"},
    "inference": {"coef_cov_", "coef_std_", "inference_valid_", "outside_share_"},
    "target_bounds": {"sparse_coef_", "target_bounds_"},
}


def documented(cls):
    """The docstring of an estimator with the texts of its bases, and parameters by theme."""
    parameters = parameters_of(cls)
    absent = {"alpha_"} if cls._strength_name != "alpha" else set()
    if list not in cls._parameter_constraints.get(cls._strength_parameter, ()):  # it is one number
        absent |= {"alpha_", "strength_path_"}
    absent = absent.union(*(made for name, made in _MADE_BY.items() if name not in parameters))
    return in_two_tiers(with_inherited_texts(cls, absent))


# ---- parameters of docstrings: five to start with, then the rest by theme ------------------------

_THEMES = {
    "Start with": "alpha alphas C Cs epsilon feature_bounds target_bounds classes accountant",
    "The model": "loss quantile width penalty l1_ratio l1_ratios constraint fit_intercept "
    "penalize_intercept positive class_weight unknown_label",
    "The guarantee": "delta neighboring n_public",
    "Public facts": "feature_scale row_norm_bound",
    "The algorithm": "solver sampling block_size rule clip max_iter tol cv warm_start",
    "What is released beside": "inference coef_path",
    "The run": "verbose random_state n_threads",
}


class ShortSignature:
    """The first line of `help`: no types, parameters by theme, and none that few need.

    Whoever calls by it, as checks of scikit-learn do, passes parameters that there are.
    """

    def __get__(self, estimator, cls):
        _, *parameters = inspect.signature(cls.__init__).parameters.values()
        listed = " ".join([*_THEMES.values(), *(one.name for one in parameters)]).split()
        shown = [
            parameter.replace(annotation=parameter.empty)
            for parameter in sorted(parameters, key=lambda one: (one.kind, listed.index(one.name)))
            if parameter.name not in _OF_FEW
        ]
        return inspect.Signature(shown)


# Chapters of the guide, and what larger values do, each with its parameters.
_CHAPTERS = {
    "accountants": "accountant",
    "bounds": "feature_bounds target_bounds row_norm_bound clip",
    "classes_and_targets": "classes class_weight unknown_label",
    "epsilon": "epsilon delta",
    "guarantee": "n_public",
    "inference": "inference",
    "large_data": "verbose n_threads",
    "leaks": "cv",
    "persons": "neighboring",
    "scales": "feature_scale",
    "searches": "alpha alphas C Cs l1_ratio l1_ratios",
    "seeds": "random_state",
    "solvers": "loss penalty constraint fit_intercept penalize_intercept positive solver sampling "
    "block_size rule max_iter tol warm_start coef_path",
}
_GROWTH = {
    "A larger one draws coefficients further towards zero.": "alpha alphas",
    "A larger one is a weaker penalty.": "C Cs",
    "A larger one sets more coefficients to zero.": "l1_ratio l1_ratios",
    "A larger one means less noise and less privacy.": "epsilon",
    "A larger one means a little less noise; it should stay far below 1/n.": "delta",
    "Wider ones mean more noise, unless narrower ones are found.": "feature_bounds target_bounds",
    "A larger one makes its class be found more often.": "class_weight",
    "A larger one means less noise; above their number steps are short.": "n_public",
    "A larger one means shorter steps.": "feature_scale row_norm_bound",
    "A larger one moves more coordinates by each release.": "block_size",
    "A larger one cuts fewer gradients, and adds noise in proportion.": "clip",
    "A larger one comes nearer to the optimum, by noisier updates.": "max_iter",
    "A larger one stops earlier.": "tol",
    "A larger one prints more lines.": "verbose",
    "A larger one is faster on large data.": "n_threads",
}

_SYMBOLS = """
    **Symbols**: n is the number of records and p that of features. M_j is the smoothness of
    coordinate j, the largest curvature of the mean loss along it, which follows from bounds or
    scales. g is a record's gradient. σ is the deviation of the noise and z = σ / sensitivity. The
    privacy of a fit is that of telling N(0, 1) from N(μ, 1), with one μ (mu) for each epsilon and
    delta. A choice releases which of several items has the best noisy score; it can move the odds
    of two items by e^η at most.
"""


def in_two_tiers(doc):
    """Sort the parameters of a docstring by theme, say what growth does, and link the chapters."""
    head, mark, tail = (doc or "").partition("\n    Parameters\n    ----------\n")
    listed, end, rest = tail.partition("\n    Attributes\n")
    if not (mark and end):
        return doc
    texts = {}
    for name, text in entries_of(listed).items():
        chapter = _with(name, _CHAPTERS)  # a subclass of a user's may have other parameters
        if chapter and ":doc:" not in text:  # which the text of a base has
            text += f"\n\n        {f'{_with(name, _GROWTH)} See :doc:`/guide/{chapter}`.'.strip()}"
        texts[name] = text
    themes = {theme: [n for n in names.split() if n in texts] for theme, names in _THEMES.items()}
    if others := [name for name in texts if not _with(name, _CHAPTERS)]:
        themes["Others"] = others
    lines = [f"{theme}: `{'`, `'.join(names)}`. " for theme, names in themes.items() if names]
    intro = f"**Parameters by theme**, in this order. {''.join(lines)}Every default depends on "
    intro = textwrap.indent(textwrap.fill(f"{intro}public numbers alone.", 96), " " * 4)
    order = "\n".join(texts[name] for names in themes.values() for name in names)
    return f"{head}{_SYMBOLS}\n{intro}\n{mark}{order}\n{end}{rest}"


def _with(name, table):
    """The key of a table whose parameters have this one, or an empty string."""
    return next((key for key, names in table.items() if name in names.split()), "")
