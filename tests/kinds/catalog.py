"""All kinds of broken input, by area."""

from collections.abc import Callable

from kinds import arrays, graphs, settings, training
from kinds.kind import Kind

AREAS: dict[str, Callable[[], list[Kind]]] = {
    "graphs": graphs.kinds,
    "arrays": arrays.kinds,
    "settings": settings.kinds,
    "training": training.kinds,
}
