"""Matplotlib figures as SVG for a page, several per page, on a light or a dark background."""

import io
import re
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A color no figure uses otherwise: in the SVG it becomes currentColor, the text color of the page around it.
INK = "#010203"

_STYLE = {
    "svg.fonttype": "none",
    # A dollar sign in a method's name is not math.
    "text.parse_math": False,
    # The family that matplotlib ships, and a fallback for browsers. Sizes are for print: no text below 8 pt at the
    # width of a column or of a page.
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "hatch.color": INK,
    "hatch.linewidth": 0.5,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
}

# What an <svg> tag ends with, and the labels that it begins with; Markup escapes the values.
_LABELS = Markup(
    ' style="--inches: {inches}" role="img" aria-labelledby="{prefix}-title {prefix}-desc">'
    '<title id="{prefix}-title">{title}</title><desc id="{prefix}-desc">{description}</desc>'
)

# An image has no text color around it, and a page may be dark: the ground is the image's own.
_GROUNDS = (
    "svg{background:#fcfcfb;color:#1b1f23}@media(prefers-color-scheme:dark){svg{background:#14171a;color:#e8eaec}}"
)


def style(name: str) -> dict[Any, Any]:
    """Settings for ``matplotlib.rc_context``, under which a figure is drawn; `to_svg` uses them too."""
    return _STYLE | {"svg.hashsalt": name}


def to_svg(figure: "Figure", *, name: str, title: str, description: str) -> str:
    """The figure as an ``<svg>`` element: scalable, labeled for screen readers, the same bytes every time.

    Every id in it begins with ``name``, which must be unique on the page. It fills its container; ``--inches`` is its
    width in print, so that a page can say how large or small it may become.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context(style(name)):
        FigureCanvasSVG(figure).print_svg(buffer, metadata=nothing)
    prefix = re.sub(r"[^A-Za-z0-9-]", "-", name)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
    text = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    text = text.replace("xlink:href=", "href=").replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    text = re.sub(INK, "currentColor", text, flags=re.IGNORECASE)
    # Without width and height the drawing fills its container and keeps its proportions by the viewBox.
    head, body = text.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    labels = _LABELS.format(prefix=prefix, inches=f"{figure.get_figwidth():g}", title=title, description=description)
    return f"{head}{labels}{body.strip()}"


def to_image(figure: "Figure", *, name: str, title: str, description: str) -> str:
    """The figure as an SVG file of its own, for ``<img>`` and Markdown: with a ground, light or dark as the reader's.

    Example:
        >>> from mario.report.pictures import label_rates
        >>> from mario.report.pictures.label_rates import Counts
        >>> figure = label_rates([Counts("Tr", 100, 20, 5)]).figure
        >>> to_image(figure, name="rates", title="Label rates", description="A bar.").count(_GROUNDS)
        1
    """
    text = to_svg(figure, name=name, title=title, description=description)
    head, body = text.split(">", 1)
    return f"{head}><style>{_GROUNDS}</style>{body}\n"
