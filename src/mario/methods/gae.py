"""GAE."""

import dataclasses

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from mario.contrast import edge_reconstruction, full_reconstruction
from mario.errors import MarioError
from mario.graphs.non_edges import sample_non_edges
from mario.methods.base import Method, register
from mario.methods.settings import setting


@register("gae")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class GAE(Method):
    """Graph auto-encoder (Kipf & Welling, Variational Graph Auto-Encoders, 2016).

    The inner product of two embeddings says how probable an edge is. The paper weighs all N² pairs so that edges and
    non-edges count alike (``reconstruction="full"``); with as many sampled non-edges as there are edges the estimate is
    unbiased and its cost is linear in the graph.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> GAE(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    reconstruction: str = setting("sampled", choices=("sampled", "full"), help="all edges and as many sampled non-edges, or all N² pairs in tiles (paper; time N²)")
    # fmt: on

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        z = self.encoder_(batch.x, batch.edge_index, generator)
        loss = self.reconstruct(z, batch, generator)
        loss.backward()
        return {"loss": loss.item()}

    def reconstruct(self, z: Tensor, batch: Data, generator: torch.Generator | None = None) -> Tensor:
        """The loss of predicting the edges of ``batch`` from ``z``."""
        edge_index = batch.edge_index
        if "seed_mask" in batch:  # of a sampled neighborhood only the seeds have all the neighbors they should have
            edge_index, _ = subgraph(batch.seed_mask, edge_index, relabel_nodes=True, num_nodes=z.size(0))
            z = z[batch.seed_mask]
        if z.size(0) < 2:
            raise MarioError(f"{self.name} predicts which pairs are joined and cannot be trained on one node")
        if self.reconstruction == "full":
            return full_reconstruction(z, edge_index)
        # Where there is no edge at all, non-edges still say what is far apart.
        non_edges = sample_non_edges(edge_index, z.size(0), edge_index.size(1) or z.size(0), generator)
        return edge_reconstruction(z, edge_index, non_edges)
