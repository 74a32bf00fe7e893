"""Ledgers for those who do not program: ``python -m dpcd_sklearn ledger FILE``."""

import argparse
import os
import shutil
import stat
import sys

from .exceptions import LedgerError
from .inspection import PrivacyReport
from .privacy.accounting._calibration import gaussian_fit_event
from .privacy.accounting._promise import Budget
from .privacy.ledger import PrivacyAccountant

_EXAMPLES = """\
examples:
  python -m dpcd_sklearn ledger patients.ledger --create 2.0 1e-7   make it, once
  python -m dpcd_sklearn ledger patients.ledger --create 2.0 1e-7 --group clinic
  python -m dpcd_sklearn ledger patients.ledger                     all charges, and what is left
  python -m dpcd_sklearn ledger patients.ledger --fit 0.5           what one more fit would leave
  python -m dpcd_sklearn ledger patients.ledger --html > report.html

There is no --reserve. A reservation belongs to the process that makes it, so make it there:
accountant.reserve([...]).
"""


def parser():
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        "python -m dpcd_sklearn",
        description="Commands of dpcd_sklearn. COMMAND --help explains a command.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    ledger = commands.add_parser(
        "ledger",
        help="show, check or make a ledger",
        description="Print the charges of a ledger and what is left of its budget. Only --create "
        "writes a file, and no option charges anything or reads a record.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ledger.add_argument("file", help="the file that PrivacyAccountant(..., path=FILE) made")
    what = ledger.add_mutually_exclusive_group()
    what.add_argument("--csv", action="store_true", help="all entries as comma-separated values")
    what.add_argument("--html", action="store_true", help="a report to file as one HTML page")
    what.add_argument("--verify", action="store_true", help="check that no entry was changed")
    what.add_argument(
        "--fit",
        type=float,
        metavar="EPSILON",
        help="what one more Gaussian fit of this epsilon would leave, at the ledger's delta",
    )
    what.add_argument(
        "--create",
        type=float,
        nargs=2,
        metavar=("EPSILON", "DELTA"),
        help="make a new ledger with this budget, readable by you alone; an existing file stays",
    )
    ledger.add_argument(
        "--group",
        metavar="NAME",
        help="beside --create: let the members of this group of users read and charge it too",
    )
    return top


def _share(path, group):
    """Let the members of a group of users charge a new ledger; return what else they need.

    SQLite writes its journal beside the file, with the mode of the file.
    """
    folder = os.path.dirname(path)
    try:
        shutil.chown(path, group=group)
        os.chmod(path, 0o660)
        found, of_file = os.stat(folder), os.stat(path)
    except (OSError, LookupError, AttributeError) as error:  # the last without groups
        raise LedgerError(
            f"{path} was made for you alone: it can't be given to the group {group!r} ({error})"
        ) from error
    rights = stat.S_IRGRP | stat.S_IWGRP | stat.S_IXGRP
    if found.st_gid == of_file.st_gid and found.st_mode & rights == rights:
        return ""
    return (
        f"The group {group} can charge it once it may write in its folder too, where the journal "
        f"of a charge lies: chgrp {group} {folder} && chmod g+rwxs {folder}\n"
    )


def _verified(accountant):
    entries = accountant.entries()
    last = entries[-1].hash if entries else "none"
    return (
        f"{accountant.path}: {len(entries):,} entries, none was changed. Last hash: {last}. Keep "
        "it elsewhere: it uncovers a file that was put back to an older copy"
    )


def _one_more(accountant, epsilon):
    budget = Budget(
        epsilon, accountant.delta, accountant.neighboring, None, accountant.max_contributions
    )
    event = budget.of_persons(gaussian_fit_event(budget, 1))
    fit = type("GaussianFit", (), {"planned_event": lambda *shape: event})()
    cost = accountant.cost(fit, 1, 1)
    if cost.remaining is None:
        return f"refused: the largest fit that is left has epsilon={accountant.remaining():.6g}"
    return f"admitted; another fit after it may have epsilon={cost.remaining:.6g}"


def main(arguments=None):
    """Run a command and return its exit status: 1 if a ledger can't be read or was changed."""
    options = parser().parse_args(arguments)
    if options.command is None:
        parser().print_help()
        return 0
    given = options.create or (() if options.fit is None else (options.fit,))
    if not all(0 < number < float("inf") for number in given):
        parser().error(f"EPSILON and DELTA must be positive and finite, got {given}")
    if options.group and not options.create:
        parser().error("--group is of a new ledger: write it beside --create EPSILON DELTA")
    hint = ""
    try:
        if options.create:
            if os.path.lexists(options.file):
                raise LedgerError(f"{options.file} is there already; nothing was written")
            accountant = PrivacyAccountant(*options.create, path=options.file)
            hint = _share(accountant.path, options.group) if options.group else ""
        else:
            accountant = PrivacyAccountant.open(options.file)
        if options.fit is not None:
            text = _one_more(accountant, options.fit)
        elif options.verify:
            text = _verified(accountant)
        elif options.csv:
            text = accountant.entries(output="csv").rstrip("\n")
        elif options.html:
            text = PrivacyReport(accountant).to_html().rstrip("\n")
        else:
            text = f"{accountant.report()}\n{hint}".rstrip("\n")
    except (LedgerError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    sys.stdout.reconfigure(encoding="utf-8")  # also where a page is written by > report.html
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
