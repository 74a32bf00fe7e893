"""Texts for readers: reprs of plain objects, tables as text, docstrings that share texts."""

import inspect
import re
import textwrap
from html import escape


class ReadableRepr:
    """Objects that look like the call that makes them, and in notebooks like their text."""

    def __repr__(self):
        names = [name for name in inspect.signature(type(self)).parameters if hasattr(self, name)]
        call = ", ".join(f"{name}={_short(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({call})"

    def _repr_html_(self):
        style = "font-family: monospace; word-break: normal; overflow-wrap: anywhere"
        return f'<pre style="{style}">{escape(str(self))}</pre>'


def text_table(rows, left):
    """Lines of a table of texts; columns whose numbers are in `left` begin at their left edge."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    places = [("<" if k in left else ">") + str(width) for k, width in enumerate(widths)]
    return ["  ".join(map(format, row, places)).rstrip() for row in rows]


def html_table(rows):
    """An element of HTML for a table of texts, the head first."""
    style = 'style="text-align: left; vertical-align: top"'

    def line(tag, row):
        return f"<tr>{''.join(f'<{tag} {style}>{escape(cell)}</{tag}>' for cell in row)}</tr>"

    head, body = line("th", rows[0]), "".join(line("td", row) for row in rows[1:])
    return f"<table><thead>{head * any(rows[0])}</thead><tbody>{body}</tbody></table>"


def _short(value):
    """A value as it is written, or its length where that is above six."""
    size = getattr(value, "size", None) or (len(value) if isinstance(value, (list, tuple)) else 0)
    return repr(value) if size <= 6 else f"<{type(value).__name__} of {size}>"


# ---- Docstrings ----------------------------------------------------------------------------------


def with_shared_texts(doc, texts):
    """A docstring in which every line ``$name`` gives way to the text of this name."""
    if doc is None:
        return None
    first, end, rest = doc.partition("\n")  # of which Python 3.13 strips the indentation
    doc = f"{first}{end}{textwrap.indent(textwrap.dedent(rest), '    ')}"
    return re.sub(r"^    \$(\w+)$", lambda named: texts[named[1]], doc, flags=re.MULTILINE)
