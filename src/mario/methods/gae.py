"""GAE."""

import dataclasses

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from mario.contrast import edge_reconstruction, full_reconstruction
from mario.encoders.apply import encode
from mario.errors import MarioError
from mario.graphs.non_edges import sample_non_edges
from mario.methods.base import Method
from mario.methods.registry import register
from mario.methods.settings import setting


@register("gae")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class GAE(Method):
    """Graph auto-encoder (Kipf & Welling, Variational Graph Auto-Encoders, 2016).

    The inner product of two embeddings is the logit of an edge. The paper weights all N² pairs so that edges and
    non-edges count equally (``reconstruction="full"``). With as many sampled non-edges as edges the estimate is
    unbiased, and its cost is linear in the size of the graph.

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
        loss = self.reconstruct(encode(self.encoder_, batch, generator), batch, generator)
        loss.backward()
        return {"loss": loss.item()}

    def reconstruct(self, z: Tensor, batch: Data, generator: torch.Generator | None = None) -> Tensor:
        """The loss of predicting the edges of ``batch`` from ``z``."""
        edge_index = batch.edge_index
        if "seed_mask" in batch:  # in a sampled neighborhood only the seeds have all their neighbors
            edge_index, _ = subgraph(batch.seed_mask, edge_index, relabel_nodes=True, num_nodes=z.size(0))
            z = z[batch.seed_mask]
        if z.size(0) < 2:
            raise MarioError(
                f"{self.name} predicts which pairs of nodes have an edge and cannot be trained on one node"
            )
        if self.reconstruction == "full":
            return full_reconstruction(z, edge_index)
        # Without any edge, non-edges still say which nodes are far apart.
        non_edges = sample_non_edges(edge_index, z.size(0), edge_index.size(1) or z.size(0), generator)
        return edge_reconstruction(z, edge_index, non_edges)
