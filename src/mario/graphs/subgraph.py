"""The subgraph induced by a set of nodes."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.sparse import select_rows

_NOT_SLICED = ("edge_index", "num_nodes")


def subgraph(data: Data, node_ids: Tensor) -> Data:
    """The subgraph induced by ``node_ids``, with the nodes in that order.

    Node-level tensors are sliced (dense, or sparse CSR along its rows), and so are edge-level ones such as
    ``edge_weight`` and ``edge_attr``; all other attributes are kept. PyG's ``Data.is_edge_attr`` decides what is
    edge-level; any other tensor whose first dimension is the number of nodes is node-level. ``n_id`` holds the ids of
    the nodes in the original graph, also in a subgraph of a subgraph.

    Args:
        data: A node-level graph.
        node_ids: Distinct node ids (int64), or a bool mask over the nodes.

    Example:
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
        >>> cut = subgraph(data, torch.tensor([2, 1]))
        >>> cut.edge_index.tolist(), cut.n_id.tolist()
        ([[1], [0]], [2, 1])
    """
    num_nodes = count_nodes(data)
    node_ids = as_ids("node_ids", node_ids, num_nodes)
    position = torch.full((num_nodes,), -1, dtype=torch.int64, device=node_ids.device)
    position[node_ids] = torch.arange(node_ids.numel(), device=node_ids.device)
    if int((position >= 0).sum()) != node_ids.numel():
        raise MarioError("node_ids holds a node twice; pass distinct node ids")

    ends = position[data.edge_index]
    kept = (ends >= 0).all(dim=0)
    cut = Data(edge_index=ends[:, kept])
    for key, value in data.to_dict().items():
        if key not in _NOT_SLICED:
            cut[key] = _slice(data, key, value, num_nodes, node_ids, kept)
    if "n_id" not in data:
        cut.n_id = node_ids
    if "x" not in data:
        cut.num_nodes = node_ids.numel()
    return cut


def count_nodes(data: Data) -> int:
    """The number of nodes, from ``x`` if the graph has features."""
    x = data.get("x")
    return int(x.size(0)) if isinstance(x, Tensor) else int(data.num_nodes or 0)


def _slice(data: Data, key: str, value: Any, num_nodes: int, node_ids: Tensor, kept: Tensor) -> Any:
    if not isinstance(value, Tensor) or value.dim() == 0:
        return value
    if value.layout == torch.sparse_csr:
        return select_rows(value, node_ids) if value.size(0) == num_nodes else value
    if data.is_edge_attr(key):
        return value[..., kept] if key.endswith("index") else value[kept]
    return value[node_ids] if value.size(0) == num_nodes else value


def as_ids(name: str, given: Tensor, count: int, has: str = "the graph has {} nodes") -> Tensor:
    """``given``, int64 ids below ``count`` or a bool mask over them, as ids; `MarioError` if it is neither."""
    if not isinstance(given, Tensor):
        raise MarioError(f"{name} must be a tensor of ids or a mask, got {type(given).__name__}")
    if given.dim() != 1 or given.dtype not in (torch.bool, torch.int64):
        got = f"{given.dtype} of shape {tuple(given.shape)}"
        raise MarioError(f"{name} must be int64 ids or a bool mask with one dimension, got {got}")
    if given.dtype == torch.bool:
        if given.numel() != count:
            raise MarioError(f"{name} is a mask of length {given.numel()}, but {has.format(count)}")
        return given.nonzero().view(-1)
    if given.numel() and not (int(given.min()) >= 0 and int(given.max()) < count):
        raise MarioError(f"{name} must lie in 0..{count - 1}, got {int(given.min())}..{int(given.max())}")
    return given
