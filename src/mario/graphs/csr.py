"""A graph's edges grouped by node, so that work on a few nodes costs what those nodes' edges cost."""

import torch
from torch import Tensor

from mario.graphs.paging import gather, mapping_of


class CSR:
    """The edges of ``edge_index`` in compressed rows: one row a source node (or a target node).

    Built once in O(E log E), in O(E) and without a copy where the edges already are in that order. Lookups use
    ``index_select``, which is three times as fast as indexing on a CPU. The edges of a graph on disk
    (`mario.graphs.mapped`) stay there, and nothing is built: they are stored in rows.

    Args:
        edge_index: int64 [2, E].
        num_nodes: number of rows.
        by: ``"source"``, row v holds the edges that leave v; ``"target"``, those that enter it.
        ids: whether ``edge_ids`` will be asked for. The rows by target of a symmetric graph on disk are those by
            source, but in them an edge stands where its reverse does.

    Attributes:
        starts: int64 [N + 1]; row v is the slots ``starts[v]`` to ``starts[v + 1]``.
        others: int64 [E]; the node at the other end of the edge in each slot.
        edge_ids: int64 [E], the edge's column in ``edge_index``; ``None`` where slot and column are the same.

    Example:
        >>> csr = CSR(torch.tensor([[2, 0, 0], [0, 1, 2]]), num_nodes=3)
        >>> csr.starts.tolist(), csr.others.tolist(), csr.edge_ids.tolist()
        ([0, 2, 2, 3], [1, 2, 0], [1, 2, 0])
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, by: str = "source", *, ids: bool = True) -> None:
        stored = mapping_of(edge_index)
        if stored is not None and stored.starts is not None and (by == "source" or (stored.symmetric and not ids)):
            self.starts, self.others, self.edge_ids = stored.starts, edge_index[1], None
            return
        rows, others = edge_index if by == "source" else edge_index.flip(0)
        self.edge_ids = None
        if bool((rows[1:] < rows[:-1]).any()):
            rows, self.edge_ids = rows.sort(stable=True)
            others = others[self.edge_ids]
        self.others = others
        self.starts = torch.zeros(num_nodes + 1, dtype=torch.int64, device=rows.device)
        torch.cumsum(torch.bincount(rows, minlength=num_nodes), 0, out=self.starts[1:])

    def degrees(self, nodes: Tensor) -> Tensor:
        """How many edges the rows of ``nodes`` hold."""
        return self.starts.index_select(0, nodes + 1) - self.starts.index_select(0, nodes)

    def slots(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """All slots of the rows of ``nodes``, and for each the position in ``nodes`` that it belongs to."""
        counts = self.degrees(nodes)
        owner = torch.repeat_interleave(torch.arange(nodes.numel(), device=nodes.device), counts)
        shift = self.starts.index_select(0, nodes) - (counts.cumsum(0) - counts)
        return torch.arange(owner.numel(), device=nodes.device) + shift.index_select(0, owner), owner

    def ends(self, slots: Tensor) -> Tensor:
        """The nodes at the other ends of the edges in ``slots``."""
        return gather(self.others, slots)

    def ids(self, slots: Tensor) -> Tensor:
        """Columns of ``edge_index`` of the edges in ``slots``."""
        return slots if self.edge_ids is None else self.edge_ids.index_select(0, slots)

    def induced(self, nodes: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
        """Edges with both ends in ``nodes``, relabeled by position in it, and their ids, in the order of edges.

        Needs ``by="source"``. ``position`` is a scratch int64 [N] of -1 and is left as such; passing it in keeps the
        cost at that of the rows of ``nodes``.
        """
        slots, source = self.slots(nodes)
        try:
            position[nodes] = torch.arange(nodes.numel(), device=nodes.device)
            target = position.index_select(0, self.ends(slots))
        finally:
            position[nodes] = -1
        kept = (target >= 0).nonzero().view(-1)
        edge_index = torch.stack([source.index_select(0, kept), target.index_select(0, kept)])
        edge_ids = self.ids(slots.index_select(0, kept))
        if bool((edge_ids[1:] < edge_ids[:-1]).any()):
            edge_ids, order = edge_ids.sort()
            edge_index = edge_index.index_select(1, order)
        return edge_index, edge_ids
