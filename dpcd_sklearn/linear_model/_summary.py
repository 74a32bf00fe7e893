"""The table that `summary` returns, as text and as HTML."""

from html import escape


class CoefSummary:
    """A row a coefficient: estimate, standard error, test, interval, and the noise's share.

    Its ``str`` is the table as text; notebooks show it as HTML.

    Parameters
    ----------
    heads : list of str
    rows : list of (name, list of str)
        A cell for each head.
    notes : list of str
        Sentences under the table.
    """

    def __init__(self, heads, rows, notes):
        self.heads, self.rows, self.notes = heads, rows, notes

    def named(self, names):
        """The same table with other names of the features, which come first."""
        others = [name for name, _ in self.rows[len(names) :]]
        cells = [cells for _, cells in self.rows]
        rows = list(zip([*names, *others], cells, strict=True))
        return CoefSummary(self.heads, rows, self.notes)

    def __str__(self):
        names = ["", *(name for name, _ in self.rows)]
        width = max(map(len, names))
        cells = [self.heads, *(row for _, row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join([f"{name:{width}}", *(f"{c:>{w}}" for c, w in zip(row, widths, strict=True))])
            for name, row in zip(names, cells, strict=True)
        ]
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__

    def _repr_html_(self):
        heads = "".join(f"<th>{escape(head)}</th>" for head in ("", *self.heads))
        rows = "".join(
            f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
            for name, row in self.rows
        )
        notes = "<br>".join(map(escape, self.notes))
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><p>{notes}</p>"
