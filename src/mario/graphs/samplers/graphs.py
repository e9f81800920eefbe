"""Batches of whole graphs from a set of graphs."""

from collections.abc import Iterator

import torch
from torch_geometric.data import Data

from mario.arguments import check_count
from mario.draws import check_generator
from mario.graphs.graph_sets import GraphSet
from mario.graphs.samplers.sampler import Sampler
from mario.graphs.validation import check_set
from mario.graphs.walks import draw_distinct


class Graphs(Sampler):
    """Random sets of whole graphs: a batch has ``per_batch`` graphs, drawn without replacement.

    An epoch holds every graph once. If the set has fewer graphs than ``per_batch``, a batch is the whole set.

    Args:
        data: A set of graphs, see :func:`mario.graphs.graph_sets.stack_graphs`.
        per_batch: Graphs per batch (the last batch of an epoch may hold fewer).

    Example:
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0], [1]]), batch=torch.tensor([0, 0, 1]))
        >>> sorted(batch.n_id.tolist() for batch in Graphs(data, per_batch=1).epoch())
        [[0, 1], [2]]
    """

    def __init__(self, data: Data, *, per_batch: int) -> None:
        super().__init__(data)
        if "batch" in data:
            check_set(data)
        self._set = GraphSet(data)
        self.per_batch = min(check_count("per_batch", per_batch), self._set.num_graphs)

    def sample(self, generator: torch.Generator | None = None) -> Data:
        check_generator(generator)
        return self._set.select(draw_distinct(self._set.num_graphs, self.per_batch, generator).sort().values)

    def epoch(self, generator: torch.Generator | None = None) -> Iterator[Data]:
        check_generator(generator)
        for chosen in torch.randperm(self._set.num_graphs, generator=generator).split(self.per_batch):
            yield self._set.select(chosen.sort().values)
