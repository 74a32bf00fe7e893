"""Texts for readers: reprs of plain objects, tables as text, docstrings that share texts."""

import inspect
import re
import textwrap
from functools import cache
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


def counted(count, noun):
    """A number of things in words: 1 feature, 2 features."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


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

_INHERITED = ("Privacy", "Parameters", "Attributes", "Raises", "Warns")
_OTHERS = ("See Also", "Notes", "References", "Examples")


def with_inherited_texts(cls, absent=frozenset()):
    """The docstring of a class, with the entries of its bases that it does not have itself.

    Those are about privacy, its parameters, its attributes but for the `absent` ones, errors and
    warnings. Of an entry that several classes have the text is the nearest one's, and the place the
    farthest one's; the guarantee and parameters by position come first.
    """
    if cls.__doc__ is None:
        return None
    head, sections = _sections_of(cls.__doc__)
    sections, parameters = dict(sections), parameters_of(cls)
    first = {"Guarantee", *(name for name, by_position in parameters.items() if by_position)}
    for title in _INHERITED:
        entries = {}
        for base in cls.__mro__:
            for name, text in entries_of(_sections_of(base.__doc__)[1].get(title, "")).items():
                is_other = name not in parameters if title == "Parameters" else name in absent
                if base is cls or not is_other:
                    entries[name] = entries.pop(name, text)
        if entries:
            listed = sorted(entries, key=lambda name: name not in first)
            sections[title] = "\n".join(entries[name] for name in listed) + "\n\n"
    parts = [head.rstrip() + "\n\n"]
    for title in (*_INHERITED, *_OTHERS):
        line = f"**{title}**\n" if title == "Privacy" else f"{title}\n    {'-' * len(title)}"
        if title in sections:
            parts.append(f"    {line}\n{sections[title]}")
    return "".join(parts).rstrip() + "\n    "


def parameters_of(cls):
    """Parameters of a class that may become a dataclass: whether each is inherited by position."""
    inherited = inspect.signature(cls.__init__).parameters.values()
    try:
        found = dict.fromkeys(inspect.get_annotations(cls), False)
    except NameError:  # from Python 3.14 on, of a name that type checkers alone import
        found = {}
    return found | {each.name: each.kind is each.POSITIONAL_OR_KEYWORD for each in inherited}


@cache
def entries_of(section):
    """Entries of a section of a docstring, each of which begins ``name : type``, by first names.

    Those about privacy are items of a list, and begin with a dash.
    """
    listed = re.split(r"\n(?=    \S)", section.rstrip())
    return {re.match(r"\W*(\w+)", text)[1]: text.rstrip() for text in listed if text}


@cache
def _sections_of(doc):
    """The beginning of a docstring, and its sections by title."""
    # lines have four spaces before them, which Python 3.13 strips
    first, end, rest = (doc or "").partition("\n")
    doc = f"{first}{end}{textwrap.indent(textwrap.dedent(rest), '    ')}"
    head, *parts = re.split(r"(?m)^    (\w[\w ]+)\n    --+\n", doc)
    head, _, privacy = head.partition("    **Privacy**\n\n")
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    if privacy:
        sections["Privacy"] = privacy.partition("\n\n")[0]
    return head, sections
