"""The rows whose vectors are nearest to those of others: exactly, or by an index where all pairs are too many."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from mario.embedder.embedding import MEMORY, embed
from mario.embedder.folder import IDS, ModelFolder
from mario.embedder.ids import Ids
from mario.embedder.reading import Given
from mario.errors import MarioError

PAIRS = 2**34
"""Multiplications up to which all pairs are compared; more are left to an index if usearch is installed."""
_AT_ONCE = 2**26
_CONNECTIVITY, _SEARCHED = 32, 256


@dataclasses.dataclass(frozen=True)
class Vectors:
    """Rows to search among.

    Attributes:
        z: Vectors of unit length, float32 ``[rows, width]``.
        ids: Of the rows.
        of: What they are of.
        place: The row of ``z`` of each row of the graph, -1 if it has none; ``None`` if all are there in order.
    """

    z: Tensor
    ids: Ids
    of: str
    place: Tensor | None = None

    def find(self, text: str) -> int:
        """The row of ``z`` of an id; `MarioError` if it is not there."""
        row = self.ids.find(text)
        if self.place is None:
            return row
        found = int(self.place[row])
        if found < 0:
            raise MarioError(
                f"the model keeps the vectors of {len(self.z):,} of {len(self.place):,} nodes, not that of {text!r}: "
                "name its graph with --graph"
            )
        return found


def vectors(
    folder: ModelFolder,
    graph: Given | None = None,
    *,
    root: Path | None = None,
    memory: int = MEMORY,
    device: str = "cpu",
) -> Vectors:
    """The vectors that the model keeps of the graph of the fit, or those of another graph.

    Blocks of more than 1,024 columns are projected to 256, which keeps distances.
    """
    if graph is not None:
        found = embed(folder, graph, root=root, memory=memory, device=device)
        return Vectors(F.normalize(found.dense(narrow=True)), found.ids, found.graph.name)
    kept = folder.training()
    rows = folder.about.graph.nodes if IDS in folder.about.files else int(kept.rows.max()) + 1
    ids = folder.ids() if IDS in folder.about.files else Ids(rows)
    place = None
    if len(kept.rows) < rows or not bool((kept.rows == torch.arange(len(kept.rows))).all()):
        place = torch.full((rows,), -1)
        place[kept.rows] = torch.arange(len(kept.rows))
    return Vectors(F.normalize(kept.z.float()), ids, folder.about.graph.name, place)


def nearest(
    z: Tensor,
    queries: Tensor,
    k: int,
    *,
    approximate: bool | None = None,
    watch: Callable[[int, int], object] | None = None,
) -> tuple[Tensor, Tensor]:
    """The ``k`` rows nearest to each row in ``queries``, the row itself left out: rows and cosines, nearest first.

    Rows that are equally near are in the order of their numbers.

    Args:
        z: Vectors of unit length ``[rows, width]``.
        queries: Row numbers.
        k: How many; fewer if there are fewer other rows.
        approximate: Search an index of usearch (HNSW) instead of comparing all pairs. ``None`` decides by their number
            and by whether usearch is installed.
        watch: Called with the queries done and all of them.

    Example:
        >>> z = F.normalize(torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]))
        >>> rows, cosines = nearest(z, torch.tensor([0]), 2)
        >>> rows.tolist(), cosines.round(decimals=2).tolist()
        ([[1, 2]], [[1.0, 0.0]])
    """
    if k < 1:
        raise MarioError(f"k must be at least 1, got {k}")
    k = min(k, len(z) - 1)
    if k < 1:
        raise MarioError("there is one row only, which has no neighbors")
    watch = watch or (lambda done, total: None)
    if approximate is None:
        approximate = len(z) * len(queries) * z.size(1) > PAIRS and _usearch(required=False) is not None
    return (_by_index if approximate else _exact)(z, queries, k, watch)


def _exact(z: Tensor, queries: Tensor, k: int, watch: Callable[[int, int], object]) -> tuple[Tensor, Tensor]:
    found, cosines = [], []
    for part in queries.split(max(1, _AT_ONCE // len(z))):
        near = z[part] @ z.T
        near[torch.arange(len(part)), part] = -2
        top = near.topk(k)
        # Of ties, topk takes any: take the first.
        least = top.values[:, -1:]
        if bool(((near == least).sum(1) > (top.values == least).sum(1)).any()):
            order = near.argsort(dim=1, descending=True, stable=True)[:, :k]
        else:
            order = top.indices.gather(1, _ordered(top.values, top.indices))
        found.append(order)
        cosines.append(near.gather(1, order))
        watch(sum(map(len, found)), len(queries))
    return torch.cat(found), torch.cat(cosines)


def _ordered(values: Tensor, rows: Tensor) -> Tensor:
    """An order by value, largest first, then by row."""
    by_row = rows.argsort(1)
    return by_row.gather(1, values.gather(1, by_row).argsort(dim=1, descending=True, stable=True))


def _by_index(z: Tensor, queries: Tensor, k: int, watch: Callable[[int, int], object]) -> tuple[Tensor, Tensor]:
    index_type = _usearch(required=True)
    index = index_type(
        ndim=z.size(1),
        metric="ip",
        dtype="f32",
        connectivity=_CONNECTIVITY,
        expansion_add=_SEARCHED,
        expansion_search=max(_SEARCHED, 4 * k),
    )
    vectors = np.ascontiguousarray(z.numpy())
    step = 20_000
    for first in range(0, len(z), step):
        last = min(first + step, len(z))
        # One thread: the graph of an index that several threads build differs from time to time.
        index.add(np.arange(first, last), vectors[first:last], threads=1)
        watch(last // 2 * len(queries) // len(z), len(queries))
    found = torch.full((len(queries), k), -1)
    for first in range(0, len(queries), step):
        part = queries[first : first + step]
        matches = index.search(vectors[part.numpy()], min(k + 1, len(z)))
        keys = torch.from_numpy(np.asarray(matches.keys).astype(np.int64)).view(len(part), -1)
        own = keys == part[:, None]
        own[~own.any(1), -1] = True  # it did not find itself
        found[first : first + len(part)] = keys[~own].view(len(part), -1)[:, :k]
        watch((len(z) // 2 * len(queries) // len(z) + first + len(part)) // 2, len(queries))
    cosines = torch.cat(
        [(z[rows] * z[part][:, None]).sum(2) for rows, part in zip(found.split(1000), queries.split(1000), strict=True)]
    )
    order = _ordered(cosines, found)
    return found.gather(1, order), cosines.gather(1, order)


def _usearch(*, required: bool) -> Any:
    try:
        from usearch.index import Index
    except ImportError:
        if required:
            raise MarioError(
                "an index needs usearch: pip install 'mario-gcl[neighbors]', or leave --approximate out"
            ) from None
        return None
    return Index


def recall(z: Tensor, k: int, *, sample: int = 1000) -> tuple[float, float]:
    """The share of the ``k`` nearest rows that an index finds, of a sample of rows, and the seconds that it took."""
    queries = torch.randperm(len(z), generator=torch.Generator().manual_seed(0))[:sample]
    exact, _ = nearest(z, queries, k, approximate=False)
    began = time.monotonic()
    found, _ = nearest(z, queries, k, approximate=True)
    seconds = time.monotonic() - began
    return float((found[:, :, None] == exact[:, None, :]).any(2).float().mean()), seconds
