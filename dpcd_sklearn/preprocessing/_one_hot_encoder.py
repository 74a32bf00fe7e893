"""Categories as indicator columns."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.utils.validation import check_is_fitted

from ..utils._compat import OneToOneFeatureMixin, StrOptions
from ..utils._input import read_array
from ..utils._typing import ArrayLike
from ._category_encoder import CategoryEncoder
from ._columns import each_once, names_of


@dataclass(eq=False, repr=False)
class DPOneHotEncoder(CategoryEncoder):
    r"""Encode categories as indicator columns; learnt categories are released privately.

    For columns of categories of which no list is known, or one for some of them. Each column
    becomes one indicator for each of its categories and, with ``handle_unknown="infrequent"``, one
    for all others.

    Parameters
    ----------
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone: a fifth of what the models behind it have by default. Infinity
        names every category, and protects nobody.
    max_categories : int >= 2, default=16
        Columns that each learnt column becomes, that of infrequent ones included, whatever is
        found: so the number of columns is public. The most frequent categories are kept, and
        columns without a category stay zero.
    handle_unknown : {"infrequent", "ignore"}, default="infrequent"
        Whether what is none of the categories has a column of its own, or zeros only.
    drop : {"first"} or None, default=None
        "first" leaves out the first column of each feature, that of its first category, which the
        others are compared with: all indicators of a feature add up to one, so beside an intercept
        no coefficient of them has an interval.
    sparse_output : bool, default=False
        Whether the result is a CSR matrix.

    Attributes
    ----------
    is_unused_ : ndarray of bool of shape (n_features_out,)
        Which columns are zero for every record. Released, with the categories.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, a cell is no string, number or boolean, or a dense result might
        be more than memory holds; nothing was charged.

    See Also
    --------
    DPOrdinalEncoder : Numbers categories.

    Notes
    -----
    A record has one category in each of the p learnt columns, so it moves the counts of all of
    them by sqrt(p) in the euclidean norm, or sqrt(2 p) if it is replaced. They get Gaussian noise,
    and those below a threshold are dropped, which hides categories of one record. Proof:
    ``privacy/proofs/release_categories.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.preprocessing import DPOneHotEncoder
    >>> colours = np.repeat(["red", "green", "one of a kind"], [6_000, 3_999, 1])
    >>> encoder = DPOneHotEncoder(epsilon=1.0, max_categories=4).fit(colours[:, None])
    >>> encoder.categories_
    [array(['green', 'red'], dtype=object)]
    >>> encoder.get_feature_names_out()
    array(['x0_green', 'x0_red', 'x0_infrequent', 'x0_unused0'], dtype=object)
    >>> encoder.transform([["red"], ["one of a kind"]])
    array([[0., 1., 0., 0.],
           [0., 0., 1., 0.]])
    """

    _parameter_constraints = CategoryEncoder._parameter_constraints | {
        "handle_unknown": [StrOptions({"infrequent", "ignore"})],
        "drop": [StrOptions({"first"}), None],
        "sparse_output": ["boolean"],
    }

    _: KW_ONLY
    handle_unknown: str = "infrequent"
    drop: str | None = None
    sparse_output: bool = False

    _remedy_of_width = "pass sparse_output=True, lower max_categories"

    def _dense_width(self, n_features):
        return 0 if self.sparse_output else self._most_groups(n_features)

    @property
    def _has_infrequent(self):
        return self.handle_unknown == "infrequent"

    @property
    def _n_dropped(self):
        return int(self.drop == "first")

    @property
    def _widths(self):
        """How many columns each feature becomes, unused ones included."""
        return [room + self._has_infrequent - self._n_dropped for room in self._room]

    def _words(self, known):
        """Words for the columns of a feature that are used, the dropped one included."""
        return [*known, *["infrequent"] * self._has_infrequent]

    @property
    def _has_no_records(self):
        """Unused columns, and those of infrequent categories that counts leave no records to.

        Counts are released for learnt columns. What they leave is compared with two standard
        deviations of the noise of their sum, and a threshold is about six and a half of one count.
        """
        found = self.is_unused_
        starts = np.cumsum([-self._n_dropped, *self._widths])
        for start, counts in zip(starts, self.category_counts_, strict=False):
            if self._has_infrequent and counts is not None and len(counts):
                rest = self._n_normalizer - counts.sum()
                found[start + len(counts)] = rest <= 0.3 * self.threshold_ * len(counts) ** 0.5
        return found

    @property
    def is_unused_(self):
        used = [len(self._words(known)) - self._n_dropped for known in self.categories_]
        pairs = zip(self._widths, used, strict=True)
        return np.concatenate([np.arange(width) >= n for width, n in pairs])

    def transform(self, X: ArrayLike):
        """Encode records, each by itself.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_encoded : {ndarray, CSR matrix} of shape (n_samples, n_features_out)
            Zeros and ones.
        """
        codes = self._codes(X)
        n_samples = len(codes[0])
        self._refuse_large_output(n_samples, len(codes))
        starts = np.cumsum([0, *self._widths])
        rows, ones = [], []
        for start, code, known in zip(starts, codes, self._categories, strict=False):
            n_words = len(self._words(known))
            inside = (code >= self._n_dropped) & (code < n_words)
            rows.append(np.flatnonzero(inside))
            ones.append(start + code[inside] - self._n_dropped)
        rows, ones = np.concatenate(rows), np.concatenate(ones)
        shape = n_samples, int(starts[-1])
        if self.sparse_output:
            return csr_matrix((np.ones(len(rows)), (rows, ones)), shape=shape)
        encoded = np.zeros(shape)
        encoded[rows, ones] = 1.0
        return encoded

    def inverse_transform(self, X: ArrayLike):
        """The categories of encoded records.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_out)

        Returns
        -------
        X_original : ndarray of objects of shape (n_samples, n_features)
            "infrequent" for what was none of the categories, or None where that became zeros. With
            ``drop="first"`` zeros are the first category.

        Raises
        ------
        ValueError
            If X has another number of columns.
        """
        check_is_fitted(self, "categories_")
        X = read_array(X, accept_sparse="csr")
        starts = np.cumsum([0, *self._widths])
        if X.shape[1] != starts[-1]:
            raise ValueError(f"X has {X.shape[1]} columns, but {starts[-1]} are encoded")
        found = np.empty((len(starts) - 1, X.shape[0]), dtype=object)
        for j, known in enumerate(self.categories_):
            words = np.array([*self._words(known), None], dtype=object)
            block = X[:, starts[j] : starts[j + 1]]
            block = block.toarray() if issparse(block) else block
            code = np.argmax(np.column_stack([block != 0, np.ones(len(block))]), axis=1)
            none = 0 if self._n_dropped else len(words) - 1
            code = np.where(code == block.shape[1], none, code + self._n_dropped)
            found[j] = words[np.minimum(code, len(words) - 1)]
        return found.T

    def get_feature_names_out(self, input_features=None):
        """Names of the indicator columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of X; None takes those of the fit, or x0, x1, ...

        Returns
        -------
        names : ndarray of objects
            The name of the column and the category; "infrequent", and "unused" for columns that
            stay zero. Equal ones, such as those of 1 and "1", get underscores.
        """
        names = []
        given = names_of(self, input_features)
        for name, known, width in zip(given, self.categories_, self._widths, strict=True):
            words = self._words(known)[self._n_dropped :]
            words += [f"unused{i}" for i in range(width - len(words))]
            names += [f"{name}_{word}" for word in words]
        return each_once(names)


# ---- Categories as numbers -----------------------------------------------------------------------


class DPOrdinalEncoder(OneToOneFeatureMixin, CategoryEncoder):
    r"""Encode categories as numbers 0, 1, ...; learnt categories are released privately.

    Each column stays one column: stated categories are numbered in the order in which they are
    stated, learnt ones with numbers before words, each sorted. Whatever is none of them has the
    number after the last.

    Parameters
    ----------
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone. Infinity names every category, and protects nobody.
    max_categories : int >= 2, default=16
        How many numbers a learnt column has at most, that of infrequent ones included. The most
        frequent categories are kept.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or a cell is no string, number or boolean; nothing was charged.

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
        return np.column_stack(self._codes(X)).astype(np.float64)
