"""Docstrings that share texts: each text is written once, and stands in all of them."""

import re
import textwrap


def by_name(texts):
    """Texts of parameters, each of which begins ``name : type``, by their names."""
    listed = re.split(r"\n(?=    \S)", texts.rstrip())
    return {re.split(" : |, ", text)[0].strip(): text for text in listed}


def with_shared_texts(doc, texts):
    """A docstring in which every line ``$name`` gives way to the text of this name."""
    if doc is None:
        return None
    first, end, rest = doc.partition("\n")  # of which Python 3.13 strips the indentation
    doc = f"{first}{end}{textwrap.indent(textwrap.dedent(rest), '    ')}"
    return re.sub(r"^    \$(\w+)$", lambda named: texts[named[1]], doc, flags=re.MULTILINE)
