"""A report to file: what was released at which noise, and what is not protected."""

import datetime
import hashlib
import json
import os
from pathlib import Path

from ._report_facts import facts_of
from ._report_pages import html_of, markdown_of, registry_entry_of


class PrivacyReport:
    """A report to file of a fitted model, pipeline or search, or of a ledger.

    It says which (ε, δ) holds for whom, what was released at which noise, which bounds were stated
    and who vouches for them, what is not protected and what was found to leak, with versions and a
    hash. It is made of parameters and of what was released, so it costs nothing and may be
    published as the model may.

    Privacy
    -------
    Read are parameters, public attributes of a fit, its event and the entries of a ledger, never
    records or anything that was not released: two fits that released the same have the same report.
    A report of a ledger tells the names, shapes and times of all fits that were charged, and who
    charged them unless the accountant has ``user=None``.

    Parameters
    ----------
    subject : estimator or PrivacyAccountant
        A fitted private model, transformer, pipeline or search of this package; scikit-learn's
        ``Pipeline`` with one of them inside; or the accountant of a ledger.
    vouched_by : str, default=None
        Who says that stated bounds and classes are public; None is reported as "nobody is named".
    date : str, default=None
        Day of the report, as 2026-01-31; None is today.

    Attributes
    ----------
    facts : dict
        All that the report says, as plain values that JSON has.
    hash : str
        SHA-256 of the facts as JSON with sorted keys.

    Raises
    ------
    TypeError
        If `subject` has no event of its own, as scikit-learn's searches have none.
    NotFittedError
        If it is not fitted.
    LedgerError
        If a ledger can't be read or was changed.

    See Also
    --------
    find_leaks : What the report says about leaks, of objects that are not fitted.
    BudgetDisplay : A ledger over time.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.inspection import PrivacyReport
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> bounds = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
    >>> model = DPRidgeSkGD(epsilon=1.0, delta=1e-7, **bounds).fit(X, X[:, 0])
    >>> report = PrivacyReport(model, vouched_by="the data's owner", date="2026-01-31")
    >>> print(report.to_markdown().splitlines()[0])
    # Privacy report: DPRidgeSkGD
    >>> report.facts["guarantee"]["epsilon"], report.facts["guarantee"]["flaws"]
    (1.0, [])
    """

    def __init__(self, subject: object, *, vouched_by: str | None = None, date: str | None = None):
        date = datetime.date.today().isoformat() if date is None else date
        self.facts = facts_of(subject, vouched_by, date)
        text = json.dumps(self.facts, sort_keys=True, ensure_ascii=False)
        self.hash = hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> str:
        """Return the facts and their hash as JSON.

        Returns
        -------
        text : str
        """
        return json.dumps(self.facts | {"hash": self.hash}, indent=2, ensure_ascii=False)

    def to_markdown(self) -> str:
        """Return the report as Markdown.

        Returns
        -------
        text : str
        """
        return markdown_of(self.facts, self.hash)

    def to_html(self) -> str:
        """Return the report as one HTML page that needs nothing else.

        Returns
        -------
        text : str
        """
        return html_of(self.facts, self.hash)

    def to_registry_yaml(self, **asked: object) -> str:
        """Return an entry for OpenDP's registry of deployments, as a draft.

        Tiers 2 and 3 are filled; what only the curator knows is asked for, and marked in the text
        where it was not given.

        Parameters
        ----------
        **asked
            Any of ``name``, ``data_curators``, ``description``, ``intended_use``,
            ``data_product_region``, ``data_product_sector``, ``publication_date``,
            ``registry_authors`` and ``justification``.

        Returns
        -------
        text : str
            YAML.

        Raises
        ------
        TypeError
            If something else is given.
        ValueError
            If nothing is protected: such a release is no deployment.
        """
        if flaws := self.facts["guarantee"]["flaws"]:
            raise ValueError(f"no guarantee holds ({flaws[0]}), so there is nothing to register")
        return registry_entry_of(self.facts, asked)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, in the form that its suffix names.

        Parameters
        ----------
        path : str or path-like
            Ends in .html, .json, .md or .yaml (the registry's entry).

        Raises
        ------
        ValueError
            If it has another suffix.
        """
        forms = {".html": self.to_html, ".json": self.to_json}
        forms |= {".md": self.to_markdown, ".yaml": self.to_registry_yaml}
        suffix = Path(path).suffix
        if suffix not in forms:
            raise ValueError(f"path must end in one of {', '.join(forms)}, got {str(path)!r}")
        Path(path).write_text(forms[suffix](), encoding="utf-8")

    def __str__(self):
        return self.to_markdown()

    def __repr__(self):
        return f"PrivacyReport of {self.facts['name']}, {self.hash[:12]}"

    def _repr_html_(self):
        return html_of(self.facts, self.hash, whole=False)
