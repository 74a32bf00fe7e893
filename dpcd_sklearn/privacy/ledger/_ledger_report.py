"""A ledger for people to read: text, HTML and a data frame. Nothing here decides anything."""

import csv
import dataclasses
import html
import io
import itertools
import json
import math
import textwrap
from decimal import ROUND_FLOOR, Context
from fractions import Fraction

from ...exceptions import LedgerError
from ...leaks import RULES
from ...utils._persons import unit_of
from ...utils._texts import html_table, text_table
from ..accounting._accounting import gdp_squared
from ..accounting._calibration import gaussian_fit_event
from ..accounting._gaussian_dp import gdp_epsilon
from ..accounting._promise import Budget
from ..accounting._spent import PrivacyCost, PrivacySpent
from ._filter import Price, admits, epsilon_alone, price
from ._ledger_entries import Balance, LedgerEntry

# ---- Reports of a ledger about itself, in epsilon: spent, left, refused. Nothing here admits -----


def _upwards(total):
    """A sum in double precision, not below it."""
    rounded = float(total)
    return rounded if Fraction(rounded) >= total else math.nextafter(rounded, math.inf)


def spent(parameters, balance):
    """Share of a ledger that its entries took, as the loss of a Gaussian fit."""
    if not balance.all_private:
        return PrivacySpent(math.inf, parameters.delta)
    epsilon = min(_equivalent(parameters, balance.amount), parameters.epsilon)
    return PrivacySpent(epsilon, parameters.delta)


def _equivalent(parameters, amount):
    """The loss of a Gaussian fit that takes so much; of all that there is, the budget's."""
    if amount == parameters.limit:
        return parameters.epsilon
    if amount >= 1e16:
        return math.inf
    return float(gdp_epsilon(math.sqrt(_upwards(amount)), parameters.delta))


def amount(parameters, event):
    """Price of an event as a later entry."""
    return price(parameters, event, False).amount


def cost(parameters, balance, fits):
    """Cost of fits together, each a pair of an event and its number of records."""
    first, found = balance.fresh, []
    for event, _ in fits:
        found.append(price(parameters, event, first))
        first = first and found[-1].amount == 0
    sizes = {}
    for event, n in fits:
        sizes.setdefault(n, []).append(event)
    alone = {event: epsilon_alone(event, parameters.delta) for event in {e for e, _ in fits}}
    dearest = {n: max(alone[event] for event in events) for n, events in sizes.items()}
    private = all(each.private for each in found)
    together = math.fsum(each.amount for each in found)
    counted = _equivalent(parameters, together) if private else math.inf
    left, later = _times_left(parameters, balance, [event for event, _ in fits], found), balance
    if left:
        for each in found:
            later = later.after(dataclasses.asdict(each))
    return PrivacyCost(
        epsilon=next(iter(dearest.values())) if len(fits) == 1 else counted,
        delta=parameters.delta,
        counted=counted,
        amount=together,
        fits_left=left,
        n_fits=len(found),
        sizes=tuple((len(sizes[n]), n, dearest[n]) for n in sorted(sizes)),
        remaining=remaining(parameters, later) if left else None,
    )


def remaining(parameters, balance):
    """The largest epsilon of one more Gaussian fit that is admitted, rounded downwards."""
    if balance.fresh:
        return parameters.epsilon
    left = float(Fraction(parameters.limit) - balance.amount)
    if left <= 0:
        return 0.0
    target = gdp_epsilon(math.sqrt(left), parameters.delta)

    def admitted(epsilon):
        relation, max_contributions = parameters.neighbours
        budget = Budget(epsilon, parameters.delta, relation, None, max_contributions)
        fit = budget.of_persons(gaussian_fit_event(budget, 1))
        # A fit of more than one release differs by its rounding.
        amount = price(parameters, fit, False).amount * (1 + 1e-14)
        return admits(parameters, balance, Price(amount, 0.0, private=True, first=False))

    # the conversions there and back round by 1e-10, but near epsilon = 0 they are ill-conditioned
    low, high = (min(target * factor, parameters.epsilon) for factor in (1 - 1e-7, 1 + 1e-8))
    if admitted(high):
        return high
    low = low if admitted(low) else 0.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if admitted(middle) else (low, middle)
    return low


def _times_left(parameters, balance, events, prices):
    """How often in a row some events are admitted together; infinitely if they take nothing."""
    if not all(math.isfinite(p.amount) for p in prices):
        return 0
    amount = sum(Fraction(p.amount) for p in prices)
    if amount == 0:
        return math.inf
    left = Fraction(parameters.limit) - balance.amount
    spare = Fraction(parameters.reserve) - balance.delta
    delta = sum(Fraction(p.delta) for p in prices)
    if amount > left or delta > spare:
        return 0
    # the first time may have another price than the following
    later = [price(parameters, event, False) for event in events]
    if not all(math.isfinite(p.amount) for p in later):
        return 1
    times = (left - amount) / sum(Fraction(p.amount) for p in later)
    if any(p.delta for p in later):
        times = min(times, (spare - delta) / sum(Fraction(p.delta) for p in later))
    return 1 + int(times)


