"""Texts of guarantees, parameters, attributes and errors that transformers share, each once."""

TEXTS = {
    "guarantee": """\
    - Guarantee: what `fit` releases, the fitted attributes, is (`epsilon`, `delta`)-DP for
      neighbours that differ in one record (``neighboring="replace_one"``), or by adding or
      removing one (``"add_remove"``). Given them each record is mapped by itself, so neighbouring
      data sets stay neighbours, and the budget of the next step comes on top.""",
    "delta": """\
    delta : "auto" or float in (0, 1), default="auto"
        "auto" is 1/n², not available under "add_remove".""",
    "min_frequency": """\
    min_frequency : int >= 1, float in (0, 1) or None, default=None
        Least noisy number of records, or share of them, of a category that is learnt.""",
    "bounds_of_quantiles": """\
    feature_bounds : tuple (lo, hi), list of pairs or dict {column name: (lo, hi)}, default=None
        As in `BoundsScaler`: quantiles are looked for within them, to a 256th part. Public. None
        finds a range of six inter-quartile ranges first.""",
    "relation": """\
    neighboring : {"replace_one", "add_remove"} or Persons, default="replace_one"
        What one record more or less means; with "replace_one" the number of records is public.
        :class:`~dpcd_sklearn.Persons` have several of them.
    n_public : int, default=None
        A public number of records, for "add_remove".""",
    "ledger_and_seed": """\
    accountant : PrivacyAccountant, default=None
        What is charged.
    random_state : int, RandomState instance, ReproducibleNoise or None, default=None
        Leave it None. This fit has no public choices that an int could draw; its noise comes from
        the operating system either way. :class:`~dpcd_sklearn.testing.ReproducibleNoise` makes the
        noise reproducible, hence **not private**: it warns, and an accountant refuses it.""",
    "of_fit": """\
    privacy_event_ : FitEvent
        What was released.
    privacy_spent_ : PrivacySpent (epsilon, delta)
        The guarantee of this fit.
    n_features_in_ : int
        Number of features. Public.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings. Public.""",
    "refused_charge": """\
    BudgetExceededError
        If the accountant refuses the charge; no record was used.
    LedgerError
        If the accountant's ledger can't be written; no record was used.""",
    "learnt_categories": """\
    categories_ : list of ndarrays of objects
        The categories of each column; NaN is what is missing. Released, or stated.
    category_counts_ : list of ndarrays, or None where categories are stated
        Noisy numbers of records of each category. Released.
    threshold_ : float or None
        The noisy number of records that a category is named from; None if nothing is learnt.
        Public.""",
    "categories": """\
    categories : "auto", list or dict {column name: list}, default="auto"
        "auto" learns the categories of all columns. A list has for each column its public
        categories or "auto"; a dict those of some columns of a data frame, and the others are
        learnt. Public: never from the data.""",
    "target_bounds": """\
    target_bounds : tuple (lo, hi) of float, default=(-1.0, 1.0)
        Bounds of a target of numbers, which is cut to them.""",
    "classes": """\
    classes : list, default=None
        Labels of a target of classes, at most 256: then `target_bounds` are not looked at. What is
        none of them counts as the first one.""",
    "few_records": """\
    Warns
    -----
    UserWarning
        If n and epsilon are too small for so many columns: a public fact.""",
    "few_categories": """\
    Warns
    -----
    UserWarning
        If n and epsilon are so small that few categories can be found: a public fact.""",
}
