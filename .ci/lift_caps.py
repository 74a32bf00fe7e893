"""Lift the upper caps of dependencies in pyproject.toml: `python .ci/lift_caps.py pyproject.toml`.

A run on the newest development version of a dependency tells early what a cap will have to become.
"""

import re
import sys
from pathlib import Path

CAP = re.compile(r",\s*<=?\s*[\d.]+(?=\s*[\",])")


def without_caps(text):
    """The text of a pyproject.toml whose requirements have lower bounds only."""
    return CAP.sub("", text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(without_caps(path.read_text(encoding="utf-8")), encoding="utf-8")
