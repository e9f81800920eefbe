"""Features of nodes that have none: what can be said of a node from the edges around it, in bounded memory."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

NAMES = ("degree", "neighbors' mean degree", "neighbors' least degree", "neighbors' largest degree", "no edges")
"""What the features are. Degrees are log(1 + degree); they depend on the node's neighborhood only, so that they mean
the same in every graph."""
DIGEST = "structure-1"
"""What stands for the plan of these features in a card."""
_EDGES = 1 << 21


def structural_features(home: Path) -> Iterator[NDArray[np.float32]]:
    """The features of all nodes, in blocks, from ``edge_index.npy`` and ``starts.npy`` in a folder."""
    starts = np.load(home / "starts.npy")
    degrees = np.log1p(np.diff(starts)).astype(np.float32)
    begin, count = 0, len(degrees)
    while begin < count:
        limit = int(starts[begin]) + _EDGES
        end = max(begin + 1, int(np.searchsorted(starts, limit, side="right")) - 1)
        end = min(end, begin + _EDGES, count)
        # A new map for each block, so that its pages are given back.
        targets = np.load(home / "edge_index.npy", mmap_mode="r")[1, starts[begin] : starts[end]]
        near = degrees[targets]
        made = np.zeros((end - begin, len(NAMES)), np.float32)
        made[:, 0] = degrees[begin:end]
        there = np.flatnonzero(starts[begin + 1 : end + 1] > starts[begin:end])
        if len(there):
            places = starts[begin:end][there] - starts[begin]
            sizes = np.diff(starts[begin : end + 1])[there]
            made[there, 1] = np.add.reduceat(near.astype(np.float64), places) / sizes
            made[there, 2] = np.minimum.reduceat(near, places)
            made[there, 3] = np.maximum.reduceat(near, places)
        made[:, 4] = np.diff(starts[begin : end + 1]) == 0
        yield made
        begin = end
