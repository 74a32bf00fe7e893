"""Categories as numbers."""

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from ..utils._typing import ArrayLike
from ._category_encoder import CategoryEncoder


class DPOrdinalEncoder(OneToOneFeatureMixin, CategoryEncoder):
    r"""Encode categories as numbers 0, 1, ...; learnt categories are released privately.

    Each column stays one column: stated categories are numbered in the order in which they are
    stated, learnt ones with numbers before words, each sorted. Whatever is none of them has the
    number after the last.

    **Privacy**

    $guarantee
    - Charged: one release of the counts of all categories of all learnt columns together, before a
      record is used. Categories that are stated are free; if all are, nothing is charged.
    - Rare categories stay secret: a category that one record alone has is named with a probability
      below a ten-thousandth of `delta`, of all columns together.
    - Not protected: shapes, dtypes and names of columns; the time of a fit, which follows the
      number of categories. The transformed records are as sensitive as the records.

    Parameters
    ----------
    categories : "auto", list or dict {column name: list}, default="auto"
        "auto" learns the categories of all columns. A list has for each column its public
        categories or "auto"; a dict those of some columns of a data frame, and the others are
        learnt. Public: never from the data.
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone. Infinity names every category, and protects nobody.
    $delta
    $min_frequency
    max_categories : int >= 2, default=16
        How many numbers a learnt column has at most, that of infrequent ones included. The most
        frequent categories are kept.
    $neighboring
    $n_public
    $accountant
    random_state : int, RandomState instance, ReproducibleNoise or None, default=None
        Leave it None, as in `DPOneHotEncoder`.

    Attributes
    ----------
    $categories_
    $category_counts_
    $threshold_
    $privacy_event_
    $privacy_spent_
    $n_features_in_
    $feature_names_in_

    Raises
    ------
    $BudgetExceededError
    $LedgerError
    TypeError, ValueError
        If a parameter is invalid, or a cell is no string, number or boolean; nothing was charged.

    Warns
    -----
    UserWarning
        If n and epsilon are so small that few categories can be found: a public fact.

    See Also
    --------
    DPOneHotEncoder : Indicator columns, which linear models need of categories without an order.

    Notes
    -----
    As in `DPOneHotEncoder`. Proof: ``privacy/proofs/release_categories.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.preprocessing import DPOrdinalEncoder
    >>> sizes = np.repeat(["small", "large", "unheard of"], [6_000, 3_999, 1])
    >>> encoder = DPOrdinalEncoder([["small", "large"]]).fit(sizes[:, None])
    >>> encoder.privacy_spent_  # stated, hence free
    PrivacySpent(epsilon=0.0, delta=0.0)
    >>> encoder.transform([["small"], ["large"], ["unheard of"]]).ravel()
    array([0., 1., 2.])
    """

    _has_infrequent = True

    def __init__(
        self,
        categories="auto",
        *,
        epsilon: float = 0.2,
        delta="auto",
        min_frequency=None,
        max_categories: int = 16,
        neighboring: str = "replace_one",
        n_public: int | None = None,
        accountant=None,
        random_state=None,
    ):
        self.categories = categories
        self.epsilon = epsilon
        self.delta = delta
        self.min_frequency = min_frequency
        self.max_categories = max_categories
        self.neighboring = neighboring
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state

    def transform(self, X: ArrayLike):
        """Number the categories of records, each by itself.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_encoded : ndarray of shape (n_samples, n_features)
            From 0 to the number of categories, which stands for all others.
        """
        return np.column_stack(self._codes(X)[0]).astype(np.float64)
