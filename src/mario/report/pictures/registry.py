"""Pictures by name: a study shows those that it names, and a new one is a new file in this package."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mario.graphs.rules import choose
from mario.plugins import discover
from mario.report.pictures.picture import Drawing

if TYPE_CHECKING:
    from mario.lab.studies.collect import Collected

TABLES = {"table": ("registered", "forest", "differences"), "validation": ()}
"""What a study may show besides pictures, and the pictures that come with it."""


@dataclass(frozen=True)
class Sketch:
    """A picture to draw: its case (none if it is about the whole study), a suffix of its name, and how to draw it."""

    draw: Callable[[], Drawing]
    case: str = ""
    suffix: str = ""


Sketches = Callable[["Collected", Path | None], Iterator[Sketch]]
_REGISTRY: dict[str, Sketches] = {}


def register_picture(name: str) -> Callable[[Sketches], Sketches]:
    """Make a picture known under ``name``, for ``show`` in the file of a study.

    The decorated function takes a study and the folder of datasets, and yields a `Sketch` for each picture to draw. It
    yields nothing for a case that has nothing to show.

    Example:
        >>> from mario.report.pictures.picture import COLUMN, Drawing, sheet
        >>> def seconds(runs):
        ...     with sheet(COLUMN, 2.0) as figure:
        ...         figure.subplots().hist(runs["seconds"])
        ...     return Drawing(figure, "Seconds per run", f"{len(runs)} runs.")
        >>> @register_picture("seconds")
        ... def seconds_of(study, root):
        ...     for case in study.cases:
        ...         yield Sketch(lambda case=case: seconds(case.frame), case=case.name)
    """

    def register(sketches: Sketches) -> Sketches:
        _REGISTRY[name] = sketches
        return sketches

    return register


def find_picture(name: str) -> Sketches:
    """The picture called ``name``."""
    _load()
    if name not in _REGISTRY:
        choose("show", name, (*TABLES, *sorted(_REGISTRY)))
    return _REGISTRY[name]


def check_shown(names: Iterable[str]) -> None:
    """Raise a `MarioError` if ``names``, the ``show`` of a study, has a name that is neither a table nor a picture."""
    for name in names:
        if name not in TABLES:
            find_picture(name)


@cache
def _load() -> None:
    import mario.report.pictures as package

    discover(package.__name__, package.__path__, "mario.pictures")
