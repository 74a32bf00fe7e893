"""Plain objects have a repr that can be read, and HTML in notebooks."""

import inspect
from html import escape

_MOST_CELLS = 6  # of an array that is written out


class Shown:
    """Objects that look like the call that makes them, and in notebooks like their text."""

    def __repr__(self):
        names = [name for name in inspect.signature(type(self)).parameters if hasattr(self, name)]
        call = ", ".join(f"{name}={_short(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({call})"

    def _repr_html_(self):
        style = "font-family: monospace; word-break: normal; overflow-wrap: anywhere"
        return f'<pre style="{style}">{escape(str(self))}</pre>'


def _short(value):
    """A value as it is written, or how long it is."""
    size = getattr(value, "size", None) or (len(value) if isinstance(value, (list, tuple)) else 0)
    return repr(value) if size <= _MOST_CELLS else f"<{type(value).__name__} of {size}>"
