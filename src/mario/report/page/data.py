"""What the page's script works on, as one piece of JSON: every run once, downloads, and the maps."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from mario.evaluation import SETS
from mario.lab.frame import COLUMNS, SCORES
from mario.report.maps import MapData, points
from mario.report.pictures.curves import SERIES
from mario.report.pictures.palette import COLORS, GRAY, MARKERS, SEQUENTIAL, VERMILLION

if TYPE_CHECKING:
    from pandas import DataFrame

_FACTS = [column.name for column in COLUMNS if column.dtype not in ("float64", "object") and column.name != "folder"]


def embedded(value: Any) -> Markup:
    """JSON that is safe inside a ``script`` element, with any content in its strings.

    Example:
        >>> print(embedded({"name": "</script>", "score": float("nan")}))
        {"name":"\\u003c/script>","score":null}
    """
    text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def runs_data(runs: "DataFrame") -> dict[str, Any]:
    """Every run once, with the studies it is part of; settings and environments that recur are stored once."""
    found: dict[str, dict[str, Any]] = {}
    settings, environments = _Once(), _Once()
    for run in runs.to_dict("records"):
        if run["digest"] not in found:
            groups = {f"groups.{name}": score for name, score in run["groups"].items()}
            found[run["digest"]] = {
                "facts": {**_known(run, _FACTS), **_lists(run)},
                "scores": {**_known(run, SCORES), **groups},
                "settings": settings.place(run["settings"]),
                "environment": environments.place(run["environment"]),
                "studies": [],
            }
        found[run["digest"]]["studies"].append({name: run[name] for name in ("study", "case", "label")})
    return {"runs": list(found.values()), "settings": settings.values, "environments": environments.values}


def _lists(run: Mapping[str, Any]) -> dict[str, Any]:
    """Known faults of the data and decisions of a method, where there are any."""
    return {name: list(run[name]) for name in ("faults", "decisions") if run[name]}


def looks_data() -> dict[str, Any]:
    """Colors and markers of the maps, the same as those of the pictures."""
    import matplotlib

    scale = matplotlib.colormaps[SEQUENTIAL]
    series = {one.key: one for one in SERIES}
    return {
        "sets": [
            # A validation set has a color like that of its test set, and every set has its own marker.
            {"key": key, "name": series[key].label, "color": _visible(series[key].color), "marker": MARKERS[place]}
            for place, key in enumerate(SETS)
        ],
        "look": {
            "colors": list(COLORS),
            "markers": list(MARKERS),
            "gray": GRAY,
            "wrong": VERMILLION,
            "sequential": [[round(255 * c) for c in scale(i / 8)[:3]] for i in range(9)],
        },
    }


def map_group(
    case: str, domain_name: str, maps: Mapping[str, MapData], named: Sequence[str | None] = ()
) -> dict[str, Any]:
    """The maps of several rows on the same nodes; facts about the nodes are stored once.

    Where there is room for two only, they are the rows that are ``named``, or the last two.
    """
    first = next(iter(maps.values()))
    return {
        "case": case,
        "unit": first.unit,
        "domain_name": domain_name or "domain",
        "class_names": list(first.class_names),
        "domain_names": list(first.domain_names),
        "node": first.node.tolist(),
        "y": first.y.tolist(),
        "domain": first.domain.tolist(),
        "split": first.split.tolist(),
        "two": [label for label in maps if label in named] or list(maps)[-2:],
        "maps": [{"label": label, **points(found)} for label, found in maps.items()],
    }


class _Once:
    """Values by their place in a list that has each once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[str, int] = {}

    def place(self, value: Any) -> int:
        key = json.dumps(_plain(value), sort_keys=True)
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]


def _known(run: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The columns of a run that have a value."""
    from pandas import isna

    return {name: run[name] for name in names if not isna(run[name])}


def _visible(color: str) -> str:
    # The ink of a picture is the text color of its page, which a canvas does not know.
    return color if color in COLORS else GRAY


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(inner) for inner in value]
    return value
