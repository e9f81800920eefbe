"""All kinds of broken input, by area."""

from collections.abc import Callable

from kinds import arrays, command_line, files, graphs, lab_and_data, of_others, settings, training
from kinds.kind import Kind

AREAS: dict[str, Callable[[], list[Kind]]] = {
    "graphs": graphs.kinds,
    "arrays and numbers": arrays.kinds,
    "settings": settings.kinds,
    "training and models": training.kinds,
    "files": files.kinds,
    "datasets, runs and studies": lab_and_data.kinds,
    "command line": command_line.kinds,
    "rows, maps and plans": of_others.kinds,
}
