"""The base of private classifiers: public labels, and predictions."""

from abc import ABCMeta
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..losses import stated_loss
from ..plan._label_prior import found_intercepts, starts_at_shares
from ..utils._cells import (
    as_array,
    given_back,
    kind_of_values,
    numbers_of,
    on_host,
    read_labels,
    stated_labels,
)
from ..utils._compat import ClassifierMixin, attach_unique, cached_unique
from ..utils._input import read_input
from ..utils._public import check_real
from ..utils._typing import ArrayLike
from ._parameters import CLASSIFICATION, of
from ._prediction import log_probabilities_of, margins_of_model, probabilities_of
from ._private_linear_model import PrivateLinearModel


class PrivateClassifier(ClassifierMixin, PrivateLinearModel, metaclass=ABCMeta):
    """A loss of margins on labels that are public, or documented as published.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, float32 if X was; one row for two classes. Released.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Released.
    coef_path_ : ndarray of shape (n_points, n_features) or (n_points, n_classes, n_features)
        Iterates at the start, after each pass and at the end; only with `coef_path`. With "tail"
        averaging `coef_` is a mean of iterates, not the last of these. Released.
    intercept_path_ : ndarray of shape (n_points,) or (n_points, n_classes)
        Intercepts of the same iterates. Released.
    clip_ : float
        C that was used. Public.
    """

    loss = "auto"
    classes = None
    unknown_label = "first"

    _parameter_constraints = PrivateLinearModel._parameter_constraints | of(
        CLASSIFICATION, "classes", "class_weight", "unknown_label"
    )

    if TYPE_CHECKING:
        classes_: np.ndarray

    @property
    def _has_many_classes(self):
        return self._loss_word in ("auto", "multinomial")

    def _loss(self, n_outputs, target_half_width, share=0.1):
        word = self._loss_word
        if word in ("auto", "multinomial"):
            # of two classes the multinomial loss is the logistic one of their difference
            word = "logistic" if n_outputs == 1 else "multinomial"
        return stated_loss(word, self.loss, target_half_width)

    def _check_numbers(self):
        super()._check_numbers()
        if self.class_weight is not None:
            self._refuse_heavy(self._stated_weights())

    def _check_records(self, X, y):
        is_published = self.classes is None or y is None  # the latter is refused by name
        return super()._check_records(X, y if is_published else self._labels(y))

    def _labels(self, y):
        return read_labels(y, None if self.classes is None else self._stated_classes())

    def _encode_labels(self, y, sample_weight):
        if self.classes is None:
            # both publish the labels, and may raise or warn about them: documented
            y = _of_one_kind(y)
            labelled = attach_unique(y)  # which are looked for once
            check_classification_targets(labelled)
            counted = labelled if sample_weight is None else attach_unique(y[sample_weight > 0])
            classes = cached_unique(counted)
        else:
            classes = self._stated_classes()
        self._check_number_of(classes)
        refuses = self.classes is not None and self.unknown_label == "raise"
        if refuses and (numbers_of(y, classes) < 0).any():
            raise ValueError(  # of one fact: that there is such a label, never which, or where
                "y holds a label that is not among classes: state it too, or let such labels count "
                "as the first of classes with unknown_label='first'"
            )
        self.classes_ = classes
        return y, 1 if len(classes) == 2 else len(classes)

    def _stated_weights(self):
        """The weights of `class_weight`, in the order of `classes`."""
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight must be a dict of weights that are known beforehand: "
                f"{self.class_weight!r} would count the labels of the records, without noise. With "
                "public shares of the classes write class_weight={label: min(shares) / (4 * share),"
                " ...}, which finds rare classes nearly as often"
            )
        if self.classes is None:
            raise ValueError(
                "class_weight must have its labels among classes, which must be stated too: with "
                "class_weight they are not read from y"
            )
        classes = self._stated_classes().tolist()
        if strange := [label for label in self.class_weight if label not in classes]:
            raise ValueError(
                f"the labels of class_weight must be among classes, {strange!r} are not"
            )
        weights = np.ones(len(classes))
        for label, weight in self.class_weight.items():
            check_real(weight, f"class_weight[{label!r}]", low=0.0, closed="left")
            weights[classes.index(label)] = weight
        if not weights.any():
            raise ValueError("class_weight must be positive for at least one class")
        return weights

    def _refuse_heavy(self, weights):
        """A clip takes away what a weight above 1 gives, and Newton steps count no more than 2."""
        if (heaviest := float(weights.max())) <= 1 or np.isinf(self.epsilon):
            return
        scaled = zip(self._stated_classes().tolist(), (weights / heaviest).tolist(), strict=True)
        change = "multiply C" if "C" in self.get_params(deep=False) else "divide alpha"
        raise ValueError(
            f"class_weight must be at most 1 where there is noise, got {heaviest:g}: a record's "
            "contribution is clipped, which takes away what a larger weight gives (the same holds "
            "for sample_weight, of which no error may tell). Write "
            f"class_weight={dict(scaled)!r}, and for the same penalty {change} by {heaviest:g}"
        )

    def _weights_of(self, y, sample_weight):
        if self.class_weight is None:
            return sample_weight
        weights = self._stated_weights()[self._scale_target(y, None).astype(np.intp)]
        if sample_weight is None:
            return weights
        return np.minimum(weights * sample_weight, np.finfo(np.float64).max)

    def _start_at_shares(self, plan, receipt, place, key):
        """The model of the classes' shares, and where a fit starts: there if they are sure."""
        weights = None if self.class_weight is None else self._stated_weights()
        intercepts = found_intercepts(plan, receipt, place, weights, key)
        known = np.zeros((len(intercepts), plan.request.n_features)), intercepts
        return known, known if starts_at_shares(plan.request) else None

    def _stated_outputs(self, n_outputs):
        if n_outputs == 1 and self.classes is not None:
            classes = self._stated_classes()
            self._check_number_of(classes)
            n_outputs = len(classes)
        if n_outputs > 2 and not self._has_many_classes:
            raise ValueError(
                f"n_outputs must be 1 for loss={self.loss!r} (two classes), got {n_outputs}"
            )
        return n_outputs if n_outputs > 2 else 1

    def _stated_classes(self):
        """The labels of `classes`, each once, in order."""
        return stated_labels(self.classes)

    def _check_number_of(self, classes):
        if len(classes) == 2 or (len(classes) > 2 and self._has_many_classes):
            return
        if self.classes is not None:
            least = "two labels or more" if self._has_many_classes else "two labels"
            raise ValueError(f"classes must hold {least}, got {self.classes!r}")
        if len(classes) > 2:
            raise ValueError(
                f"Only binary classification is supported by loss={self.loss!r}, got "
                f"{len(classes)} classes. loss='auto' and 'multinomial' have more"
            )
        raise ValueError(
            "Only classification of two classes or more is supported, got 1 class. If the labels "
            "are public, state all of them as classes=[label, other label]"
        )

    def _scale_target(self, y, request):
        # a label outside `classes` counts as the first one: a fixed rule for each record
        return numbers_of(y, self.classes_, otherwise=0).astype(np.float64)

    def _set_coef(self, coef, intercept):
        self.coef_ = np.atleast_2d(coef)
        self.intercept_ = np.atleast_1d(intercept)

    def __repr__(self, N_CHAR_MAX=700):  # noqa: N803
        text = super().__repr__(N_CHAR_MAX)
        stated = self.get_params(deep=False).get("unknown_label")  # presets have no such parameter
        if self.classes is None or stated != "first":
            return text
        return f"{text[:-1]}, unknown_label='first')"  # what no error will tell

    def sparsify(self) -> Self:
        """Turn `coef_` into a CSR matrix, which takes less memory where most of it is zero.

        Returns
        -------
        self : object
            Predictions stay the same, and `fit` gives an array again.
        """
        check_is_fitted(self, "coef_")
        self.coef_ = csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Turn `coef_` back into an array.

        Returns
        -------
        self : object
        """
        check_is_fitted(self, "coef_")
        if issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Signed distance to the decision boundary, up to the norm of `coef_`.

        Features are clipped as they were in the fit, to `feature_bounds_`, here and in every
        prediction.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes positive for ``classes_[1]``; else the margin of every class.
        """
        return given_back(margins_of_model(self, X), X)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        margins = margins_of_model(self, X)  # first: it says when the model is not fitted
        chosen = margins > 0 if margins.ndim == 1 else np.argmax(margins, axis=1)
        return given_back(self.classes_[chosen.astype(np.intp)], X)

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probabilities of the classes, in the order of `classes_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return given_back(probabilities_of(margins_of_model(self, X)), X)

    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        """Logarithms of the probabilities of the classes, in the order of `classes_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return given_back(log_probabilities_of(margins_of_model(self, X)), X)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of the predictions on these records, not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        self._warn_of_score()
        found, y, sample_weight = self.predict(on_host(X)), on_host(y), on_host(sample_weight)
        name = "y or sample_weight"
        return read_input(accuracy_score, y, found, sample_weight=sample_weight, name=name)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._has_many_classes
        tags.classifier_tags.poor_score = True  # on the few records of scikit-learn's checks
        return tags


def _of_one_kind(y):
    """Labels that are published: objects that are numbers as an array of numbers."""
    if y.dtype.kind != "O":
        return y
    labels = y.tolist()
    kind = "objects" if None in labels else kind_of_values(labels)
    if kind == "objects":
        raise ValueError(
            "y holds objects that are not all strings or all numbers, and no classes are stated: "
            "convert y, as by y.astype(str), or state the public labels as classes=[...]"
        )
    return as_array(labels) if kind == "numbers" else y
