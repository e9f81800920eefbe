"""GraphMAE."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv

from mario.contrast import scaled_cosine_error
from mario.encoders import propagation_of
from mario.encoders.apply import dense, encode
from mario.methods.base import Method
from mario.methods.registry import register
from mario.methods.settings import setting
from mario.views import DropEdges


@register("graphmae")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class GraphMAE(Method):
    """GraphMAE: Self-Supervised Masked Graph Autoencoders (Hou et al., KDD 2022).

    The features of some nodes are replaced by a learned mask token, or for a few of them by another node's features.
    The embeddings of the same nodes are masked again before a one-layer decoder, which has to reconstruct the features
    from the neighbors.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> GraphMAE(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    mask_rate: float = setting(0.5, low=0.0, high=1.0, search=(0.25, 0.5, 0.75), help="share of nodes that are masked, one at least")
    replace_rate: float = setting(0.05, low=0.0, high=1.0, search=(0.0, 0.05, 0.1, 0.15), help="share of masked nodes that get another node's features instead of the token")
    exponent: float = setting(3.0, low=1.0, search=(1.0, 2.0, 3.0), help="γ of the scaled cosine error")
    drop_edges: float = setting(0.0, low=0.0, high=1.0, search=(0.0, 0.25, 0.5), help="edges the encoder does not see; the decoder sees all")
    decoder: str = setting("gcn", choices=("gcn", "gat", "mlp"), help="one convolution, or an MLP, which is not re-masked")
    # fmt: on

    local_statistics: ClassVar[bool] = True
    """A step in which nothing is masked ends early, on one rank and not on another."""

    def build(self, in_channels: int, num_classes: int) -> None:
        super().build(in_channels, num_classes)
        self.mask_token_ = nn.Parameter(torch.zeros(in_channels))
        width = self.out_channels_
        self.encoder_to_decoder_ = nn.Linear(width, width, bias=False)
        self.decoder_: nn.Module
        if self.decoder == "gcn":
            self.decoder_ = nn.Linear(width, in_channels)
        elif self.decoder == "gat":
            edge_dim = self.edge_channels_ if self.uses("edge_attr") else None
            self.decoder_ = GATConv(width, in_channels, edge_dim=edge_dim)
        else:
            self.decoder_ = nn.Sequential(nn.Linear(width, width), nn.PReLU(), nn.Linear(width, in_channels))

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        x = dense(batch.x)  # as the mask token and the reconstruction are
        masked, corrupted = self.corrupt(x, generator)
        seen = DropEdges(self.drop_edges)(batch, generator)
        seen.x = corrupted
        h = self.encoder_to_decoder_(encode(self.encoder_, seen, generator))
        if "seed_mask" in batch:  # in a sampled neighborhood only the seeds have all their neighbors
            scored = masked[batch.seed_mask[masked]]
            if not scored.numel():
                return {}
        else:
            scored = masked
        loss = scaled_cosine_error(self.decode(h, batch, masked, scored), x[scored], self.exponent)
        loss.backward()
        return {"loss": loss.item()}

    def corrupt(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """The nodes that are masked, and the features that the encoder sees."""
        nodes = x.size(0)
        masked = torch.randperm(nodes, generator=generator)[: max(1, int(self.mask_rate * nodes))]
        swapped = int(self.replace_rate * masked.numel())
        corrupted = x.clone()
        if swapped:
            order = masked[torch.randperm(masked.numel(), generator=generator)]
            token, other = order[:-swapped], order[-swapped:]
            donors = torch.randperm(nodes, generator=generator)[:swapped]
            corrupted[other.to(x.device)] = x[donors.to(x.device)]
        else:
            token = masked
        corrupted[token.to(x.device)] = self.mask_token_
        return masked.to(x.device), corrupted

    def decode(self, h: Tensor, graph: Data, masked: Tensor, rows: Tensor) -> Tensor:
        """Features of ``rows``, reconstructed with the embeddings of ``masked`` nodes hidden from the decoder.

        The decoder uses the edge weights (``gcn``) or attributes (``gat``) of ``graph``, if the encoder does.
        """
        rebuilt: Tensor
        if self.decoder != "mlp":
            h = h.index_fill(0, masked, 0.0)
        if self.decoder == "mlp":
            rebuilt = self.decoder_(h[rows])
        elif self.decoder == "gat":
            rebuilt = self.decoder_(h, graph.edge_index, graph.get("edge_attr"))[rows]
        else:
            # A GCN layer, P(HW) + b, as (PH)W + b: only the rows that are scored get as many columns as the features.
            weight = graph.get("edge_weight")
            propagate = propagation_of(graph.edge_index, h.size(0), dtype=h.dtype, edge_weight=weight)
            rebuilt = self.decoder_(propagate(h)[rows])
        return rebuilt
