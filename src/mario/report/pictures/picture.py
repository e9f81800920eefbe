"""A picture: a figure with its description, drawn at print size and saved as PNG, SVG and PDF."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mario.files import write_whole
from mario.report.svg import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.33, 7.0
"""Widths in print, in inches: one column of a two-column paper, and both."""

DPI = 200
MOST_SVG = 400_000
"""Bytes of an SVG in a page; a larger picture is shown as PNG."""


@dataclass(frozen=True)
class Drawing:
    """A figure, what it shows, and a description for readers who cannot see it.

    The ``caption`` says what dots, whiskers or bands are and how many runs are behind them.
    """

    figure: "Figure"
    title: str
    description: str
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A saved drawing, ``width`` inches wide. ``svg`` is for a page and takes its text color, ``paths`` are files."""

    name: str
    kind: str
    case: str
    title: str
    description: str
    width: float
    svg: str
    paths: tuple[Path, ...]
    caption: str = ""

    @property
    def png(self) -> str:
        """The PNG in base64, for a page that the SVG would make heavy; otherwise empty."""
        path = next((path for path in self.paths if path.suffix == ".png"), None)
        if path is None or len(self.svg) <= MOST_SVG:
            return ""
        return base64.b64encode(path.read_bytes()).decode()

    @property
    def broad(self) -> bool:
        """Whether it is wider than a column."""
        return self.width > COLUMN


@contextmanager
def sheet(width: float, height: float, layout: Literal["constrained"] | None = "constrained") -> Iterator[Any]:
    """An empty figure of this size in inches, in the style of all pictures; its layout is fixed on exit.

    It is typed as ``Any``: matplotlib accepts more than its annotations say.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(style("sheet")):
        figure = Figure(figsize=(width, height), dpi=DPI, layout=layout)
        FigureCanvasAgg(figure)
        yield figure
        if engine := figure.get_layout_engine():
            engine.execute(figure)
            # Computed for each format, the layout would differ slightly between PNG and PDF.
            figure.set_layout_engine("none")


def save_picture(figure: "Figure", stem: Path | str, *, title: str = "") -> list[Path]:
    """Write ``stem.png`` (200 dpi), ``stem.svg`` and ``stem.pdf``, dark on white; the same figure, the same bytes.

    Text is outlines in the SVG and embedded TrueType in the PDF, so that neither needs a font to be installed.

    Example:
        >>> import tempfile
        >>> from mario.report.pictures import label_rates, save_picture
        >>> from mario.report.pictures.label_rates import Counts
        >>> figure = label_rates([Counts("Tr", 100, 20, 5)]).figure
        >>> [path.name for path in save_picture(figure, tempfile.mkdtemp() + "/one")]
        ['one.png', 'one.svg', 'one.pdf']
    """
    import matplotlib

    stem = Path(stem)
    # No date and no version, so that the same figure gives the same bytes.
    nothing = {
        "png": ("Software",),
        "svg": ("Creator", "Date", "Format", "Type"),
        "pdf": ("Creator", "Producer", "CreationDate"),
    }
    paths = []
    with matplotlib.rc_context(style(stem.name) | {"svg.fonttype": "path", "pdf.fonttype": 42}):
        for form, names in nothing.items():
            metadata: dict[str, str | None] = dict.fromkeys(names) | ({"Title": title} if title else {})
            paths.append(stem.with_name(f"{stem.name}.{form}"))
            save = partial(figure.savefig, format=form, dpi=DPI, facecolor="white", metadata=metadata)
            write_whole(paths[-1], save)
    return paths
