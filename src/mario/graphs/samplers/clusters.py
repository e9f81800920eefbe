"""Cluster-GCN's sampler."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import check_count
from mario.draws import check_generator
from mario.errors import MarioError
from mario.graphs.csr import CSR
from mario.graphs.partition import choose_method, partition
from mario.graphs.samplers.sampler import Sampler
from mario.graphs.walks import draw_distinct


class Clusters(Sampler):
    """Unions of clusters of the graph, from `"Cluster-GCN: An Efficient Algorithm for Training Deep and Large Graph
    Convolutional Networks" <https://arxiv.org/abs/1905.07953>`_ (stochastic multiple partitions).

    The graph is partitioned once. A batch is the subgraph induced by ``per_batch`` clusters, drawn without replacement,
    including the edges between them. Its nodes are ascending. An epoch holds every node once.

    Args:
        data: The graph; the partition ignores the direction and weight of edges.
        clusters: Number of clusters, at most the number of nodes.
        per_batch: Clusters per batch (the last batch of an epoch may hold fewer).
        method: How to partition, see :func:`mario.graphs.partition.partition`: ``"metis"`` needs the package
            ``pymetis``, ``"bfs"`` needs no package and cuts more edges, ``"auto"`` is METIS if installed.

    Attributes:
        partition: int64 [N], the cluster of each node.
        clusters: Number of clusters; fewer than requested if METIS left some empty.
        method: The method used.

    Example:
        >>> path = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
        >>> sorted(batch.n_id.tolist() for batch in Clusters(path, clusters=2, method="bfs").epoch())
        [[0, 1], [2, 3]]
    """

    def __init__(self, data: Data, *, clusters: int, per_batch: int = 1, method: str = "auto") -> None:
        super().__init__(data)
        check_count("clusters", clusters)
        check_count("per_batch", per_batch)
        if clusters > self.num_nodes:
            raise MarioError(f"clusters={clusters} is more than the graph's {self.num_nodes} nodes")
        if per_batch > clusters:
            raise MarioError(f"per_batch={per_batch} is more than clusters={clusters}")
        self.method = choose_method(method)
        device = data.edge_index.device
        parts = partition(data.edge_index, self.num_nodes, clusters, self.method).to(device)
        _, self.partition, sizes = parts.unique(return_inverse=True, return_counts=True)
        self.clusters, self.per_batch = sizes.numel(), min(per_batch, sizes.numel())
        self._members = self.partition.argsort(stable=True).split(sizes.tolist())
        self._csr = CSR(data.edge_index, self.num_nodes)
        self._position = torch.full((self.num_nodes,), -1, dtype=torch.int64, device=device)

    def sample(self, generator: torch.Generator | None = None) -> Data:
        check_generator(generator)
        return self._union(draw_distinct(self.clusters, self.per_batch, generator))

    def epoch(self, generator: torch.Generator | None = None) -> Iterator[Data]:
        check_generator(generator)
        for chosen in torch.randperm(self.clusters, generator=generator).split(self.per_batch):
            yield self._union(chosen)

    def _union(self, chosen: Tensor) -> Data:
        nodes = torch.cat([self._members[cluster] for cluster in chosen.tolist()]).sort().values
        return self.batch(nodes, *self._csr.induced(nodes, self._position))
