"""Matplotlib figures as SVG that can stand inside a page, several at a time, on a light or a dark ground."""

import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe & Ito's palette, told apart by colour-blind readers; its black is the page's own ink here (INK).
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, YELLOW = "#CC79A7", "#56B4E9", "#F0E442"

# A colour no figure uses otherwise: in the SVG it becomes currentColor, the text colour of the page around it.
INK = "#010203"

_STYLE = {
    "svg.fonttype": "none",
    # A dollar sign in a method's name is a dollar sign.
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}


def style(name: str) -> dict[Any, Any]:
    """Settings for ``matplotlib.rc_context``, under which a figure is drawn *and* passed to `to_svg`."""
    return _STYLE | {"svg.hashsalt": name}


def to_svg(figure: "Figure", *, name: str, title: str, description: str) -> str:
    """The figure as an ``<svg>`` element: scalable, labelled for screen readers, the same bytes every time.

    Every id in it begins with ``name``, which must be unique on the page.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
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
    return (
        f'{head} role="img" aria-labelledby="{prefix}-title {prefix}-desc">'
        f'<title id="{prefix}-title">{escape(title)}</title>'
        f'<desc id="{prefix}-desc">{escape(description)}</desc>{body.strip()}'
    )