def refusal(parameters, balance, event):
    """Why an event was refused, and what to do; from public facts only."""
    delta = parameters.delta
    entries = "1 entry" if balance.entries == 1 else f"{balance.entries:,} entries"
    alone = epsilon_alone(event, delta)
    text = f"this fit would cost epsilon={alone:.6g} at delta={delta:g} by itself"
    later = None if balance.fresh else price(parameters, event, False)
    if later is not None:
        counted = _equivalent(parameters, later.amount)
        if counted > 1.001 * alone:
            text += f", counts as epsilon={counted:.6g} after other charges"
    text += (
        " and does not fit into the budget; nothing was drawn or recorded. Spent so far: "
        f"epsilon={spent(parameters, balance).epsilon:.6g} of {parameters.epsilon:g} in {entries}. "
    )
    left = remaining(parameters, balance)
    # cut, not rounded: what is read here must be admitted when it is typed in
    shown = Context(prec=6, rounding=ROUND_FLOOR).create_decimal(left).normalize()
    text += f"Left for one more Gaussian fit: remaining() = {shown}. "
    if left == 0:
        return text + "The budget is spent: no other fit may use these records under it"
    if later is not None and math.isfinite(later.amount):
        spare = float(Fraction(parameters.reserve) - balance.delta)
        if balance.amount + Fraction(later.amount) <= Fraction(parameters.limit):
            return text + (
                "It is not epsilon that is short: such a fit takes a part of delta for what no "
                f"Gaussian covers, {later.delta:.2g} of the {spare:.2g} that this ledger still has "
                "for it. State a smaller delta for this fit; or charge such fits first, or "
                "together by reserve()"
            )
    gaussian = gdp_squared(event) is not None
    other = "" if gaussian or balance.fresh else ", and less for fits with other releases"
    return text + (
        f"Lower the estimator's epsilon to at most remaining(){other}, or fit less often. cost() "
        "says the price beforehand; reserve() charges several fits at once, which may cost less"
    )


_WIDEST = 50  # of the columns that say what was fitted and what was released
_NOT_COUNTED = (
    "Not in this sum, nor covered by it: "
    + "; ".join(rule.name for rule in RULES if rule.severity != "note")
    + ". inspection.find_leaks(model) looks for them."
)


# ---- Tables for people to read -------------------------------------------------------------------


def table_of(facts):
    """Texts of a table, the head first: of a dict a row each, of dicts without empty columns."""
    if isinstance(facts, dict):
        return [["", ""], *([name, text_of(value)] for name, value in facts.items())]
    rows = [{name: text_of(value) for name, value in row.items()} for row in facts]
    heads = [name for name in rows[0] if any(row[name] for row in rows)] if rows else []
    titles = [name.replace("_", " ") for name in heads]
    return [titles, *([row[name] for name in heads] for row in rows)]


