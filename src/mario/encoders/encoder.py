"""View encoding: stacks of PyG's convolutions."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from mario.arguments import check_count, check_probability
from mario.encoders.adjacency import Normalization, entries
from mario.encoders.attention import Attended
from mario.encoders.input import check_input
from mario.encoders.norm import BatchNorm
from mario.encoders.on_disk import bytes_in_memory, embed_on_disk
from mario.encoders.precision import Reducible
from mario.encoders.propagation import Propagation, propagation_of
from mario.encoders.size import MOST_LAYERS, check_size
from mario.encoders.stored_adjacency import StoredAdjacency
from mario.errors import MarioError
from mario.graphs.features import FeatureMatrix, Features, rows_of
from mario.graphs.paging import release
from mario.graphs.remembered import remembered
from mario.graphs.scratch import scratch_for

# Nodes embedded at once in inference.
BLOCK = 2**16

# Widest input for which a layer's weight is copied before the product.
_FEW = 8

# In place: the input is the result of a sum or a batch norm, which no backward pass needs.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu_, "elu": F.elu_, "leaky_relu": F.leaky_relu_}


class Encoder(Reducible):
    """``num_layers`` times convolution, batch norm, activation and dropout, as in GOOD (Gui et al. 2022).

    Features may be a ``torch.sparse_csr`` matrix, which is never made dense, or a
    :class:`mario.graphs.features.Features`; see :class:`mario.encoders.FeatureEncoder`.

    Args:
        in_channels: Number of features per node.
        hidden_channels: Width of every layer and of the output.
        num_layers: Number of convolutions.
        batch_norm: Normalize over nodes after each convolution.
        dropout: Probability that an entry of a layer's output is set to zero during training.
        last_activation: Whether the last layer has an activation too.
        activation: ``relu``, ``elu`` or ``leaky_relu``.
        edge_dim: Number of attributes per edge, for an encoder that uses them (``gat``); ``None`` uses none.

    Attributes:
        supports_edge_weight: Whether the convolution uses ``edge_weight``.
        supports_edge_attr: Whether it uses ``edge_attr``; for an instance, only if it has an ``edge_dim``.
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
        edge_dim: int | None = None,
    ) -> None:
        super().__init__()
        check_count("in_channels", in_channels)
        check_count("hidden_channels", hidden_channels)
        check_count("num_layers", num_layers, high=MOST_LAYERS)
        check_size("an encoder", [in_channels] + [hidden_channels] * num_layers)
        if check_probability("dropout", dropout) == 1:
            raise MarioError(f"dropout must lie in [0, 1), got {dropout}")
        if activation not in ACTIVATIONS:
            raise MarioError(f"activation must be one of {', '.join(ACTIVATIONS)}, got '{activation}'")
        if edge_dim is not None and not self.supports_edge_attr:
            raise MarioError(f"{type(self).__name__} uses no edge attributes, got edge_dim={edge_dim}: use GAT")
        if edge_dim is not None:
            check_count("edge_dim", edge_dim)
        self.in_channels, self.edge_dim = in_channels, edge_dim
        self.supports_edge_attr = edge_dim is not None
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
        """The linear map of the messages. As passing messages is linear too, it is applied before or after that."""
        raise NotImplementedError

    def receive(self, conv: Any, got: Tensor, own: FeatureMatrix) -> Tensor:
        """The output of the layer, from the transformed messages that arrived and the nodes' own features."""
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
        """Embed all nodes; large graphs are embedded block by block when neither training nor tracking gradients.

        Args:
            x: [N, in_channels].
            edge_index: int64 [2, E], or a ready propagation matrix, sparse CSR with one row per receiving node. The
                matrix replaces the encoder's own; attention uses the positions of its entries.
            edge_weight: Non-negative float [E], for an encoder with ``supports_edge_weight``.
            edge_attr: Float [E, edge_dim], for an encoder with ``supports_edge_attr``.
            generator: Draws the dropout masks.

        Returns:
            [N, hidden_channels]; on disk if neither training nor tracking gradients under a
            :class:`mario.graphs.scratch.Scratch` with less memory than this takes.
        """
        check_input("x", x, self.in_channels, next(self.parameters()).dtype)
        if isinstance(x, Tensor) and x.layout == torch.sparse_csr:
            x = Features(x)
        if not isinstance(edge_index, Tensor):
            raise MarioError(f"edge_index must be a [2, edges] tensor of node ids, got {type(edge_index).__name__}")
        self._check_edge_values(edge_index, edge_weight, edge_attr)
        resting = not (self.training or torch.is_grad_enabled())
        plain = edge_attr is None and edge_index.layout == torch.strided and x.device.type == "cpu"
        if resting and plain and (scratch := scratch_for(bytes_in_memory(self, x, edge_index))):
            return embed_on_disk(self, x, edge_index, edge_weight, scratch, BLOCK)
        route = self.route(x, edge_index, edge_weight, edge_attr)
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

    def _check_edge_values(self, edge_index: Tensor, edge_weight: Tensor | None, edge_attr: Tensor | None) -> None:
        for name, value, supported in (
            ("edge_weight", edge_weight, self.supports_edge_weight),
            ("edge_attr", edge_attr, self.supports_edge_attr),
        ):
            if value is None:
                continue
            if not isinstance(value, Tensor):
                raise MarioError(f"{name} must be a tensor with one row per edge, got {type(value).__name__}")
            if not supported:
                without = " without edge_dim" if getattr(type(self), f"supports_{name}") else ""
                raise MarioError(f"{type(self).__name__}{without} uses no {name}: pass None")
            if value.requires_grad:
                raise MarioError(f"{name} requires grad, which encoders do not compute: pass {name}.detach()")
            if edge_index.layout == torch.sparse_csr:
                raise MarioError(f"edge_index is a propagation matrix, which holds its own weights: pass no {name}")

    def route(self, x: FeatureMatrix, edge_index: Tensor, edge_weight: Tensor | None, edge_attr: Tensor | None) -> Any:
        """The object that passes messages along the edges."""
        assert self.normalization is not None
        if edge_index.layout == torch.sparse_csr:
            return Propagation.from_matrix(edge_index)
        return propagation_of(edge_index, x.size(0), self.normalization, x.dtype, edge_weight)

    def messages(self, conv: Any, x: FeatureMatrix) -> Tensor:
        """What nodes send: their features, already transformed if that makes them no wider."""
        weight = self.transform(conv).weight
        if not isinstance(x, Tensor):
            return x.times(weight)
        return x if x.size(1) < weight.size(0) else x @ weight.t()

    def pass_on(self, conv: Any, messages: Tensor, route: Any) -> Tensor:
        """The transformed, weighted sum of the messages that reach each node."""
        return self.transformed(conv, route(messages))

    def transformed(self, conv: Any, got: Tensor) -> Tensor:
        """The sums that reached each node, transformed unless the messages already were."""
        weight = self.transform(conv).weight
        if got.size(1) >= weight.size(0):
            return got
        # With a copy, the gradients have a layout in which MKL takes a third of the time for few features.
        return got @ (weight.t().contiguous() if got.size(1) <= _FEW else weight.t())

    def node_scores(self, conv: Any, messages: Tensor) -> Tensor:
        """What :meth:`stored_route` needs to know of every node besides its message: one row per node."""
        return messages.new_empty(messages.size(0), 0)

    def stored_route(
        self, conv: Any, adjacency: StoredAdjacency, scores: Tensor, rows: slice
    ) -> Callable[[Tensor], Tensor]:
        """What passes messages to a block of nodes along edges on disk."""
        shape = (rows.stop - rows.start, adjacency.num_nodes)
        return Propagation(shape, csr=adjacency.rows(rows))

    def finish(self, layer: int, h: Tensor) -> Tensor:
        """Batch norm and activation."""
        compiled = self._compiled_finish if self.training and torch.is_grad_enabled() else None
        return (compiled or self._finish)(layer, h)

    def _finish(self, layer: int, h: Tensor) -> Tensor:
        normed: Tensor = self.norms[layer](h)
        return self.activation(normed) if layer < len(self.convs) - 1 or self.last_activation else normed

    def compile_rows(self) -> None:
        """Compile the row-wise part of a training step, which torch can fuse, unlike the products."""
        self._compiled_finish = torch.compile(self._finish, dynamic=True)

    def _in_blocks(self, x: FeatureMatrix, route: Any) -> Tensor:
        """Layer by layer, and within a layer block by block: memory holds two matrices of the output's size."""
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
                h[rows] = part  # a block needs no rows of its layer's input but those it now replaces
        assert h is not None
        return h


