"""View encoding: a stack of PyG's convolutions."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from mario.encoders.propagation import Normalisation, entries, propagation_matrix
from mario.errors import MarioError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "elu": F.elu, "leaky_relu": F.leaky_relu}


class Encoder(nn.Module):
    """``layers`` times convolution, batch norm, activation and dropout, as in GOOD (Gui et al. 2022).

    Args:
        in_channels: Number of features of a node.
        hidden: Width of every layer, and of what comes out.
        layers: Number of convolutions.
        batch_norm: Normalise over nodes after each convolution.
        dropout: Probability that an entry of a layer's output is set to zero while training.
        last_activation: Whether the last layer has an activation too.
        activation: ``relu``, ``elu`` or ``leaky_relu``.

    Features may be a ``torch.sparse_csr`` matrix: they are never made dense.
    """

    normalisation: ClassVar[Normalisation | None] = None

    def __init__(
        self,
        in_channels: int,
        *,
        hidden: int = 300,
        layers: int = 3,
        batch_norm: bool = True,
        dropout: float = 0.0,
        last_activation: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        if min(in_channels, hidden, layers) < 1:
            raise MarioError(
                f"an encoder needs in_channels, hidden and layers of at least 1, got {in_channels}, {hidden}, {layers}"
            )
        if not 0 <= dropout < 1:
            raise MarioError(f"dropout must lie in [0, 1), got {dropout}")
        if activation not in ACTIVATIONS:
            raise MarioError(f"activation must be one of {', '.join(ACTIVATIONS)}, got '{activation}'")
        widths = [in_channels] + [hidden] * layers
        self.hidden = hidden
        self.dropout = dropout
        self.last_activation = last_activation
        self.activation = ACTIVATIONS[activation]
        self.convs = nn.ModuleList(self.convolution(i, o) for i, o in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) if batch_norm else nn.Identity() for _ in self.convs)

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        raise NotImplementedError

    def convolve(self, conv: Any, x: Tensor, route: Tensor) -> Tensor:
        return conv(x, route)

    def forward(self, x: Tensor, edge_index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """One row a node. ``generator`` draws the dropout masks.

        ``edge_index`` may also be a ready propagation matrix, sparse CSR with a row for each node that receives. It
        takes the place of the encoder's own; attention, which has none, looks along its entries.
        """
        if self.training and x.size(0) == 1 and isinstance(self.norms[0], nn.BatchNorm1d):
            raise MarioError("batch norm cannot be trained on a graph of one node: set batch_norm=False")
        route = edge_index
        if edge_index.layout == torch.sparse_csr:
            route = edge_index if self.normalisation is not None else entries(edge_index)
        elif self.normalisation is not None:
            route = propagation_matrix(edge_index, x.size(0), self.normalisation, x.dtype)
        last = len(self.convs) - 1
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            x = norm(self.convolve(conv, x, route))
            if i < last or self.last_activation:
                x = self.activation(x)
            if self.training and self.dropout:
                kept = torch.empty(x.shape).bernoulli_(1 - self.dropout, generator=generator).to(x)
                x = x * kept / (1 - self.dropout)
        return x


class GCN(Encoder):
    """Graph convolutional network (Kipf & Welling, ICLR 2017).

    Example:
        >>> GCN(4, hidden=8, layers=2)(torch.ones(3, 4), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 8])
    """

    normalisation = "symmetric"

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        return GCNConv(in_channels, out_channels, normalize=False)

    def convolve(self, conv: Any, x: Tensor, route: Tensor) -> Tensor:
        # A diffusion may hold every pair of nodes. A sparse product, above all its backward, is many times slower then.
        if route.layout == torch.sparse_csr and route.values().numel() > route.size(0) * route.size(1) / 8:
            return route.to_dense() @ conv.lin(x) + conv.bias
        return conv(x, route)


class GraphSAGE(Encoder):
    """Mean aggregation that keeps a node's own features apart (Hamilton et al., NeurIPS 2017)."""

    normalisation = "mean"

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        return SAGEConv(in_channels, out_channels, aggr="sum")  # the propagation matrix already takes the mean


class _GINConv(GINConv):
    # The propagation matrix holds the self-loops; PyG's own (1 + ε)·x fails for sparse features.
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward((x, None), edge_index)


class GIN(Encoder):
    """Sum aggregation and an MLP (Xu et al., ICLR 2019)."""

    normalisation = "sum"

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        mlp = nn.Sequential(nn.Linear(in_channels, out_channels), nn.ReLU(), nn.Linear(out_channels, out_channels))
        return _GINConv(mlp)


class GAT(Encoder):
    """Attention over neighbours (Veličković et al., ICLR 2018), one head, as attention has no fixed matrix."""

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        return GATConv(in_channels, out_channels)


ENCODERS: dict[str, type[Encoder]] = {"gcn": GCN, "sage": GraphSAGE, "gat": GAT, "gin": GIN}
