"""GraphSAINT's random-walk sampler."""

from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import MOST_DRAWN, check_count
from mario.draws import check_generator
from mario.errors import MarioError
from mario.graphs.csr import CSR
from mario.graphs.samplers.sampler import Sampler
from mario.graphs.walks import random_walk


class RandomWalk(Sampler):
    """Subgraphs induced by the nodes that random walks visit, from `"GraphSAINT: Graph Sampling Based Inductive
    Learning Method" <https://arxiv.org/abs/1907.04931>`_ (Algorithm 2, RW).

    ``roots`` nodes are drawn uniformly with replacement. From each, a walk of ``length`` steps follows outgoing edges,
    drawn uniformly, and stays where there is none. The nodes of a batch are distinct and ascending.

    With ``normalize`` a batch has two more tensors, estimated from C, the counts of nodes and edges in S subgraphs
    drawn in advance (Section 3.2 of the paper):

    - ``node_norm`` [nodes], 1/λ_v = S / (C_v · N). The *sum* over the batch of ``node_norm`` × loss estimates the mean
      loss over all N nodes of the graph without bias.
    - ``edge_norm`` [edges], 1/α_uv = C_v / C_uv for the edge u → v. Messages along the edges of a batch, weighted by
      the *whole* graph's weights times ``edge_norm`` and summed, estimate v's sum over the whole graph without bias,
      given that v was sampled.

    A node or edge that no subgraph drawn in advance contains counts as seen once.

    Args:
        data: The graph.
        roots: Walks per batch.
        length: Steps per walk; the released code of MARIO uses the depth of the encoder.
        normalize: Estimate and attach ``node_norm`` and ``edge_norm``.
        pre_samples: S. ``None`` is ``coverage`` · N / (mean number of nodes of a subgraph), as in the paper.
        coverage: How often a node is drawn in advance on average: 50 in the paper, 100 in GOOD. It is PyG's
            ``sample_coverage``.
        edge_norm_by: The node whose count is divided by that of the edge: ``receiver`` v as in the paper, or ``sender``
            u as in PyG's ``GraphSAINTSampler``.
        batches: Batches per epoch. ``None`` draws until the batches together hold as many nodes as the graph.
        generator: Draws the subgraphs in advance.

    Example:
        >>> ring = Data(x=torch.eye(6), edge_index=torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]))
        >>> batch = RandomWalk(ring, roots=1, length=2).sample(torch.Generator().manual_seed(0))
        >>> batch.n_id.tolist(), batch.edge_index.tolist()
        ([2, 3, 4], [[0, 1], [1, 2]])
    """

    def __init__(
        self,
        data: Data,
        *,
        roots: int,
        length: int,
        normalize: bool = False,
        pre_samples: int | None = None,
        coverage: int = 50,
        edge_norm_by: Literal["receiver", "sender"] = "receiver",
        batches: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(data)
        self.roots = check_count("roots", roots, high=MOST_DRAWN)
        self.length = check_count("length", length, low=0, high=MOST_DRAWN)
        self.batches = None if batches is None else check_count("batches", batches)
        if pre_samples is not None:
            check_count("pre_samples", pre_samples)
            if not normalize:
                raise MarioError(f"pre_samples={pre_samples} has no effect without normalize=True")
        self._csr = CSR(data.edge_index, self.num_nodes)
        self._position = torch.full((self.num_nodes,), -1, dtype=torch.int64, device=data.edge_index.device)
        self.node_norm: Tensor | None = None
        self.edge_norm: Tensor | None = None
        check_count("coverage", coverage, high=MOST_DRAWN)
        if edge_norm_by not in ("receiver", "sender"):
            raise MarioError(f"edge_norm_by must be 'receiver' or 'sender', got '{edge_norm_by}'")
        if normalize:
            node_count, edge_count, drawn = self._count(pre_samples, coverage, generator)
            end = data.edge_index[0 if edge_norm_by == "sender" else 1]
            self.node_norm = drawn / (node_count * self.num_nodes)
            self.edge_norm = node_count[end] / edge_count

    def sample(self, generator: torch.Generator | None = None) -> Data:
        check_generator(generator)
        nodes = self._visited(generator)
        edge_index, edge_ids = self._csr.induced(nodes, self._position)
        batch = self.batch(nodes, edge_index, edge_ids)
        if self.node_norm is not None and self.edge_norm is not None:
            batch.node_norm, batch.edge_norm = self.node_norm[nodes], self.edge_norm[edge_ids]
        return batch

    def epoch(self, generator: torch.Generator | None = None) -> Iterator[Data]:
        drawn = seen = 0
        while seen < self.num_nodes if self.batches is None else drawn < self.batches:
            batch = self.sample(generator)
            drawn, seen = drawn + 1, seen + int(batch.num_nodes or 0)
            yield batch

    def _visited(self, generator: torch.Generator | None) -> Tensor:
        roots = torch.randint(self.num_nodes, (self.roots,), generator=generator).to(self._position.device)
        visited: Tensor = random_walk(self._csr, roots, self.length, generator).unique()
        return visited

    def _count(
        self, pre_samples: int | None, coverage: int, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor, int]:
        """How often nodes and edges are in subgraphs drawn in advance, at least 1, and the number of subgraphs."""
        node_count = torch.zeros(self.num_nodes, device=self._position.device)
        edge_count = torch.zeros(self.data.edge_index.size(1), device=self._position.device)
        drawn = seen = 0
        while seen < coverage * self.num_nodes if pre_samples is None else drawn < pre_samples:
            nodes = self._visited(generator)
            _, edge_ids = self._csr.induced(nodes, self._position)
            # Nodes are distinct within a subgraph, so that indexed addition counts each.
            node_count[nodes] += 1
            edge_count[edge_ids] += 1
            drawn, seen = drawn + 1, seen + nodes.numel()
        return node_count.clamp_(min=1), edge_count.clamp_(min=1), drawn
