"""The one place that asks for matplotlib."""


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
