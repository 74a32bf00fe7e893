"""Categories as indicator columns."""

import numpy as np
from scipy.sparse import csr_matrix

from ..utils._compat import StrOptions
from ..utils._typing import ArrayLike
from ._category_encoder import CategoryEncoder
from ._columns import each_once, names_of


class DPOneHotEncoder(CategoryEncoder):
    r"""Encode categories as indicator columns; learnt categories are released privately.

    For columns of categories of which no list is known, or one for some of them. Each column
    becomes one indicator for each of its categories and, with ``handle_unknown="infrequent"``, one
    for all others.

    **Privacy**

    $guarantee
    - Charged: one release of the counts of all categories of all learnt columns together, before a
      record is used. Categories that are stated are free; if all are, nothing is charged.
    - Rare categories stay secret: a category that one record alone has is named with a probability
      below a ten-thousandth of `delta`, of all columns together, and categories of fewer than about
      `threshold_` records are seldom named.
    - Not protected: shapes, dtypes and names of columns; the time of a fit, which follows the
      number of categories. The transformed records are as sensitive as the records.

    Parameters
    ----------
    categories : "auto", list or dict {column name: list}, default="auto"
        "auto" learns the categories of all columns. A list has for each column its public
        categories or "auto"; a dict those of some columns of a data frame, and the others are
        learnt. Public: never from the data.
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone: a fifth of what the models behind it have by default. Infinity
        names every category, and protects nobody.
    $delta
    $min_frequency
    max_categories : int >= 2, default=16
        Columns that each learnt column becomes, that of infrequent ones included, whatever is
        found: so the number of columns is public. The most frequent categories are kept, and
        columns without a category stay zero.
    handle_unknown : {"infrequent", "ignore"}, default="infrequent"
        Whether what is none of the categories has a column of its own, or zeros only.
    sparse_output : bool, default=False
        Whether the result is a CSR matrix.
    $neighboring
    $n_public
    $accountant
    $random_state

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
        If a parameter is invalid, a cell is no string, number or boolean, or a dense result might
        be more than memory holds; nothing was charged.

    Warns
    -----
    UserWarning
        If n and epsilon are so small that few categories can be found: a public fact.

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
        "sparse_output": ["boolean"],
    }

    def __init__(
        self,
        categories="auto",
        *,
        epsilon: float = 0.2,
        delta="auto",
        min_frequency=None,
        max_categories: int = 16,
        handle_unknown: str = "infrequent",
        sparse_output: bool = False,
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
        self.handle_unknown = handle_unknown
        self.sparse_output = sparse_output
        self.neighboring = neighboring
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state

    _remedy_of_width = "pass sparse_output=True, lower max_categories"

    def _dense_width(self, n_features):
        return 0 if self.sparse_output else self._most_groups(n_features)

    @property
    def _has_infrequent(self):
        return self.handle_unknown == "infrequent"

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
        codes, n_samples = self._codes(X)
        self._refuse_large_output(n_samples, len(codes))
        widths = [room + self._has_infrequent for room in self._room]
        starts = np.cumsum([0, *widths])
        rows, ones = [], []
        for start, code, known in zip(starts, codes, self._categories, strict=False):
            inside = np.ones(n_samples, bool) if self._has_infrequent else code < len(known)
            rows.append(np.flatnonzero(inside))
            ones.append(start + code[inside])
        rows, ones = np.concatenate(rows), np.concatenate(ones)
        shape = n_samples, int(starts[-1])
        if self.sparse_output:
            return csr_matrix((np.ones(len(rows)), (rows, ones)), shape=shape)
        encoded = np.zeros(shape)
        encoded[rows, ones] = 1.0
        return encoded

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
        for name, known, room in zip(given, self.categories_, self._room, strict=True):
            names += [f"{name}_{category}" for category in known]
            if self._has_infrequent:
                names.append(f"{name}_infrequent")
            names += [f"{name}_unused{i}" for i in range(room - len(known))]
        return each_once(names)
