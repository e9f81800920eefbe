"""No sampling: the batch is the graph."""

import copy
from collections.abc import Iterator

import torch
from torch_geometric.data import Data

from mario.graphs.paging import check_file
from mario.graphs.samplers.sampler import Sampler


class FullGraph(Sampler):
    """The whole graph as the only batch; tensors are shared with ``data``, not copied.

    Example:
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))
        >>> FullGraph(data).sample().n_id.tolist()
        [0, 1, 2]
    """

    def sample(self, generator: torch.Generator | None = None) -> Data:
        for _, value in self.data:
            check_file(value)
        batch = copy.copy(self.data)
        if "n_id" not in batch:
            batch.n_id = torch.arange(self.num_nodes, device=batch.edge_index.device)
        batch.num_nodes = self.num_nodes
        return batch

    def epoch(self, generator: torch.Generator | None = None) -> Iterator[Data]:
        yield self.sample(generator)
