"""The names of the columns of ``x``, and which of them belong together."""

from torch_geometric.data import Data

from mario.audit.measures import Feature
from mario.embedder.sources import Source

MISSING = " is missing"
"""What the name of a feature ends with that says whether a value is there."""


def features_of(data: Data, source: Source | None = None) -> list[Feature]:
    """The columns of the tables of a graph of one's own; else ``feature_names`` of ``data``, else ``x_0`` and so on.

    Example:
        >>> import torch
        >>> [feature.name for feature in features_of(Data(x=torch.eye(2)))]
        ['x_0', 'x_1']
    """
    width = int(data.x.size(1))
    found = [] if source is None or source.folder is None else _of_plan(source)
    if found and sum(len(feature.columns) for feature in found) == width:
        return found
    named = data.get("feature_names")
    right = isinstance(named, list | tuple) and len(named) == width
    names = [str(name) for name in named] if right and named is not None else [f"x_{place}" for place in range(width)]
    return [Feature(name, (place,), (name,), _kind(name)) for place, name in enumerate(names)]


def _of_plan(source: Source) -> list[Feature]:
    """The columns of the fitted plan of a graph's folder; whether values are missing is a column of its own."""
    from mario.graphs.card import read_card

    assert source.folder is not None
    card = read_card(source.folder)
    if card.plan is None:
        return []
    from mario.graphs.tables.features import FeaturePlan

    found, start = [], 0
    for part in FeaturePlan.load(card.folder / card.plan).parts:
        places = {start + place: name for place, name in enumerate(part.names)}
        start += len(places)
        gaps = {place: name for place, name in places.items() if name == f"{part.column}{MISSING}"}
        found += [Feature(name, (place,), (name,), "missing") for place, name in gaps.items()]
        kept = {place: name for place, name in places.items() if place not in gaps}
        if kept:
            found.append(Feature(part.column, tuple(kept), tuple(kept.values())))
    return found


def _kind(name: str) -> str:
    return "missing" if name.endswith(MISSING) else "feature"
