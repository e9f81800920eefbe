"""The normalized adjacency of a graph as a sparse matrix, with or without edge weights."""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.utils import add_remaining_self_loops, add_self_loops

from mario.arguments import check_count
from mario.errors import MarioError
from mario.graphs.sparse import csr, row_of_entries
from mario.graphs.validation import check_edges

Normalization = Literal["symmetric", "mean", "sum"]
CSRParts = tuple[Tensor, Tensor, Tensor]
"""Row starts, columns and values of a CSR matrix."""

_LOOP = 2**32 + 1  # times i is the edge from i to i, target · 2³² + source


def propagation_matrix(
    edge_index: Tensor,
    num_nodes: int,
    normalization: Normalization = "symmetric",
    dtype: torch.dtype | None = None,
    edge_weight: Tensor | None = None,
) -> Tensor:
    """The transposed, normalized adjacency as a CSR matrix: row i holds the weights of the messages that reach node i.

    With A the adjacency, whose entry is the sum of an edge's weights:

    - ``symmetric`` is D^-1/2 (A + I) D^-1/2 with the in-degrees of A + I, as in
      :class:`torch_geometric.nn.GCNConv`. A given self-loop takes the place of the added one and keeps its weight.
    - ``mean`` divides each row of A by its sum, Σ_j w_ji x_j / Σ_j w_ji, as GraphSAGE does. A row
      whose weights sum to zero is zero.
    - ``sum`` is A + I, as in GIN with ε = 0.

    Args:
        edge_index: int64 [2, E], sources above targets. Repeated edges count repeatedly.
        num_nodes: Number of rows and columns.
        normalization: ``symmetric``, ``mean`` or ``sum``.
        dtype: Dtype of the weights; ``None`` is torch's default.
        edge_weight: Non-negative float [E]; ``None`` gives every edge the weight 1.

    Example:
        >>> propagation_matrix(torch.tensor([[0, 1], [1, 0]]), 2).to_dense()
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
        >>> weight = torch.tensor([3.0, 1.0])
        >>> propagation_matrix(torch.tensor([[0, 1], [2, 2]]), 3, "mean", edge_weight=weight).to_dense()[2]
        tensor([0.7500, 0.2500, 0.0000])
    """
    crow, col, value = normalized_adjacency(edge_index, num_nodes, normalization, dtype, edge_weight)
    size = (num_nodes, num_nodes)
    return csr(crow.long(), col.long(), value, size)


def entries(matrix: Tensor) -> Tensor:
    """The edges, from column to row, of the stored entries of a sparse CSR matrix."""
    return torch.stack([matrix.col_indices(), row_of_entries(matrix.crow_indices())])


def normalized_adjacency(
    edge_index: Tensor,
    num_nodes: int,
    normalization: Normalization,
    dtype: torch.dtype | None,
    edge_weight: Tensor | None,
) -> CSRParts:
    """Row starts, sorted columns and values of :func:`propagation_matrix`."""
    if normalization not in get_args(Normalization):
        raise MarioError(f"normalization must be one of {', '.join(get_args(Normalization))}, got '{normalization}'")
    check_count("num_nodes", num_nodes, low=0, high=2**31 - 1)
    if isinstance(edge_index, Tensor) and edge_index.dtype == torch.int32:
        edge_index = edge_index.to(torch.int64)
    check_edges(edge_index, num_nodes)
    dtype = dtype or torch.get_default_dtype()
    if edge_weight is None:
        return _unweighted(edge_index, num_nodes, normalization, dtype)
    if not isinstance(edge_weight, Tensor) or edge_weight.shape != edge_index.shape[1:]:
        got = list(edge_weight.shape) if isinstance(edge_weight, Tensor) else type(edge_weight).__name__
        raise MarioError(f"edge_weight must be a tensor of shape [{edge_index.size(1)}], one per edge, got {got}")
    if edge_weight.requires_grad:
        raise MarioError("edge_weight requires grad, which encoders do not compute: pass edge_weight.detach()")
    return _weighted(edge_index, edge_weight.to(dtype), num_nodes, normalization)


def _unweighted(edge_index: Tensor, num_nodes: int, normalization: Normalization, dtype: torch.dtype) -> CSRParts:
    source, target = edge_index
    degree = torch.bincount(target, minlength=num_nodes)
    # Each edge as one number: no second array has to be reordered, and numpy's vectorized sort is ten times as fast as
    # an argsort.
    given = source.numel()
    edges = source.new_empty(given + (0 if normalization == "mean" else num_nodes))
    torch.add(source, target, alpha=2**32, out=edges[:given])
    kept = edges.numel()
    if normalization != "mean":
        degree += 1
        torch.arange(0, num_nodes * _LOOP, _LOOP, out=edges[given:])
    if normalization == "symmetric" and (loops := (source == target).nonzero().view(-1)).numel():
        degree -= torch.bincount(target[loops], minlength=num_nodes)
        edges[loops] = torch.iinfo(torch.int64).max  # sorted to the end and cut off there, as filtering is slow
        kept -= loops.numel()
    if edges.device.type == "cpu":
        edges.numpy().sort()
    else:
        edges = edges.sort().values
    edges = edges[:kept]
    crow, col = _compressed(edges, degree)
    if normalization == "sum":
        return crow, col, torch.ones(col.numel(), dtype=dtype, device=col.device)
    scale = degree.to(dtype).pow_(-0.5 if normalization == "symmetric" else -1)
    value = scale.repeat_interleave(degree, output_size=col.numel())
    return crow, col, value.mul_(scale.index_select(0, col)) if normalization == "symmetric" else value


def _weighted(edge_index: Tensor, weight: Tensor, num_nodes: int, normalization: Normalization) -> CSRParts:
    if normalization == "symmetric":
        edge_index, weight = add_remaining_self_loops(edge_index, weight, 1.0, num_nodes)
    elif normalization == "sum":
        edge_index, weight = add_self_loops(edge_index, weight, 1.0, num_nodes)
    source, target = edge_index
    order = torch.add(source, target, alpha=2**32).argsort(stable=True)
    crow, col = _compressed(source[order], torch.bincount(target, minlength=num_nodes))
    value = weight[order]
    if normalization == "sum":
        return crow, col, value
    # Summed in double precision, so that the order of the edges hardly matters.
    total = torch.bincount(target, weights=weight.double(), minlength=num_nodes).to(weight.dtype)
    scale = total.pow_(-0.5 if normalization == "symmetric" else -1)
    scale.masked_fill_(scale.isinf(), 0)  # no weight at all reaches the node
    factor = scale[target[order]]
    if normalization == "symmetric":
        factor = factor * scale[source[order]]  # first: the product is the same in both directions of an edge
    return crow, col, value * factor


def _compressed(edges: Tensor, degree: Tensor) -> tuple[Tensor, Tensor]:
    """Row starts, and the columns in the low 32 bits of sorted ``edges``, in the smallest sufficient index type."""
    index = torch.int32 if edges.numel() < 2**31 else torch.int64  # MKL's own is int32
    col = edges.bitwise_and_(2**32 - 1).to(index)
    crow = torch.zeros(degree.numel() + 1, dtype=index, device=edges.device)
    torch.cumsum(degree, 0, out=crow[1:])
    return crow, col
