"""View encoding: a stack of PyG's convolutions."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from mario.encoders.attention import Attended
from mario.encoders.norm import BatchNorm
from mario.encoders.precision import Reducible
from mario.encoders.propagation import Normalization, Propagation, entries, propagation_of, remembered
from mario.errors import MarioError
from mario.graphs.features import FeatureMatrix, Features, rows_of
from mario.graphs.paging import release

# Nodes that are embedded at once where nothing is trained.
BLOCK = 2**16

# Features up to which a layer's weight is copied before it is multiplied.
_FEW = 8

# In place: what they are given is a sum or a batch norm, of which no backward needs the result.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu_, "elu": F.elu_, "leaky_relu": F.leaky_relu_}


class Encoder(Reducible):
    """``num_layers`` times convolution, batch norm, activation and dropout, as in GOOD (Gui et al. 2022).

    Args:
        in_channels: Number of features of a node.
        hidden_channels: Width of every layer, and of what comes out.
        num_layers: Number of convolutions.
        batch_norm: Normalize over nodes after each convolution.
        dropout: Probability that an entry of a layer's output is set to zero while training.
        last_activation: Whether the last layer has an activation too.
        activation: ``relu``, ``elu`` or ``leaky_relu``.

    Features may be a ``torch.sparse_csr`` matrix, which is never made dense, or a
    :class:`mario.graphs.features.Features`.
    """

    normalization: ClassVar[Normalization | None] = None
    supports_features = True
    supports_edge_weight = True
    supports_edge_attr = False
    _compiled_finish: Callable[[int, Tensor], Tensor] | None = None

    def __init__(
        self,
        in_channels: int,
        *,
        hidden_channels: int = 300,
        num_layers: int = 3,
        batch_norm: bool = True,
        dropout: float = 0.0,
        last_activation: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        if min(in_channels, hidden_channels, num_layers) < 1:
            raise MarioError(
                "an encoder needs in_channels, hidden_channels and num_layers of at least 1, "
                f"got {in_channels}, {hidden_channels}, {num_layers}"
            )
        if not 0 <= dropout < 1:
            raise MarioError(f"dropout must lie in [0, 1), got {dropout}")
        if activation not in ACTIVATIONS:
            raise MarioError(f"activation must be one of {', '.join(ACTIVATIONS)}, got '{activation}'")
        widths = [in_channels] + [hidden_channels] * num_layers
        self.hidden_channels = hidden_channels
        self.dropout = dropout
        self.last_activation = last_activation
        self.activation = ACTIVATIONS[activation]
        self.convs = nn.ModuleList(self.convolution(i, o) for i, o in pairwise(widths))
        self.norms = nn.ModuleList(BatchNorm(hidden_channels) if batch_norm else nn.Identity() for _ in self.convs)

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        raise NotImplementedError

    def transform(self, conv: Any) -> nn.Linear:
        """The linear map that messages go through, before or after they are passed on, as both are linear."""
        raise NotImplementedError

    def receive(self, conv: Any, got: Tensor, own: FeatureMatrix) -> Tensor:
        """The layer's output from the transformed messages that arrived and the nodes' own features."""
        raise NotImplementedError

    def forward(
        self,
        x: FeatureMatrix,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """One row a node. ``generator`` draws the dropout masks.

        ``edge_index`` may also be a ready propagation matrix, sparse CSR with a row for each node that receives. It
        takes the place of the encoder's own; attention, which has none, looks along its entries. Where nothing is
        trained and the graph is large, nodes are embedded in blocks.
        """
        if isinstance(x, Tensor) and x.layout == torch.sparse_csr:
            x = Features(x)
        route = self.route(x, edge_index)
        resting = not (self.training or torch.is_grad_enabled())
        if resting and x.size(0) > BLOCK:
            return self._in_blocks(x, route)
        h = x
        for i, conv in enumerate(self.convs):
            h = self.finish(i, self.receive(conv, self.pass_on(conv, self.messages(conv, h), route), h))
            if self.training and self.dropout:
                kept = torch.rand(h.shape, generator=generator) >= self.dropout
                h = h * kept.to(h) / (1 - self.dropout)
        assert isinstance(h, Tensor)
        return h

    def route(self, x: FeatureMatrix, edge_index: Tensor) -> Any:
        """That along which messages are passed."""
        assert self.normalization is not None
        if edge_index.layout == torch.sparse_csr:
            return Propagation.from_matrix(edge_index)
        return propagation_of(edge_index, x.size(0), self.normalization, x.dtype)

    def messages(self, conv: Any, x: FeatureMatrix) -> Tensor:
        """What nodes send: their features, transformed first where that makes them no wider."""
        weight = self.transform(conv).weight
        if not isinstance(x, Tensor):
            return x.times(weight)
        return x if x.size(1) < weight.size(0) else x @ weight.t()

    def pass_on(self, conv: Any, messages: Tensor, route: Any) -> Tensor:
        """The messages that reach each node, summed with the route's weights and transformed."""
        got = route(messages)
        weight = self.transform(conv).weight
        if messages.size(1) >= weight.size(0):
            return got
        # Once copied, gradients are asked for in a layout in which MKL takes a third of the time for few features.
        return got @ (weight.t().contiguous() if messages.size(1) <= _FEW else weight.t())

    def finish(self, layer: int, h: Tensor) -> Tensor:
        """Batch norm and activation."""
        compiled = self._compiled_finish if self.training and torch.is_grad_enabled() else None
        return (compiled or self._finish)(layer, h)

    def _finish(self, layer: int, h: Tensor) -> Tensor:
        h = self.norms[layer](h)
        return self.activation(h) if layer < len(self.convs) - 1 or self.last_activation else h

    def compile_rows(self) -> None:
        """Compile what training does to each row after messages were passed: torch fuses that, and not the products."""
        self._compiled_finish = torch.compile(self._finish, dynamic=True)

    def _in_blocks(self, x: FeatureMatrix, route: Any) -> Tensor:
        """Layer by layer, and in each the nodes block by block: two matrices of the output's size are all there is."""
        blocks = [slice(first, min(first + BLOCK, x.size(0))) for first in range(0, x.size(0), BLOCK)]
        h: Tensor | None = None
        for i, conv in enumerate(self.convs):
            own = x if h is None else h
            sent: Tensor | None = None
            for rows in blocks:
                part = self.messages(conv, rows_of(own, rows))
                if sent is None:
                    sent = part.new_empty(x.size(0), part.size(1))
                sent[rows] = part
                if isinstance(own, Tensor):
                    release(own)
            assert sent is not None
            for rows in blocks:
                got = self.pass_on(conv, sent, route.rows(rows.start, rows.stop))
                part = self.finish(i, self.receive(conv, got, rows_of(own, rows)))
                if h is None:
                    h = part.new_empty(x.size(0), part.size(1))
                h[rows] = part  # of its own layer's input a block needs only the rows that it now replaces
        assert h is not None
        return h