class GCN(Encoder):
    """Graph convolutional network (Kipf & Welling, ICLR 2017); ``edge_weight`` as in PyG's ``GCNConv``.

    Example:
        >>> GCN(4, hidden_channels=8, num_layers=2)(torch.ones(3, 4), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 8])
    """

    normalization = "symmetric"

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        conv: nn.Module = GCNConv(in_channels, out_channels, normalize=False)
        return conv

    def transform(self, conv: Any) -> nn.Linear:
        linear: nn.Linear = conv.lin
        return linear

    def receive(self, conv: Any, got: Tensor, own: FeatureMatrix) -> Tensor:
        return got.add_(conv.bias) if got.dtype == conv.bias.dtype else got + conv.bias


class GraphSAGE(Encoder):
    """GraphSAGE with mean aggregation (Hamilton et al., NeurIPS 2017).

    With ``edge_weight`` the mean is weighted: node i receives Σ_j w_ji x_j / Σ_j w_ji, or zero if the weights sum to
    zero.

    Example:
        >>> GraphSAGE(4, hidden_channels=8, num_layers=2)(torch.ones(3, 4), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 8])
    """

    normalization = "mean"

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        conv: nn.Module = SAGEConv(in_channels, out_channels)
        return conv

    def transform(self, conv: Any) -> nn.Linear:
        linear: nn.Linear = conv.lin_l
        return linear

    def receive(self, conv: Any, got: Tensor, own: FeatureMatrix) -> Tensor:
        weight = conv.lin_r.weight
        out: Tensor = got + conv.lin_l.bias + (own @ weight.t() if isinstance(own, Tensor) else own.times(weight))
        return out


