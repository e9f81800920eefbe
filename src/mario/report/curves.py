"""Score curves for a page; they are drawn in `mario.report.pictures.curves`."""

from mario.report.pictures.curves import SERIES, limits, plot_curves
from mario.report.pictures.curves import rows_with_curves as methods_with_curves

__all__ = ["SERIES", "limits", "methods_with_curves", "plot_curves"]
