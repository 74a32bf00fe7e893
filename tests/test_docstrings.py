"""Shared parameters are described by the same words, checked by scikit-learn's own test.

A parameter that two of them have is compared unless it is named here, so a new one is compared.
"""

import itertools
import warnings

import pytest

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.samplings import BlockSampling, FullSampling, NiceSampling, SingleSampling
from dpcd_sklearn.utils._texts import with_inherited_texts

pytest.importorskip("numpydoc", reason="numpydoc, of the extra doc, reads the docstrings")

from sklearn.utils._testing import assert_docstring_consistency  # noqa: E402

PRESETS = (DPLassoCD, DPRidgeSkGD, DPLogisticGCD)
GENERIC = (DPLinearRegressor, DPLinearClassifier)

# A preset says what its one loss, penalty and solver make of a parameter, and a generic estimator
# what each of them does.
OF_A_PRESET = {
    *("alpha", "sampling", "block_size", "clip", "max_iter", "solver", "fit_intercept"),
    "inference",
}
OF_A_TYPE = OF_A_PRESET | {"loss", "l1_ratio", "rule", "penalize_intercept", "classes"}
# Units of the target, or of one; which losses have which solvers.
OF_A_TASK = {"loss", "alpha", "penalty", "constraint", "solver", "clip", "inference"}
# Classifiers' attributes have rows, and other words for them.
SHAPED = {"clip_", "coef_", "intercept_", "coef_path_", "intercept_path_"}

GROUPS = [
    (PRESETS + GENERIC, OF_A_TYPE | OF_A_TASK, SHAPED | {"noise_multiplier_", "classes_"}),
    (PRESETS, OF_A_PRESET, SHAPED),
    (GENERIC, OF_A_TASK, SHAPED),
    ((BlockSampling, FullSampling, NiceSampling), {"block_size"}, {"block_size"}),
    ((SingleSampling, NiceSampling), set(), {"block_size"}),
]


@pytest.mark.parametrize(("objects", "without", "without_attributes"), GROUPS)
def test_the_same_words_describe_what_is_shared(objects, without, without_attributes):
    """All pairs: of more than two at once only what all of them have would be compared."""
    for pair in itertools.combinations(objects, 2):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Checking was skipped")
            assert_docstring_consistency(
                list(pair),
                include_params=True,
                exclude_params=sorted(without) or None,
                include_attrs=True,
                exclude_attrs=sorted(without_attributes) or None,
            )


def test_what_the_guarantee_rests_on_is_never_left_out():
    names = "epsilon delta neighboring n_public accountant random_state n_threads".split()
    for objects, without, _ in GROUPS[:3]:
        assert without.isdisjoint(names)
        assert all(f"\n    {name} : " in each.__doc__ for each in objects for name in names)


def test_texts_are_inherited_where_python_strips_indentation():
    """Python 3.13 and later do; help() had names of texts instead of the texts there."""
    for indent in ("", "    ", "        "):
        doc = f"A model.\n\n{indent}Attributes\n{indent}----------\n{indent}coef_ : float\n{indent}"
        base = type("Base", (), {"__doc__": doc})
        found = with_inherited_texts(type("Model", (base,), {"__doc__": "Another."}))
        assert found.split("\n")[2:5] == ["    Attributes", "    ----------", "    coef_ : float"]
