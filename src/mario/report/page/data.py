"""What the page's script works on, as one piece of JSON: every run once, files to keep, and the maps."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mario.evaluation import SETS
from mario.lab.studies.plan import Collected
from mario.report.maps import MapData, points
from mario.report.pictures.curves import SERIES
from mario.report.pictures.palette import COLORS, GRAY, MARKERS, SEQUENTIAL, VERMILLION

_FACTS = (
    *("dataset", "domain", "shift", "setting", "split_seed", "method", "seed", "encoder", "metric"),
    *("steps", "checkpoints", "ranks", "seconds", "model"),
)


def embedded(value: Any) -> str:
    """JSON that can stand in a ``script`` element, whatever its strings hold.

    Example:
        >>> embedded({"name": "</script>", "score": float("nan")})
        '{"name":"\\\\u003c/script>","score":null}'
    """
    text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def runs_data(collected: Sequence[Collected]) -> dict[str, Any]:
    """Every finished run once, with the studies it is part of; settings and environments that recur are kept once."""
    runs: dict[str, dict[str, Any]] = {}
    settings, environments = _Once(), _Once()
    for study in collected:
        for case in study.cases:
            for result in case.results:
                folder = Path(str(result.get("folder") or "")).name
                key = folder or f"{study.plan.study} {case.name} {len(runs)}"
                if key not in runs:
                    facts = {name: result[name] for name in _FACTS if result.get(name) is not None}
                    runs[key] = {
                        "facts": {**facts, "folder": folder, "faults": list(result.get("faults") or ())},
                        "scores": _scores(result.get("scores") or {}),
                        "settings": settings.place(result.get("settings") or {}),
                        "environment": environments.place(result.get("environment") or {}),
                        "studies": [],
                    }
                where = {"study": study.plan.study, "case": case.name, "label": result["label"]}
                runs[key]["studies"].append(where)
    return {"runs": list(runs.values()), "settings": settings.values, "environments": environments.values}


def looks_data() -> dict[str, Any]:
    """Colors and marks of the maps, which are those of the pictures."""
    import matplotlib

    scale = matplotlib.colormaps[SEQUENTIAL]
    series = {one.key: one for one in SERIES}
    return {
        "sets": [
            # Validation sets have the color of their test set's kin, and every set a mark of its own.
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
    """The maps of several rows on the same nodes; what belongs to the nodes is kept once.

    Where there is room for two only, they are the rows that are ``named``, or the last two.
    """
    first = next(iter(maps.values()))
    return {
        "case": case,
        "unit": first.unit,
        "domain_name": domain_name or "domain",
        "node": first.node.tolist(),
        "y": first.y.tolist(),
        "domain": first.domain.tolist(),
        "split": first.split.tolist(),
        "two": [label for label in maps if label in named] or list(maps)[-2:],
        "maps": [{"label": label, **points(found)} for label, found in maps.items()],
    }


class _Once:
    """Values by their place in a list in which each stands once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[str, int] = {}

    def place(self, value: Any) -> int:
        key = json.dumps(_plain(value), sort_keys=True)
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]


def _scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Scores by name, those of groups and of the last checkpoint with a dot; the oracle was chosen on test labels."""
    flat: dict[str, Any] = {}
    for name, value in scores.items():
        if name == "oracle":
            continue
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": v for inner, v in value.items()}
        else:
            flat[name] = value
    return flat


def _visible(color: str) -> str:
    # The ink of a picture is the text color of its page, which a canvas has no word for.
    return color if color in COLORS else GRAY


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(inner) for inner in value]
    return value
