"""GraphSAGE's neighbor sampler."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import check_count
from mario.draws import check_generator
from mario.errors import MarioError
from mario.graphs.csr import CSR
from mario.graphs.samplers.sampler import Sampler
from mario.graphs.subgraph import as_ids
from mario.graphs.walks import draw_distinct


class Neighbors(Sampler):
    """Seed nodes and a sampled neighborhood around them, from `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_ (GraphSAGE).

    In hop k every node that hop k − 1 found draws ``fanouts[k]`` of its incoming edges without replacement, or takes
    all of them if it has no more. The batch holds only the drawn edges: an encoder with ``len(fanouts)`` layers embeds
    the seeds, and the other nodes serve as their context. Seeds come first, in the order they were drawn, and
    ``seed_mask`` marks them.

    Args:
        data: The graph.
        seeds: Seed nodes per batch (the last batch of an epoch may hold fewer).
        fanouts: Incoming edges per node, for each hop; -1 takes all.
        nodes: int64 ids or bool mask of the nodes that may be seeds; ``None`` means all.

    Example:
        >>> star = Data(x=torch.eye(5), edge_index=torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]]))
        >>> batch = Neighbors(star, seeds=1, fanouts=[2], nodes=torch.tensor([0])).sample()
        >>> batch.n_id[0].item(), batch.edge_index.sort().values.tolist(), batch.seed_mask.tolist()
        (0, [[1, 2], [0, 0]], [True, False, False])
    """

    def __init__(self, data: Data, *, seeds: int, fanouts: Sequence[int], nodes: Tensor | None = None) -> None:
        super().__init__(data)
        self.seeds = check_count("seeds", seeds)
        if not isinstance(fanouts, Sequence) or isinstance(fanouts, str):
            raise MarioError(f"fanouts must be a list of one number per hop, such as [15, 10], got {fanouts!r}")
        self.fanouts = tuple(fanouts)
        if not self.fanouts:
            raise MarioError("fanouts is empty; pass one number of neighbors per hop, such as [15, 10]")
        for fanout in self.fanouts:
            if isinstance(fanout, bool) or not isinstance(fanout, int) or fanout < -1:
                raise MarioError(f"fanouts must hold integers of at least 0, or -1 for all, got {fanout!r}")
        self._seed_nodes = None if nodes is None else _seed_nodes(nodes, self.num_nodes)
        self._csr = CSR(data.edge_index, self.num_nodes, by="target", ids=bool(self._edge_keys))
        self._position = torch.full((self.num_nodes,), -1, dtype=torch.int64, device=data.edge_index.device)

    def sample(self, generator: torch.Generator | None = None) -> Data:
        check_generator(generator)
        return self.around(self._seeds(draw_distinct(self._candidates, self.seeds, generator)), generator)

    def epoch(self, generator: torch.Generator | None = None) -> Iterator[Data]:
        check_generator(generator)
        for chosen in torch.randperm(self._candidates, generator=generator).split(self.seeds):
            yield self.around(self._seeds(chosen), generator)

    def around(self, seeds: Tensor, generator: torch.Generator | None = None) -> Data:
        """The batch of these seeds, distinct node ids, in this order."""
        seeds = _seed_nodes(seeds, self.num_nodes)
        found, edges, frontier, count = [seeds], [], seeds, 0
        try:
            for fanout in self.fanouts:
                self._position[frontier] = torch.arange(count, count + frontier.numel(), device=seeds.device)
                count += frontier.numel()
                slots, owner = self._draw(frontier, fanout, generator)
                sources = self._csr.ends(slots)
                edges.append((sources, frontier[owner], slots))
                frontier = sources[self._position.index_select(0, sources) < 0].unique()
                found.append(frontier)
            self._position[frontier] = torch.arange(count, count + frontier.numel(), device=seeds.device)
            nodes = torch.cat(found)
            sources, targets, slots = (torch.cat(parts) for parts in zip(*edges, strict=True))
            edge_index = self._position.index_select(0, torch.cat([sources, targets])).view(2, -1)
        finally:
            self._position[torch.cat(found)] = -1
        batch = self.batch(nodes, edge_index, self._csr.ids(slots))
        batch.seed_mask = torch.arange(nodes.numel(), device=seeds.device) < seeds.numel()
        return batch

    @property
    def _candidates(self) -> int:
        return self.num_nodes if self._seed_nodes is None else self._seed_nodes.numel()

    def _seeds(self, chosen: Tensor) -> Tensor:
        chosen = chosen.to(self._position.device)
        return chosen if self._seed_nodes is None else self._seed_nodes[chosen]

    def _draw(self, nodes: Tensor, fanout: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Slots of at most ``fanout`` incoming edges of each node, and the position in ``nodes`` of their owner."""
        if fanout == -1:
            return self._csr.slots(nodes)
        degrees = self._csr.degrees(nodes)
        few, many = (degrees <= fanout).nonzero().view(-1), (degrees > fanout).nonzero().view(-1)
        slots, owner = self._csr.slots(nodes[few])
        drawn = self._csr.starts[nodes[many]].unsqueeze(1) + _draw_without_replacement(degrees[many], fanout, generator)
        return torch.cat([slots, drawn.reshape(-1)]), torch.cat([few[owner], many.repeat_interleave(fanout)])


def _draw_without_replacement(sizes: Tensor, draws: int, generator: torch.Generator | None) -> Tensor:
    """For each size n > ``draws``, ``draws`` distinct numbers below n: [sizes, draws].

    Floyd's algorithm (Bentley & Floyd, CACM 1987) on all rows at once, so that a hub costs no more than other nodes.
    """
    uniform = torch.rand((draws, sizes.numel()), dtype=torch.float64, generator=generator).to(sizes.device)
    chosen = torch.empty((draws, sizes.numel()), dtype=torch.int64, device=sizes.device)
    for k in range(draws):
        last = sizes - draws + k
        candidate = (uniform[k] * (last + 1)).long()
        taken = (chosen[:k] == candidate).any(dim=0)
        chosen[k] = torch.where(taken, last, candidate)
    return chosen.t()


def _seed_nodes(nodes: Tensor, num_nodes: int) -> Tensor:
    nodes = as_ids("nodes", nodes, num_nodes)
    if not nodes.numel():
        raise MarioError("nodes is empty; allow at least one node as a seed")
    if nodes.unique().numel() != nodes.numel():
        raise MarioError("nodes holds a node twice; pass distinct node ids")
    return nodes
