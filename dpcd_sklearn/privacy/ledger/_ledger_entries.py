"""Entries of a ledger as plain public facts; no storage, no decisions."""

import dataclasses
import datetime
import hashlib
import json
import math
import sys
import types
from fractions import Fraction

import numpy as np

from ...utils._public import plain_number
from ...utils._texts import ReadableRepr

# The encoding that is hashed.
canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=repr).encode


@dataclasses.dataclass(frozen=True)
class LedgerParameters:
    """Facts that are fixed when a ledger is created; its hash starts the chain."""

    ledger_id: str
    created: str
    host: str
    version: str
    epsilon: float
    delta: float
    neighboring: str
    n_public: int | None
    testing: bool
    limit: float
    reserve: float
    max_contributions: int | None = 1  # a file does not state it where records are the unit

    @property
    def neighbours(self):
        """The relation, and how many records a person has at most."""
        return self.neighboring, self.max_contributions

    def to_json(self):
        stated = dataclasses.asdict(self)
        if self.max_contributions == 1:
            del stated["max_contributions"]
        return canonical(stated)


@dataclasses.dataclass(frozen=True)
class Balance:
    """The sums over all entries up to one; exact, so that nothing is lost however many there are.

    Each entry stores its own, within the hash chain: who knows the last one knows the sums.

    Attributes
    ----------
    entries : int
        How many there are.
    amount : Fraction
        Sum of what they took of the limit.
    delta : Fraction
        Sum of what they took of the reserve.
    all_private : bool
        Whether every one of them is.
    """

    entries: int = 0
    amount: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    all_private: bool = True

    @property
    def fresh(self):
        """Whether nothing was taken: the next entry is the first one of the budget."""
        return self.amount == 0

    def after(self, facts):
        """The sums with one more entry."""
        return Balance(
            self.entries + 1,
            self.amount + Fraction(facts["amount"]),
            self.delta + Fraction(facts["delta"]),
            self.all_private and bool(facts["private"]),
        )

    def columns(self):
        """As an entry stores them: fractions as text, which holds every digit."""
        return {
            "amount_sum": str(self.amount),
            "delta_sum": str(self.delta),
            "all_private": int(self.all_private),
        }

    @classmethod
    def of_row(cls, row):
        """Read the sums from a verified row."""
        return cls(
            row["id"],
            Fraction(row["amount_sum"]),
            Fraction(row["delta_sum"]),
            bool(row["all_private"]),
        )


@dataclasses.dataclass(frozen=True)
class LedgerEntry(ReadableRepr):
    """One charge, as it stands in the ledger.

    Attributes
    ----------
    id : int
        Number of the charge, from 1 on.
    time : datetime.datetime
        When it was admitted (aware, UTC).
    estimator : str
        What was fitted.
    params : dict
        Its public parameters; never a seed.
    event : str
        What it releases, as a sentence.
    releases : tuple of dict
        The same as numbers.
    amount : float
        What it took of the ledger's limit, the μ² of all Gaussian releases that the budget admits:
        the first entry by its own curve, a later one the square of its cover.
    delta : float
        What it took of the reserve, a hundredth of the ledger's delta.
    n_samples, n_features : int or None
        Shape of the data; ``n_public`` stands for n_samples under add_remove neighbours.
    private : bool
        False for a release without noise, or with noise that a seed repeats, in a ledger made for
        tests.
    version : str
        Version of the package that wrote it.
    hash : str
        SHA-256 of the entry and of the hash before it.
    user, host, note : str
        As the `PrivacyAccountant` that charged states them; "" where it states none.
    """

    id: int
    time: datetime.datetime
    estimator: str
    params: dict
    event: str
    releases: tuple
    amount: float
    delta: float
    n_samples: int | None
    n_features: int | None
    private: bool
    version: str
    hash: str
    user: str
    host: str
    note: str

    def __str__(self):
        return f"{self.id}, {self.time:%Y-%m-%d %H:%M:%S} UTC: {self.estimator}, {self.event}"

    @classmethod
    def from_row(cls, row):
        """Build an entry from a verified row."""
        return cls(
            **{field.name: row[field.name] for field in dataclasses.fields(cls)}
            | {
                "time": datetime.datetime.fromisoformat(row["time"]),
                "params": json.loads(row["params"]),
                "releases": tuple(json.loads(row["releases"])),
                "private": bool(row["private"]),
            }
        )


def now():
    """The time in UTC, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


def package_version():
    """Version of the package that writes; the package itself is above this room."""
    package = sys.modules[__name__.partition(".")[0]]
    return str(getattr(package, "__version__", "unknown"))


def plain_text(value):
    """A string that SQLite can hold, whatever its characters."""
    return str(value).encode("utf-8", "backslashreplace").decode()


# ---- public parameters as JSON ----------------------------------------------------------------


def to_json(params):
    """Canonical JSON of public parameters, without handles, and seeds that could undo the noise."""
    return canonical(_plain(params))


def _plain(value, depth=0):
    """A value as JSON can hold it; a digest of an array, a short repr of anything else."""
    value = plain_number(value)
    if value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):  # JSON has no inf and no nan
        return value if math.isfinite(value) else str(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"shape": list(value.shape), "sha256": digest}
    if depth < 8:  # deeper, or a cycle, is cut off by repr
        if isinstance(value, (dict, types.MappingProxyType)):
            return {
                str(key): _plain(item, depth + 1)
                for key, item in value.items()
                if not str(key).endswith(("random_state", "accountant"))
            }
        if isinstance(value, (list, tuple)):
            return [_plain(item, depth + 1) for item in value]
        if hasattr(value, "get_params") and not isinstance(value, type):
            params = _plain(value.get_params(deep=False), depth + 1)
            return {"estimator": type(value).__name__, "params": params}
    return _short(value)


def _short(value):
    try:
        text = repr(value)
    except Exception:  # a broken repr must not stop a charge
        text = ""
    # a repr may show a seed deep inside, or an address, which is another in every process
    hidden = not text or any(w in text for w in ("random_state", "ReproducibleNoise", " at 0x"))
    return type(value).__name__ if hidden else text[:200]
