"""Cluster-GCN's sampler."""

import importlib.util
from collections.abc import Iterator

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.csr import CSR
from mario.graphs.samplers.sampler import Sampler, check_count
from mario.graphs.walks import draw_distinct

METHODS = ("auto", "metis", "bfs")


class Clusters(Sampler):
    """Unions of clusters of the graph, from `"Cluster-GCN: An Efficient Algorithm for Training Deep and Large Graph
    Convolutional Networks" <https://arxiv.org/abs/1905.07953>`_ (stochastic multiple partitions).

    The graph is partitioned once; a batch is the subgraph that ``per_batch`` clusters drawn without replacement induce,
    the edges between them included. Its nodes are ascending. An epoch holds every node once.

    Args:
        data: the graph; the direction of edges plays no part in the partition.
        clusters: number of clusters, at most the number of nodes.
        per_batch: clusters a batch (the last batch of an epoch may hold fewer).
        method: ``"metis"`` minimises the edges cut and needs the package ``pymetis``. ``"bfs"`` numbers the nodes
            breadth-first from a peripheral node (reverse Cuthill-McKee, one component after another) and cuts that
            order into pieces whose sizes differ by at most one: faster, cuts more. ``"auto"`` is METIS where installed.

    Attributes:
        partition: int64 [N], each node's cluster.
        clusters: the number of clusters; fewer than asked for where METIS left some empty.

    Example:
        >>> path = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
        >>> sorted(batch.n_id.tolist() for batch in Clusters(path, clusters=2, per_batch=1, method="bfs").epoch())
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
        if method not in METHODS:
            raise MarioError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
        installed = importlib.util.find_spec("pymetis") is not None
        if method == "metis" and not installed:
            raise MarioError(
                "method='metis' needs pymetis, which is not installed: "
                "pip install 'mario-gcl[clusters]', or take method='bfs'"
            )
        self.method = ("metis" if installed else "bfs") if method == "auto" else method
        device = data.edge_index.device
        neighbours = _undirected(data.edge_index, self.num_nodes)
        parts = (_metis if self.method == "metis" else _breadth_first)(neighbours, clusters)
        _, self.partition, sizes = torch.from_numpy(parts).to(device).unique(return_inverse=True, return_counts=True)
        self.clusters, self.per_batch = sizes.numel(), min(per_batch, sizes.numel())
        self._nodes = self.partition.argsort(stable=True)
        self._ends = sizes.cumsum(0)
        self._starts = self._ends - sizes
        self._csr = CSR(data.edge_index, self.num_nodes)
        self._position = torch.full((self.num_nodes,), -1, dtype=torch.int64, device=device)

    def sample(self, generator: torch.Generator | None = None) -> Data:
        return self._union(draw_distinct(self.clusters, self.per_batch, generator))

    def epoch(self, generator: torch.Generator | None = None) -> Iterator[Data]:
        for chosen in torch.randperm(self.clusters, generator=generator).split(self.per_batch):
            yield self._union(chosen)

    def _union(self, chosen: Tensor) -> Data:
        parts = [self._nodes[self._starts[cluster] : self._ends[cluster]] for cluster in chosen.tolist()]
        nodes = torch.cat(parts).sort().values
        return self.batch(nodes, *self._csr.induced(nodes, self._position))


def _undirected(edge_index: Tensor, num_nodes: int) -> csr_matrix:
    """The graph's symmetric adjacency without self-loops, each pair stored once a direction."""
    source, target = edge_index.cpu().numpy()
    loop = source == target
    source, target = source[~loop], target[~loop]
    ones = np.ones(source.size, dtype=np.int8)
    adjacency = csr_matrix((ones, (source, target)), shape=(num_nodes, num_nodes))
    adjacency.data[:] = 1  # the constructor adds up parallel edges, beyond int8 if there are many
    return adjacency + adjacency.T


def _metis(neighbours: csr_matrix, clusters: int) -> np.ndarray:
    import pymetis

    if clusters == 1:
        return np.zeros(neighbours.shape[0], dtype=np.int64)
    adjacency = pymetis.CSRAdjacency(adj_starts=neighbours.indptr, adjacent=neighbours.indices)
    _, parts = pymetis.part_graph(clusters, adjacency=adjacency)
    return np.asarray(parts, dtype=np.int64)


def _breadth_first(neighbours: csr_matrix, clusters: int) -> np.ndarray:
    num_nodes = neighbours.shape[0]
    parts = np.empty(num_nodes, dtype=np.int64)
    order = reverse_cuthill_mckee(neighbours, symmetric_mode=True)
    parts[order] = np.arange(num_nodes) * clusters // num_nodes
    return parts
