"""The table that `summary` returns, as text, HTML and LaTeX."""

from html import escape

import numpy as np

_OF_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_OF_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
_OF_LATEX |= {"[": "{[}", "*": "{*}"}  # after a line's end they would be its options
_OF_LATEX = str.maketrans(_OF_LATEX | {sign: f"\\{sign}" for sign in "&%$#_{}"})


def fixed_features(model):
    """Which features of a fitted model have bounds of one point, so that they tell nothing."""
    bounds = getattr(model, "feature_bounds_", None)
    return np.zeros(model.n_features_in_, bool) if bounds is None else bounds[0] == bounds[1]


class CoefSummary:
    """A row a coefficient: estimate, standard error, test, interval, and the noise's share.

    Its ``str`` is the table as text; notebooks show it as HTML. `as_html` and `as_latex` are for
    what is written about it.

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

    def as_html(self) -> str:
        """The table as an element of HTML, with its notes below.

        Returns
        -------
        str
        """
        heads = "".join(f"<th>{escape(head)}</th>" for head in ("", *self.heads))
        rows = "".join(
            f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
            for name, row in self.rows
        )
        notes = "<br>".join(map(escape, self.notes))
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><p>{notes}</p>"

    _repr_html_ = as_html

    def as_latex(self) -> str:
        """The table as a ``tabular`` of LaTeX, which needs no package, with its notes below.

        Returns
        -------
        str
        """
        rows = [["", *map(_latex, self.heads)]]
        rows += [[_latex(name), *map(_latex_of_cell, row)] for name, row in self.rows]
        head, *body = [" & ".join(cells) + r" \\" for cells in rows]
        begin = rf"\begin{{tabular}}{{l{'r' * len(self.heads)}}}"
        table = [begin, r"\hline", head, r"\hline", *body, r"\hline", r"\end{tabular}"]
        return "\n".join([*table, "", *map(_latex, self.notes)])


def _latex(text):
    return text.translate(_OF_LATEX)


def _latex_of_cell(cell):
    return f"${cell}$" if cell.startswith("-") else _latex(cell)