class GCN(Encoder):
    """Graph convolutional network (Kipf & Welling, ICLR 2017).

    Example:
        >>> GCN(4, hidden_channels=8, num_layers=2)(torch.ones(3, 4), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 8])
    """

    normalization = "symmetric"

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        return GCNConv(in_channels, out_channels, normalize=False)

    def transform(self, conv: Any) -> nn.Linear:
        return conv.lin

    def receive(self, conv: Any, got: Tensor, own: FeatureMatrix) -> Tensor:
        return got.add_(conv.bias) if got.dtype == conv.bias.dtype else got + conv.bias


class GraphSAGE(Encoder):
    """Mean aggregation that keeps a node's own features apart (Hamilton et al., NeurIPS 2017)."""

    normalization = "mean"

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        return SAGEConv(in_channels, out_channels)

    def transform(self, conv: Any) -> nn.Linear:
        return conv.lin_l

    def receive(self, conv: Any, got: Tensor, own: FeatureMatrix) -> Tensor:
        weight = conv.lin_r.weight
        return got + conv.lin_l.bias + (own @ weight.t() if isinstance(own, Tensor) else own.times(weight))


class GIN(Encoder):
    """Sum aggregation and an MLP (Xu et al., ICLR 2019)."""

    normalization = "sum"

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        mlp = nn.Sequential(nn.Linear(in_channels, out_channels), nn.ReLU(), nn.Linear(out_channels, out_channels))
        return GINConv(mlp)

    def transform(self, conv: Any) -> nn.Linear:
        return conv.nn[0]

    def receive(self, conv: Any, got: Tensor, own: FeatureMatrix) -> Tensor:
        return conv.nn[1:](got + conv.nn[0].bias)


class GAT(Encoder):
    """Attention over neighbors (Veličković et al., ICLR 2018), one head."""

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        return GATConv(in_channels, out_channels)

    def transform(self, conv: Any) -> nn.Linear:
        return conv.lin

    def route(self, x: FeatureMatrix, edge_index: Tensor) -> Any:
        def make() -> Attended:
            return Attended(entries(edge_index) if edge_index.layout == torch.sparse_csr else edge_index, x.size(0))

        return remembered(edge_index, ("attended", x.size(0)), make)

    def messages(self, conv: Any, x: FeatureMatrix) -> Tensor:
        return x @ conv.lin.weight.t() if isinstance(x, Tensor) else x.times(conv.lin.weight)

    def pass_on(self, conv: Any, messages: Tensor, route: Any) -> Tensor:
        to_source, to_target = messages @ conv.att_src.view(-1), messages @ conv.att_dst.view(-1)
        return route(messages, F.leaky_relu(route.scores(to_source, to_target), conv.negative_slope))

    def receive(self, conv: Any, got: Tensor, own: FeatureMatrix) -> Tensor:
        return got + conv.bias


ENCODERS: dict[str, type[Encoder]] = {"gcn": GCN, "sage": GraphSAGE, "gat": GAT, "gin": GIN}
