"""Edges grouped by node, so that work on a few nodes costs as much as their edges."""

import torch
from torch import Tensor

from mario.graphs.paging import check_file, gather, mapping_of


class CSR:
    """The edges of ``edge_index`` in compressed rows, one row per source node (or target node).

    Built once in O(E log E), or in O(E) and without a copy if the edges already have that order. Lookups use
    ``index_select``, which is three times as fast as indexing on a CPU. The edges of a graph on disk
    (`mario.graphs.mapped`) are stored in rows, so that they stay there and nothing is built.

    Args:
        edge_index: int64 [2, E].
        num_nodes: Number of rows.
        by: ``"source"``: row v holds the edges that leave v; ``"target"``: those that enter v.
        ids: Whether ``edge_ids`` is needed. Without it, a symmetric graph on disk serves as its own rows by target, in
            which each edge is at the place of its reverse.

    Attributes:
        starts: int64 [N + 1]; row v is the slots ``starts[v]`` to ``starts[v + 1]``.
        others: int64 [E]; the node at the other end of the edge in each slot.
        edge_ids: int64 [E], the edge's column in ``edge_index``; ``None`` if slot and column are the same.

    Example:
        >>> csr = CSR(torch.tensor([[2, 0, 0], [0, 1, 2]]), num_nodes=3)
        >>> csr.starts.tolist(), csr.others.tolist(), csr.edge_ids.tolist()
        ([0, 2, 2, 3], [1, 2, 0], [1, 2, 0])
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, by: str = "source", *, ids: bool = True) -> None:
        stored = mapping_of(edge_index)
        if stored is not None and stored.starts is not None and (by == "source" or (stored.symmetric and not ids)):
            self.starts, self.others, self.edge_ids = stored.starts, edge_index[1], None
            check_file(self.starts)
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
        """The number of edges in the rows of ``nodes``."""
        check_file(self.starts)
        return self.starts.index_select(0, nodes + 1) - self.starts.index_select(0, nodes)

    def slots(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """All slots of the rows of ``nodes``, and the position in ``nodes`` of each slot's row."""
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
        """Edges with both ends in ``nodes``, relabeled by position in it, and their ids, in the original edge order.

        Needs ``by="source"``. ``position`` is an int64 [N] scratch buffer of -1, and is left that way. With it, the
        cost depends on the rows of ``nodes`` only.
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