def text_of(value):
    """The text of a cell: four digits of a number, nothing of None."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)


def rows_of(report):
    """The rows of a table of entries."""
    names = _differing_params(report.entries)
    for entry, epsilon in zip(report.entries, report.epsilons, strict=True):
        params = ", ".join(f"{k}={entry.params[k]!r}" for k in names if k in entry.params)
        without = any(release["release"] == "NonPrivateEvent" for release in entry.releases)
        flaw = "" if entry.private else f" ({'no' if without else 'known'} noise)"
        yield {
            "id": entry.id,
            "time (UTC)": f"{entry.time:%Y-%m-%d %H:%M}",
            "by": "@".join(filter(None, (entry.user, entry.host))),
            "note": entry.note,
            "estimator": f"{entry.estimator}({params})" if params else entry.estimator,
            "released": entry.event.partition(", under ")[0],
            "n": entry.n_samples,
            "p": entry.n_features,
            "ε so far": f"{epsilon:.4g}{flaw}",
        }


class LedgerReport:
    """Entries and sums of a ledger: ``print`` it, show it in a notebook, or take `to_frame`.

    Attributes
    ----------
    entries : tuple of LedgerEntry
    epsilons : tuple of float
        What was spent after each entry, at the ledger's delta.
    spent : PrivacySpent
    remaining : float
        As `PrivacyAccountant.remaining` reports it.
    """

    def __init__(self, parameters, entries, epsilons, spent, remaining):
        self._parameters = parameters
        self.entries, self.epsilons = tuple(entries), tuple(epsilons)
        self.spent, self.remaining = spent, remaining

    def _table(self):
        """The head and the rows; who charged is a column only where entries differ."""
        rows = rows_of(self)
        if len(self._signers()) == 1:
            rows = [row | {"by": ""} for row in rows]
        return table_of(rows)

    def _signers(self):
        return {row["by"] for row in rows_of(self)}

    def _below(self):
        """Sentences that stand below the table."""
        signers = self._signers()
        by = f"All charged by {next(iter(signers))}." if len(signers) == 1 and all(signers) else ""
        return [text for text in (self._summary(), by, _NOT_COUNTED) if text]

    def _summary(self):
        stated = self._parameters
        k = stated.max_contributions
        unit = "" if k == 1 else f", {unit_of(k)}"
        fits = "1 entry" if len(self.entries) == 1 else f"{len(self.entries):,} entries"
        return (
            f"{fits}: spent epsilon={self.spent.epsilon:.4g} of {stated.epsilon:g} at "
            f"delta={stated.delta:g} ({stated.neighboring} neighbours{unit}); one "
            f"more Gaussian fit may have epsilon={self.remaining:.4g}"
        )

    def __str__(self):
        table = self._table()
        lines = [line for cells in table for line in _lines(cells)]
        lines = text_table(lines, left=range(len(table[0])))
        *below, last = self._below()
        return "\n".join([*lines, *below, *textwrap.wrap(last, 100, break_on_hyphens=False)])

    __repr__ = __str__

    def _repr_html_(self):
        first, *below = (f"<p>{html.escape(text)}</p>" for text in self._below())
        bar = _bar(self.spent.epsilon, self._parameters.epsilon)
        return f"{first}{bar}{html_table(self._table())}{''.join(below)}"

    def to_frame(self):
        """Return the entries as a data frame, one row each.

        Returns
        -------
        frame : pandas.DataFrame
            The fields of `LedgerEntry` but for `amount` and `delta`, which are in other units, and
            `epsilon_so_far`: cumulated, at the ledger's delta.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("a data frame of entries needs pandas: pip install pandas") from error
        return pd.DataFrame(list(self._rows()), columns=_COLUMNS).set_index("id")

    def _rows(self):
        for entry, epsilon in zip(self.entries, self.epsilons, strict=True):
            yield [*(getattr(entry, name) for name in _COLUMNS[:-1]), epsilon]

    def to_csv(self) -> str:
        """Return the same as comma-separated values; what has parts of its own as JSON.

        Returns
        -------
        text : str
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row in self._rows():
            writer.writerow(json.dumps(v) if isinstance(v, (dict, tuple)) else v for v in row)
        return text.getvalue()


def report_of(parameters, rows):
    """The LedgerReport of verified rows."""
    balances = [Balance(), *map(Balance.of_row, rows)]
    spent_after = [spent(parameters, balance) for balance in balances]
    return LedgerReport(
        parameters,
        map(LedgerEntry.from_row, rows),
        [epsilon for epsilon, _ in spent_after[1:]],
        spent_after[-1],
        remaining(parameters, balances[-1]),
    )


def html_of_balance(accountant):
    """An accountant in a notebook: its budget, how much is spent, what is left."""
    name = f"<code>{html.escape(repr(accountant))}</code>"
    try:
        spent, left = accountant.spent().epsilon, accountant.remaining()
    except (LedgerError, ValueError) as error:  # closed, or out of reach: a picture raises nothing
        return f"<p>{name}: {html.escape(str(error))}</p>"
    return (
        f"<p>{name}</p>{_bar(spent, accountant.epsilon)}"
        f"<p>spent ε = {spent:.4g} of {accountant.epsilon:g} at δ = {accountant.delta:g}; one more "
        f"Gaussian fit may have ε = {left:.4g}. <code>report()</code> lists the entries, "
        "<code>inspection.PrivacyReport</code> files them.</p>"
    )


def _bar(spent, epsilon):
    share = min(1.0, spent / epsilon)
    return f'<progress max="1" value="{share:.4f}">{share:.0%}</progress>'


# The epsilon at the ledger's delta after each entry comes last. Shares of the limit and of the
# reserve are in other units, and add up to neither ε nor δ.
_COLUMNS = [field.name for field in dataclasses.fields(LedgerEntry)]
_COLUMNS = [name for name in _COLUMNS if name not in ("amount", "delta")] + ["epsilon_so_far"]


def shown_as(output, entries, report):
    """Entries as a list; of a report of them a data frame or comma-separated values."""
    outputs = {"list": lambda: list(entries)}
    outputs |= {"frame": lambda: report().to_frame(), "csv": lambda: report().to_csv()}
    if output not in outputs:
        raise ValueError(f"output must be one of {tuple(outputs)}, got {output!r}")
    return outputs[output]()


def _differing_params(entries):
    """Names of the parameters that tell entries of one estimator apart."""
    seen = {}
    for entry in entries:
        for name, value in entry.params.items():
            seen.setdefault((entry.estimator, name), set()).add(repr(value))
    return sorted({name for (_, name), values in seen.items() if len(values) > 1})


def _lines(cells):
    """The lines of a row, in which long cells are wrapped between words."""
    wrapped = [textwrap.wrap(cell, _WIDEST, break_long_words=False) or [""] for cell in cells]
    return itertools.zip_longest(*wrapped, fillvalue="")
