"""The names of the columns of ``x``, and which of them belong together."""

from torch_geometric.data import Data

from mario.audit.measures import Feature
from mario.embedder.sources import Source


def features_of(data: Data, source: Source | None = None) -> list[Feature]:
    """The columns of the tables of a graph of one's own; else ``feature_names`` of ``data``, else ``x_0`` and so on.

    Example:
        >>> import torch
        >>> [feature.name for feature in features_of(Data(x=torch.eye(2)))]
        ['x_0', 'x_1']
    """
    width = int(data.x.size(1))
    found = [] if source is None or source.folder is None else _of_card(source, width)
    if found:
        return found
    named = data.get("feature_names")
    right = isinstance(named, list | tuple) and len(named) == width
    names = [str(name) for name in named] if right and named is not None else [f"x_{place}" for place in range(width)]
    return [Feature(name, (place,)) for place, name in enumerate(names)]


def _of_card(source: Source, width: int) -> list[Feature]:
    """The columns that the card names, if their widths add up to that of ``x``; nothing otherwise."""
    from mario.graphs.card import read_card

    assert source.folder is not None
    card = read_card(source.folder)
    wide = [one for one in card.columns.values() if one.features and one.table == "nodes"]
    if sum(one.features for one in wide) != width:
        return []
    found, start = [], 0
    for one in wide:
        columns = tuple(range(start, start + one.features))
        labels = (one.name,) if one.features == 1 else tuple(f"{one.name} {place}" for place in range(one.features))
        found.append(Feature(one.name, columns, labels))
        start += one.features
    return found