class GIN(Encoder):
    """Graph isomorphism network: sum aggregation and an MLP (Xu et al., ICLR 2019).

    With ``edge_weight`` the sum is weighted: node i receives x_i + Σ_j w_ji x_j.

    Example:
        >>> GIN(4, hidden_channels=8, num_layers=2)(torch.ones(3, 4), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 8])
    """

    normalization = "sum"

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        mlp = nn.Sequential(nn.Linear(in_channels, out_channels), nn.ReLU(), nn.Linear(out_channels, out_channels))
        conv: nn.Module = GINConv(mlp)
        return conv

    def transform(self, conv: Any) -> nn.Linear:
        linear: nn.Linear = conv.nn[0]
        return linear

    def receive(self, conv: Any, got: Tensor, own: FeatureMatrix) -> Tensor:
        out: Tensor = conv.nn[1:](got + conv.nn[0].bias)
        return out


class GAT(Encoder):
    """Attention over neighbors (Veličković et al., ICLR 2018), one head; ``edge_attr`` as in PyG's ``GATConv``.

    Example:
        >>> x, edge_index, edge_attr = torch.ones(3, 4), torch.tensor([[0, 1], [1, 2]]), torch.ones(2, 5)
        >>> GAT(4, hidden_channels=8, edge_dim=5)(x, edge_index, edge_attr=edge_attr).shape
        torch.Size([3, 8])
    """

    supports_edge_weight = False
    supports_edge_attr = True

    def convolution(self, in_channels: int, out_channels: int) -> nn.Module:
        conv: nn.Module = GATConv(in_channels, out_channels, edge_dim=self.edge_dim)
        return conv

    def transform(self, conv: Any) -> nn.Linear:
        linear: nn.Linear = conv.lin
        return linear

    def route(self, x: FeatureMatrix, edge_index: Tensor, edge_weight: Tensor | None, edge_attr: Tensor | None) -> Any:
        if edge_attr is not None and edge_attr.shape != (edge_index.size(1), self.edge_dim):
            due = [edge_index.size(1), self.edge_dim]
            raise MarioError(f"edge_attr must have shape {due}, [edges, edge_dim], got {list(edge_attr.shape)}")

        def make() -> Attended:
            edges = entries(edge_index) if edge_index.layout == torch.sparse_csr else edge_index
            return Attended(edges, x.size(0), None if edge_attr is None else edge_attr.to(x.dtype))

        return remembered(edge_index, ("attended", x.size(0), x.dtype), make, edge_attr)

    def messages(self, conv: Any, x: FeatureMatrix) -> Tensor:
        return x @ conv.lin.weight.t() if isinstance(x, Tensor) else x.times(conv.lin.weight)

    def node_scores(self, conv: Any, messages: Tensor) -> Tensor:
        return torch.stack([messages @ conv.att_src.view(-1), messages @ conv.att_dst.view(-1)], 1)

    def stored_route(
        self, conv: Any, adjacency: StoredAdjacency, scores: Tensor, rows: slice
    ) -> Callable[[Tensor], Tensor]:
        starts, columns, _ = adjacency.rows(rows)
        route = Attended.of_rows(starts, columns, adjacency.num_nodes, rows.start)
        weights = F.leaky_relu(route.scores(scores[:, 0], scores[:, 1]), conv.negative_slope)
        return lambda messages: route(messages, weights)

    def pass_on(self, conv: Any, messages: Tensor, route: Any) -> Tensor:
        scores = route.scores(messages @ conv.att_src.view(-1), messages @ conv.att_dst.view(-1))
        if route.edge_attr is not None:
            # ⟨a, W e⟩ = ⟨Wᵀ a, e⟩: no transformed row per edge.
            scores = scores + route.edge_attr @ (conv.att_edge.view(-1) @ conv.lin_edge.weight)
        out: Tensor = route(messages, F.leaky_relu(scores, conv.negative_slope))
        return out

    def receive(self, conv: Any, got: Tensor, own: FeatureMatrix) -> Tensor:
        out: Tensor = got + conv.bias
        return out


ENCODERS: dict[str, type[Encoder]] = {"gcn": GCN, "sage": GraphSAGE, "gat": GAT, "gin": GIN}
