"""The labels that a part of a split has. Nodes without one are in the masks too, as ``y`` = -1."""

import copy

from torch_geometric.data import Data

from mario.graphs.rules import PARTS


def labeled_parts(data: Data) -> Data:
    """``data`` with the labeled nodes of each mask only; a part without a label has no mask.

    Whatever is fitted to labels or scored by them reads these masks; training without labels reads those of ``data``.

    Example:
        >>> import torch
        >>> data = Data(y=torch.tensor([1, -1]), train_mask=torch.ones(2, dtype=torch.bool))
        >>> labeled_parts(data).train_mask.tolist()
        [True, False]
    """
    masks = {key: data[key] for part in PARTS if data.get(key := f"{part}_mask") is not None}
    y = data.get("y")
    if y is not None and not any(bool((y[mask] < 0).any()) for mask in masks.values()):
        return data
    found = copy.copy(data)
    for key, mask in masks.items():
        known = None if y is None else mask & (y >= 0)
        if known is None or not bool(known.any()):
            del found[key]
        else:
            found[key] = known
    return found
