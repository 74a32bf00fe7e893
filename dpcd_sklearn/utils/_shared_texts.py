"""Docstrings that share texts: each text is written once, and stands in all of them."""

import re


def with_shared_texts(doc, texts):
    """A docstring in which every line ``$name`` gives way to the text of this name."""
    if doc is None:
        return None
    return re.sub(r"^    \$(\w+)$", lambda named: texts[named[1]], doc, flags=re.MULTILINE)
