"""Displays of models and of what privacy costs: what is drawn is what was released."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from dpcd_sklearn import (
    DPLassoCD,
    DPLassoCV,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticCV,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.inspection import CoefficientDisplay, EpsilonDisplay, StrengthDisplay
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler
from dpcd_sklearn.testing import ReproducibleNoise

plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(120, 4))
Y = X @ [0.5, -0.3, 0.0, 0.1]
LABELS = RNG.integers(3, size=120)


def test_the_largest_coefficients_are_drawn_from_the_top():
    model = make_private_pipeline(BoundsScaler(), DPRidgeSkGD()).fit(X, Y)
    display = CoefficientDisplay.from_estimator(model, feature_names=list("abcd"), max_features=3)
    coef = model[-1].coef_
    largest = np.argsort(-np.abs(coef))[:3][::-1]
    (bars,) = display.bars_
    np.testing.assert_allclose([bar.get_width() for bar in bars], coef[largest])
    names = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert names == ["abcd"[j] for j in largest]
    assert "3 of 4" in display.ax_.get_title()


def test_each_class_has_its_bars_and_sparse_coefficients_are_read():
    model = DPLinearClassifier("multinomial", classes=[0, 1, 2], max_iter=2).fit(X, LABELS)
    display = CoefficientDisplay.from_estimator(model.sparsify())
    assert len(display.bars_) == 3
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["0", "1", "2"]


def test_intervals_are_drawn_beside_those_of_a_model_without_privacy():
    facts = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
    rng = np.random.default_rng(1)
    many = rng.uniform(-1, 1, (4_000, 4))
    target = many @ [0.5, -0.3, 0.0, 0.1] + 0.1 * rng.standard_normal(4_000)
    facts["random_state"] = ReproducibleNoise(0)
    model = DPLinearRegressor(inference=True, penalty=None, epsilon=20, **facts).fit(many, target)
    plain = DPLinearRegressor(inference=True, penalty=None, epsilon=np.inf).fit(many, target)
    display = CoefficientDisplay.from_estimator(model, beside=plain, level=0.9)
    assert display.bars_ == [] and len(display.errors_) == 2
    largest = np.argsort(-np.abs(model.coef_))[::-1]
    for drawn, fitted in zip(display.errors_, (model, plain), strict=True):
        points, _, (lines,) = drawn
        np.testing.assert_allclose(points.get_xdata(), fitted.coef_[largest])
        ends = np.array([segment[:, 0] for segment in lines.get_segments()])
        np.testing.assert_allclose(ends, fitted.confidence_interval(0.9)[largest], atol=1e-12)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["private", "without privacy"]
    display.intervals = display.intervals.copy()
    display.intervals[largest[-1]] = np.nan  # the largest is not told apart: last, and said so
    names = [tick.get_text() for tick in display.plot().ax_.get_yticklabels()]
    assert names[0] == f"x{largest[-1]} (no interval)" and names[-1] == f"x{largest[-2]}"
    display = CoefficientDisplay.from_estimator(DPRidgeSkGD().fit(X, Y), beside=Ridge().fit(X, Y))
    assert len(display.bars_) == len(display.errors_) == 1
    with pytest.raises(ValueError, match=r"shape \(1, 3\), not \(1, 4\)"):
        CoefficientDisplay.from_estimator(model, beside=Ridge().fit(X[:, :3], Y))


def test_bars_of_uneven_columns_are_in_units_that_can_be_compared():
    widths = np.array([1.0, 1e3, 1e-3, 10.0])
    bounds = [(-w, w) for w in widths]
    model = DPLinearRegressor(
        solver="cd", epsilon=100.0, feature_bounds=bounds, target_bounds=(-1, 1)
    ).fit(X * widths, Y)
    largest = np.argsort(-np.abs(model.coef_ * widths))[::-1]
    display = CoefficientDisplay.from_estimator(model)
    drawn = [bar.get_width() for bar in display.bars_[0]]
    np.testing.assert_allclose(drawn, (model.coef_ * widths)[largest], rtol=1e-6)
    assert "bounds" in display.ax_.get_xlabel()
    raw = CoefficientDisplay.from_estimator(model, units="raw")
    assert raw.ax_.get_xlabel() == "coefficient"
    assert {bar.get_width() for bar in raw.bars_[0]} == set(model.coef_.tolist())
    with pytest.raises(ValueError, match="units must be"):
        CoefficientDisplay.from_estimator(model, units="sd")
    with pytest.raises(ValueError, match="finite feature_bounds_"):
        CoefficientDisplay.from_estimator(DPLassoCD().fit(X, Y), units="bounds")


def test_an_inference_that_is_not_valid_is_drawn_without_intervals_and_says_so():
    facts = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
    model = DPLinearRegressor(inference=True, penalty=None, epsilon=0.1, **facts).fit(X, Y)
    assert not model.inference_valid_
    display = CoefficientDisplay.from_estimator(model)
    assert len(display.bars_) == 1 and display.errors_ == []
    assert "not valid" in display.ax_.get_title()


def test_no_legend_covers_a_bar():
    model = DPLinearClassifier("multinomial", classes=[0, 1, 2], max_iter=2).fit(X, LABELS)
    ax = CoefficientDisplay.from_estimator(model).ax_
    ax.figure.canvas.draw()
    legend, axes = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert legend.x0 >= axes.x1


def test_what_is_not_there_is_not_drawn():
    model = DPLassoCD(max_iter=2)
    with pytest.raises(NotFittedError):
        CoefficientDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="3 names for 4 features"):
        CoefficientDisplay.from_estimator(model.fit(X, Y), feature_names=list("abc"))


def test_scores_are_drawn_by_epsilon_beside_the_fit_without_noise():
    model = DPRidgeSkGD(alpha=1e-3, feature_bounds=(-1, 1))
    display = EpsilonDisplay.from_estimator(model, X, Y, X, Y, epsilons=[0.5, 100.0], n_repeats=2)
    assert display.scores.shape == (2, 2)
    assert display.plain_score > 0.99
    np.testing.assert_array_equal(display.line_.get_ydata(), np.median(display.scores, axis=1))
    assert display.ax_.get_ylabel() == "R²"
    assert model.epsilon == 1.0  # it was not changed
    charged = DPRidgeSkGD(accountant=PrivacyAccountant(1.0, 1e-5))
    with pytest.raises(ValueError, match="use plan, or public records"):
        EpsilonDisplay.from_estimator(charged, X, Y, X, Y)
    with pytest.raises(ValueError, match="epsilons"):
        EpsilonDisplay.from_estimator(model, X, Y, X, Y, epsilons=[-1.0])
    with pytest.raises(TypeError, match="has no budget"):
        EpsilonDisplay.from_estimator(Ridge(), X, Y, X, Y)


def test_strengths_are_drawn_where_a_fit_chose_among_some():
    stated = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
    model = DPLassoCV([1e-3, 1e-2, 0.1], epsilon=100.0, **stated)
    display = StrengthDisplay.from_estimator(model.fit(X, Y), feature_names=list("abcd"))
    path = model.strength_path_
    assert display.chosen == model.alpha_ and len(display.lines_) == 4
    for j, line in enumerate(display.lines_):
        np.testing.assert_array_equal(line.get_ydata(), path["coef"][:, j])
        assert line.get_xdata().tolist() == [1e-3, 1e-2, 0.1]
    assert "alpha, penalty l1" in display.axes_[1].get_xlabel()
    with pytest.raises(ValueError, match="state several strengths"):
        StrengthDisplay.from_estimator(DPLassoCD().fit(X, Y))
    several = DPLogisticCV(classes=[0, 1, 2], epsilon=1000.0, feature_bounds=(-1, 1)).fit(X, LABELS)
    display = StrengthDisplay.from_estimator(several)
    assert len(display.lines_) == 12 and display.axes_[1].get_xscale() == "log"
    assert "C, penalty" in display.axes_[1].get_xlabel()
