"""Embedding layer by layer with edges, messages and embeddings in files.

Rows of neighbors are read at random, which is slow on disk. So messages are in memory when they are summed, but only a
panel of columns at a time. Files are read and written in order.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mario.encoders.propagation import Propagation
from mario.encoders.stored_adjacency import StoredAdjacency
from mario.graphs.features import FeatureMatrix, rows_of
from mario.graphs.paging import release
from mario.graphs.scratch import Panels, Scratch

if TYPE_CHECKING:
    from mario.encoders.encoder import Encoder

_EDGE_BYTES = 40
"""Bytes per edge while :func:`mario.encoders.adjacency.normalized_adjacency` sorts them."""


def bytes_in_memory(encoder: "Encoder", x: FeatureMatrix, edge_index: Tensor) -> int:
    """About the bytes that embedding takes without files: messages, embeddings and the sorted edges."""
    return 2 * x.size(0) * encoder.hidden_channels * x.dtype.itemsize + _EDGE_BYTES * edge_index.size(1)


def embed_on_disk(
    encoder: "Encoder",
    x: FeatureMatrix,
    edge_index: Tensor,
    edge_weight: Tensor | None,
    scratch: Scratch,
    block: int,
) -> Tensor:
    """What ``encoder`` makes of a graph, as a tensor on disk; ``block`` nodes at most are worked on at once."""
    nodes, dtype = x.size(0), x.dtype
    adjacency = StoredAdjacency(edge_index, nodes, encoder.normalization, dtype, edge_weight, scratch)
    blocks = list(adjacency.blocks(block))
    h = scratch.tensor(nodes, encoder.hidden_channels, dtype)
    for i, conv in enumerate(encoder.convs):
        own = h if i else x
        sent: Panels | None = None
        scores = []
        for rows in blocks:
            part = encoder.messages(conv, rows_of(own, rows))
            sent = sent or scratch.panels(nodes, part.size(1), dtype, memory=scratch.memory // 2)
            sent.write(rows, part)
            scores.append(encoder.node_scores(conv, part))
            _release(own)
        assert sent is not None
        every = torch.cat(scores)
        _spread(sent, blocks, partial(encoder.stored_route, conv, adjacency, every))
        for rows in blocks:
            got = encoder.transformed(conv, sent.read(rows))
            h[rows] = encoder.finish(i, encoder.receive(conv, got, rows_of(own, rows)))
            release(h)
            _release(own)
    return h


def hops_on_disk(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, hops: int, scratch: Scratch, block: int
) -> list[Tensor]:
    """The means of ``x`` over the neighbors of each node, the means of these, and so on: ``hops`` tensors on disk."""
    nodes = x.size(0)
    adjacency = StoredAdjacency(edge_index, nodes, "mean", x.dtype, edge_weight, scratch)
    blocks = list(adjacency.blocks(block))
    sent = scratch.panels(nodes, x.size(1), x.dtype, memory=scratch.memory // 2)
    for rows in blocks:
        sent.write(rows, x[rows])
        release(x)
    found = []
    for _ in range(hops):
        _spread(sent, blocks, lambda rows: Propagation((rows.stop - rows.start, nodes), csr=adjacency.rows(rows)))
        mean = scratch.tensor(nodes, x.size(1), x.dtype)
        for rows in blocks:
            mean[rows] = sent.read(rows)
            release(mean)
        found.append(mean)
    return found


def _spread(sent: Panels, blocks: list[slice], route: Callable[[slice], Callable[[Tensor], Tensor]]) -> None:
    """Replace what each node sends by what it gets. The panel that is read at random is in memory meanwhile."""
    for number in range(len(sent)):
        panel = sent.panel(number)
        for rows in blocks:
            sent.write_panel(number, rows, route(rows)(panel))
        del panel  # before the next is read


def _release(own: FeatureMatrix) -> None:
    if isinstance(own, Tensor):
        release(own)
