"""Checks of a graph before a method works on it, with errors that say what to fix."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.graph_sets import count_graphs
from mario.graphs.paging import count_negative, count_not_finite, extremes
from mario.graphs.rules import PARTS


def check_graph(data: Data) -> None:
    """Raise `MarioError` unless ``data`` is a valid graph, or set of graphs.

    - ``x``: float32 or float64 [nodes, features], dense or sparse CSR, finite.
    - ``edge_index``: int64 [2, edges], ids in range.
    - ``edge_weight``, if present: float32 or float64 [edges], finite and not negative.
    - ``edge_attr``, if present: float32 or float64 [edges, attributes], finite.
    - ``y``, if present: one int64 per node; -1 means no label, and no mask may contain such a node.
    - Masks, if present: bool, one entry per node, none empty, no two overlapping.
    - ``visible_mask``, what training may see: all of ``train_mask`` and nothing of the OOD parts.
    - ``group_id``, the test group of each node: has its name in ``groups``.

    In a set of graphs (``batch``), labels and masks have one row per graph, ``batch`` ascends, every graph has a node,
    and edges stay within their graph.

    Example:
        >>> check_graph(Data(x=torch.eye(2), edge_index=torch.tensor([[0], [2]])))
        Traceback (most recent call last):
        mario.errors.MarioError: data.edge_index names node 2, but the 2 nodes are numbered 0..1
    """
    if not isinstance(data, Data):
        raise MarioError(f"data must be a torch_geometric.data.Data, got {type(data).__name__}")
    num_nodes = _check_features(data.get("x"))
    check_edges(data.get("edge_index"), num_nodes, "data.edge_index")
    _check_edge_values(data)
    num_rows, unit = num_nodes, "nodes"
    if "batch" in data:
        num_rows, unit = _check_batch(data, num_nodes), "graphs"
    masks = {name: data[f"{name}_mask"] for name in PARTS if f"{name}_mask" in data}
    _check_masks(masks, num_rows, unit)
    _check_labels(data, masks, num_rows, unit)
    for key in ("domain_id", "env_id", "group_id"):
        ids = data.get(key)
        if ids is not None and (not isinstance(ids, Tensor) or ids.dtype != torch.int64 or ids.shape != (num_rows,)):
            raise MarioError(f"data.{key} must hold one int64 for each of {num_rows} {unit}, got {_kind(ids)}")
    _check_visible(data.get("visible_mask"), masks, num_rows)
    _check_groups(data.get("group_id"), data.get("groups"))


def check_edges(edge_index: object, num_nodes: int, name: str = "edge_index") -> None:
    """Raise `MarioError` unless ``edge_index`` is int64 [2, edges] and holds ids of nodes.

    An id out of range would read foreign memory in some kernels instead of failing.
    """
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise MarioError(f"{name} must be a [2, edges] tensor of node ids, got {_kind(edge_index)}")
    if edge_index.dtype != torch.int64:
        raise MarioError(f"{name} must be int64, got {edge_index.dtype}; use {name}.long()")
    if edge_index.numel() == 0:
        return
    low, high = extremes(edge_index)
    if low < 0 or high >= num_nodes:
        named = low if low < 0 else high
        raise MarioError(f"{name} names node {named}, but the {num_nodes} nodes are numbered 0..{num_nodes - 1}")


def _check_features(x: object) -> int:
    if not isinstance(x, Tensor) or x.dim() != 2 or x.layout not in (torch.strided, torch.sparse_csr):
        raise MarioError(f"data.x must be a [nodes, features] matrix, dense or sparse CSR, got {_kind(x)}")
    if x.dtype not in (torch.float32, torch.float64):
        raise MarioError(f"data.x must be float32 (or float64), got {x.dtype}; use data.x.float()")
    if x.size(0) == 0 or x.size(1) == 0:
        raise MarioError(f"data.x has shape {tuple(x.shape)}; a graph needs at least a node and a feature")
    values = x.values() if x.layout == torch.sparse_csr else x
    if bad := count_not_finite(values):
        raise MarioError(f"data.x holds {bad} NaN or infinite entries; fill or drop them first")
    return x.size(0)


def _check_edge_values(data: Data) -> None:
    """Weights and attributes of edges."""
    edges = data.edge_index.size(1)
    for key, rank, shape in (("edge_weight", 1, "[edges]"), ("edge_attr", 2, "[edges, attributes]")):
        value = data.get(key)
        if value is None:
            continue
        if not isinstance(value, Tensor) or value.layout != torch.strided or value.dim() != rank:
            raise MarioError(f"data.{key} must be a tensor of shape {shape}, got {_kind(value)}; reshape or remove it")
        if value.dtype not in (torch.float32, torch.float64):
            raise MarioError(f"data.{key} must be float32 (or float64), got {value.dtype}; use data.{key}.float()")
        if value.size(0) != edges:
            raise MarioError(f"data.{key} has {value.size(0)} rows, but data.edge_index has {edges} edges")
        if bad := count_not_finite(value):
            raise MarioError(f"data.{key} holds {bad} NaN or infinite entries; fill or drop them first")
    weight = data.get("edge_weight")
    if weight is not None and (bad := count_negative(weight)):
        raise MarioError(f"data.edge_weight holds {bad} negative weights; weights must be at least 0")


def _check_batch(data: Data, num_nodes: int) -> int:
    """The number of graphs in a set."""
    batch, ptr, edge_index = data.batch, data.get("ptr"), data.edge_index
    if not isinstance(batch, Tensor) or batch.dtype != torch.int64 or batch.shape != (num_nodes,):
        raise MarioError(f"data.batch must hold the graph (int64) of each of {num_nodes} nodes, got {_kind(batch)}")
    if int(batch[0]) < 0 or bool((batch[1:] < batch[:-1]).any()):
        raise MarioError("data.batch must ascend from 0: the nodes of a graph must be consecutive")
    graphs = count_graphs(data)
    if int(batch[-1]) >= graphs:
        named = int(batch[-1])
        raise MarioError(f"data.batch names graph {named}, but the {graphs} graphs are numbered 0..{graphs - 1}")
    sizes = torch.bincount(batch, minlength=graphs)
    if bool((sizes == 0).any()):
        raise MarioError(f"graph {int((sizes == 0).nonzero()[0])} of data has no nodes; remove it from the set")
    if ptr is not None and (ptr.dim() != 1 or int(ptr[0]) != 0 or not torch.equal(ptr.diff(), sizes)):
        raise MarioError("data.ptr must hold the first node of each graph of data.batch, and the number of nodes")
    if edge_index.numel() and bool((batch[edge_index[0]] != batch[edge_index[1]]).any()):
        raise MarioError("data.edge_index links nodes of two graphs; the graphs of a set have no edges between them")
    return graphs


def _check_masks(masks: dict[str, object], num_nodes: int, unit: str = "nodes") -> None:
    owner = None
    for name, mask in masks.items():
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != (num_nodes,):
            several = isinstance(mask, Tensor) and mask.dim() == 2 and mask.size(0) == num_nodes
            hint = f"; choose one of several splits, such as data.{name}_mask[:, 0]" if several else ""
            raise MarioError(f"data.{name}_mask must be a bool for each of {num_nodes} {unit}, got {_kind(mask)}{hint}")
        if not bool(mask.any()):
            raise MarioError(f"data.{name}_mask is empty; every part of a split needs some of the {unit}")
        code = list(masks).index(name)
        if owner is None:
            owner = torch.full((num_nodes,), -1, device=mask.device)
        taken = owner[mask]
        if bool((taken >= 0).any()):
            other = list(masks)[int(taken[taken >= 0][0])]
            raise MarioError(
                f"data.{other}_mask and data.{name}_mask share {int((taken >= 0).sum())} {unit}; parts must not overlap"
            )
        owner[mask] = code


def _check_visible(visible: object, masks: dict[str, Tensor], num_nodes: int) -> None:
    if visible is None:
        return
    if not isinstance(visible, Tensor) or visible.dtype != torch.bool or visible.shape != (num_nodes,):
        raise MarioError(f"data.visible_mask must be a bool for each of {num_nodes} nodes, got {_kind(visible)}")
    if "train" in masks and bool((masks["train"] & ~visible).any()):
        raise MarioError("data.visible_mask leaves out nodes of train_mask; it must contain all of them")
    for name in ("ood_val", "ood_test"):
        if name in masks and bool((masks[name] & visible).any()):
            raise MarioError(f"data.visible_mask contains nodes of {name}_mask; it must contain none of them")


def _check_groups(ids: Tensor | None, names: object) -> None:
    if ids is None:
        return
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise MarioError(f"data.group_id needs data.groups, a list of distinct names, one per group, got {names!r}")
    low, high = (int(end) for end in ids.aminmax())
    if low < -1 or high >= len(names):
        raise MarioError(f"data.group_id must be 0..{len(names) - 1} (-1 for none), got {low if low < -1 else high}")


def _check_labels(data: Data, masks: dict[str, Tensor], num_nodes: int, unit: str = "nodes") -> None:
    y = data.get("y")
    if y is None:
        return
    if not isinstance(y, Tensor) or y.dtype != torch.int64 or y.shape != (num_nodes,):
        column = isinstance(y, Tensor) and y.numel() == num_nodes
        classes = "use data.y.view(-1).long() for classes, or " if column else ""
        hint = f"{classes}del data.y if labels are not needed"
        raise MarioError(f"data.y must hold one int64 class for each of {num_nodes} {unit}, got {_kind(y)}; {hint}")
    classes = data.get("num_classes")
    low, high = (int(end) for end in y.aminmax())
    if low < -1 or (classes is not None and high >= classes):
        known = "0 or more" if classes is None else f"0..{classes - 1}"
        raise MarioError(f"data.y must be {known} (-1 for no label), got {low if low < -1 else high}")
    for name, mask in masks.items():
        if bool((y[mask] < 0).any()):
            raise MarioError(
                f"data.y has no label for {int((y[mask] < 0).sum())} {unit} of {name}_mask; remove them from it"
            )


def _kind(value: object) -> str:
    return f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
