"""The one place that asks for matplotlib, and where legends go."""


def axes_of(ax, **options):
    """The given axes, or those of a new figure.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'dpcd_sklearn[plot]'") from error
    return plt.subplots(layout="constrained", **options)[1] if ax is None else ax


def legend_beside(ax, **options):
    """A legend at the right of the axes, where it covers no curve."""
    options = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "borderaxespad": 0.0} | options
    return ax.legend(fontsize="small", frameon=False, **options)
