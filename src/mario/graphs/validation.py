"""What a graph is: the only place that decides it. Errors say what to fix; docs/reliability.md lists the rules."""

from collections.abc import Callable
from functools import partial
from typing import TypeGuard

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.features import Features, Perturbed, SelectedRows
from mario.graphs.paging import check_file, count_beyond, count_negative, count_not_finite, extremes, machine_memory
from mario.graphs.remembered import remembered
from mario.graphs.rules import EDGE_DATA, PARTS, SETTINGS, choose

_NODE_BYTES = 32  # that samplers and views take for a node, at least
# Keys of a checkpoint's record besides the scores of test groups.
_SCORES = (
    *PARTS,
    *("epoch", "step", "align_mean", "align_worst"),
    *("ood_test_by_id_val", "calibration_id_test", "calibration_ood_test"),
)


def check_graph(data: Data) -> None:
    """Raise `MarioError` unless ``data`` is a valid graph, or set of graphs.

    - ``x``: float32 or float64 [nodes, features], dense or sparse CSR, finite. The columns of a sparse row ascend.
    - ``edge_index``: int64 [2, edges], ids in range.
    - ``edge_weight``, if present: float32 or float64 [edges], finite and not negative.
    - ``edge_attr``, if present: float32 or float64 [edges, attributes], finite.
    - ``x``, ``edge_weight`` and ``edge_attr`` do not require gradients and fit torch's default type.
    - ``y``, if present: one int64 per node; -1 means no label. Such a node of a mask is not scored.
    - Masks, if present: bool, one entry per node, none empty, no two overlapping.
    - ``setting``, if present: ``"transductive"`` or ``"inductive"``.
    - ``visible_mask``, what inductive training may see: all of ``train_mask`` and nothing of the OOD parts. It needs
      ``setting``.
    - ``group_id``, the test group of each node: has its name in ``groups``.

    In a set of graphs (``batch``), labels and masks have one row per graph, ``batch`` ascends, every graph has a node,
    and edges stay within their graph.

    Example:
        >>> check_graph(Data(x=torch.eye(2), edge_index=torch.tensor([[0], [2]])))
        Traceback (most recent call last):
        mario.errors.MarioError: data.edge_index names node 2, but the 2 nodes are numbered 0..1
    """
    num_nodes = _check_structure(data, needed=("x", "edge_index"), once=_always)
    _check_values("x", data.x)
    _check_edge_data(data)
    num_rows, unit = num_nodes, "nodes"
    if "batch" in data:
        num_rows, unit = check_set(data), "graphs"
    masks = {name: data[f"{name}_mask"] for name in PARTS if f"{name}_mask" in data}
    _check_masks(masks, num_rows, unit)
    _check_labels(data, num_rows, unit)
    for key in ("domain_id", "env_id", "group_id"):
        ids = data.get(key)
        if ids is not None and not _is_vector(ids, torch.int64, num_rows):
            raise MarioError(f"data.{key} must hold one int64 for each of {num_rows} {unit}, got {_kind(ids)}")
    if data.get("setting") is not None:
        choose("data.setting", data.setting, SETTINGS)
    _check_visible(data, masks, num_rows)
    _check_groups(data.get("group_id"), data.get("groups"))


def check_structure(data: Data) -> int:
    """The number of nodes; `MarioError` if an index of ``data`` is out of bounds, or two of its shapes do not match.

    For samplers, views and files, which work with any values, labels and masks. Tensors that have passed are remembered
    for as long as they live and are not changed in place, so that checking a graph again takes microseconds. Changes
    that torch does not track, through ``.data`` or a numpy array, are not noticed here; `check_graph` notices them.

    Example:
        >>> check_structure(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=3))
        3
    """
    return _check_structure(data, needed=(), once=remembered)


def _always(tensor: Tensor, key: object, check: Callable[[], None]) -> None:
    check()


def _check_structure(data: Data, needed: tuple[str, ...], once: Callable[..., None]) -> int:
    _check_type(data)
    _check_tensors(data, once)
    x, edge_index = data.get("x"), data.get("edge_index")
    while not needed and isinstance(x, Features | Perturbed | SelectedRows):  # a view in parts
        x = x.x if isinstance(x, Features) else x.features
    if x is not None or "x" in needed:
        _check_matrix(x)
    if "x" in needed and not x.numel():
        raise MarioError(f"data.x has shape {tuple(x.shape)}; a graph needs at least a node and a feature")
    if edge_index is not None or "edge_index" in needed:
        _check_edge_form(edge_index)
    if x is not None and x.layout == torch.sparse_csr:
        once(x, "csr", partial(_check_csr, "x", x))
    num_nodes = int(data.x.size(0)) if x is not None else _stated_nodes(data)
    _check_count(data, "num_nodes", num_nodes, f"data.x has {num_nodes} rows")
    if edge_index is not None:
        once(edge_index, ("edges", num_nodes), lambda: _check_edge_bounds(edge_index, num_nodes))
        for key in EDGE_DATA:
            value, edges = data.get(key), edge_index.size(1)
            if value is not None and not isinstance(value, Tensor):
                raise MarioError(f"data.{key} must be a tensor with a row for each edge, got {_kind(value)}; remove it")
            if isinstance(value, Tensor) and (not value.dim() or value.size(0) != edges):
                rows = value.size(0) if value.dim() else "no"
                raise MarioError(f"data.{key} has {rows} rows, but data.edge_index has {edges} edges")
    batch, ptr = data.get("batch"), data.get("ptr")
    if ptr is not None and not (batch is not None and _is_vector(ptr, torch.int64) and ptr.numel() > 1):
        raise MarioError(
            "data.ptr must hold the first node (int64) of each graph of data.batch, and the number of nodes, "
            f"got {_kind(ptr)}{'' if batch is not None else ' without data.batch'}"
        )
    if batch is not None and not _is_vector(batch, torch.int64, num_nodes):
        raise MarioError(f"data.batch must hold the graph (int64) of each of {num_nodes} nodes, got {_kind(batch)}")
    if batch is not None and num_nodes:
        low, high = (int(end) for end in batch.aminmax())
        graphs = max(num_nodes, 0 if ptr is None else ptr.numel() - 1)
        if low < 0 or high >= graphs:
            named = low if low < 0 else high
            raise MarioError(f"data.batch names graph {named}, but must ascend from 0 with a node in every graph")
    return num_nodes


def _check_type(data: object) -> None:
    if not isinstance(data, Data):
        raise MarioError(f"data must be a torch_geometric.data.Data, got {type(data).__name__}")


def _stated_nodes(data: Data) -> int:
    """The number of nodes of a graph without features."""
    try:
        stated = data.num_nodes if data.num_nodes is not None else 0
    except IndexError:  # PyG asks for the size of another tensor, which has none
        raise MarioError("data has neither x nor num_nodes, from which the number of nodes follows; set one") from None
    if isinstance(stated, bool) or not isinstance(stated, int) or stated < 0:
        raise MarioError(f"data.num_nodes must be the number of nodes of a graph without data.x, got {stated!r}")
    if stated * _NODE_BYTES > machine_memory():
        raise MarioError(f"data.num_nodes is {stated}, more nodes than the memory of this machine can hold")
    return stated


def _check_count(data: Data, key: str, there: int, fact: str) -> None:
    """A number that is stated although it follows from the tensors."""
    stated = data.get(key, there)
    if isinstance(stated, bool) or not isinstance(stated, int) or stated != there:
        raise MarioError(f"data.{key} is {stated!r}, but {fact}; remove data.{key}")


def _check_tensors(data: Data, once: Callable[..., None]) -> None:
    """What holds for all tensors, also those that have no meaning here but are sliced with the others."""
    tensors = {key: value for key, value in data if isinstance(value, Tensor)}
    first = next(iter(tensors), "")
    for key, value in tensors.items():
        if value.is_nested or value.is_quantized or value.layout not in (torch.strided, torch.sparse_csr):
            raise MarioError(f"data.{key} is {_layout(value)}; make it dense or sparse CSR")
        if value.device != tensors[first].device or value.device.type == "meta":
            other = f" and data.{first} on {tensors[first].device}" if key != first else ""
            raise MarioError(
                f"data.{key} is on {value.device}{other}; use data.to('cpu'), or load tensors that hold numbers"
            )
        if value.layout == torch.sparse_csr:
            once(value, "csr", partial(_check_csr, key, value))
        check_file(value)


def _check_matrix(x: object) -> None:
    if not isinstance(x, Tensor) or x.dim() != 2 or x.layout not in (torch.strided, torch.sparse_csr):
        raise MarioError(f"data.x must be a [nodes, features] matrix, dense or sparse CSR, got {_kind(x)}")


def _check_csr(key: str, matrix: Tensor) -> None:
    """The invariants of a sparse CSR matrix. torch checks none of them by default, and its kernels crash without."""
    crow, col, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    rows, columns, entries = matrix.size(0), matrix.size(1), values.numel()
    if crow.dtype != col.dtype or crow.dtype not in (torch.int32, torch.int64):
        raise MarioError(
            f"data.{key} must have int64 (or int32) indices, got rows {crow.dtype} and columns {col.dtype}"
        )
    if crow.shape != (rows + 1,) or col.shape != (entries,) or values.dim() != 1 or matrix.dim() != 2:
        raise MarioError(
            f"data.{key} is not a sparse CSR matrix of {rows} rows: it has {crow.numel()} row pointers, {col.numel()} "
            f"columns and {entries} values"
        )
    if int(crow[0]) != 0 or int(crow[-1]) != entries or bool((crow[1:] < crow[:-1]).any()):
        raise MarioError(f"the row pointers of data.{key} must ascend from 0 to its {entries} entries; they do not")
    if not entries:
        return
    low, high = extremes(col)
    if low < 0 or high >= columns:
        named = low if low < 0 else high
        raise MarioError(f"data.{key} has an entry in column {named}, but its {columns} columns are 0..{columns - 1}")
    within = torch.ones(entries, dtype=torch.bool, device=col.device)  # entries that follow one of the same row
    starts = crow[:-1]
    within[starts[starts < entries].long()] = False
    if bool((within[1:] & (col[1:] <= col[:-1])).any()):
        raise MarioError(
            f"the columns of a row of data.{key} do not ascend, or one is there twice; sort and merge the entries, "
            "for example with scipy's csr_array.sum_duplicates()"
        )


def _check_values(key: str, value: Tensor) -> None:
    """Numbers that a method takes as its input."""
    if value.dtype not in (torch.float32, torch.float64):
        raise MarioError(f"data.{key} must be float32 (or float64), got {value.dtype}; use data.{key}.float()")
    if value.requires_grad:
        raise MarioError(f"data.{key} requires gradients, but methods do not train it; use data.{key}.detach()")
    entries = value.values() if value.layout == torch.sparse_csr else value
    if bad := count_not_finite(entries):
        raise MarioError(f"data.{key} holds {bad} NaN or infinite entries; fill or drop them first")
    dtype = torch.get_default_dtype()
    if value.dtype != dtype and (bad := count_beyond(entries, torch.finfo(dtype).max)):
        raise MarioError(f"data.{key} holds {bad} entries that are infinite as {dtype}; scale it")


def check_edges(edge_index: object, num_nodes: int, name: str = "edge_index") -> None:
    """Raise `MarioError` unless ``edge_index`` is int64 [2, edges] and holds ids of nodes.

    An id out of range would read foreign memory in some kernels instead of failing.
    """
    _check_edge_bounds(_check_edge_form(edge_index, name), num_nodes, name)


def _check_edge_form(edge_index: object, name: str = "data.edge_index") -> Tensor:
    dense = isinstance(edge_index, Tensor) and edge_index.layout == torch.strided
    if not isinstance(edge_index, Tensor) or not dense or edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise MarioError(f"{name} must be a [2, edges] tensor of node ids, got {_kind(edge_index)}")
    if edge_index.dtype != torch.int64:
        raise MarioError(f"{name} must be int64, got {edge_index.dtype}; use {name}.long()")
    return edge_index


def _check_edge_bounds(edge_index: Tensor, num_nodes: int, name: str = "data.edge_index") -> None:
    if edge_index.numel() == 0:
        return
    low, high = extremes(edge_index)
    if low < 0 or high >= num_nodes:
        named = low if low < 0 else high
        raise MarioError(f"{name} names node {named}, but the {num_nodes} nodes are numbered 0..{num_nodes - 1}")


def _check_edge_data(data: Data) -> None:
    """Weights and attributes of edges."""
    for key, rank, shape in (("edge_weight", 1, "[edges]"), ("edge_attr", 2, "[edges, attributes]")):
        value = data.get(key)
        if value is None:
            continue
        if not isinstance(value, Tensor) or value.layout != torch.strided or value.dim() != rank:
            raise MarioError(f"data.{key} must be a tensor of shape {shape}, got {_kind(value)}; reshape or remove it")
        _check_values(key, value)
    weight = data.get("edge_weight")
    if weight is not None and (bad := count_negative(weight)):
        raise MarioError(f"data.edge_weight holds {bad} negative weights; weights must be at least 0")


def check_set(data: Data) -> int:
    """The number of graphs of a set that has passed `check_structure`; `MarioError` unless they are consecutive."""
    batch, ptr, edge_index = data.batch, data.get("ptr"), data.edge_index
    if not batch.numel() or bool((batch[1:] < batch[:-1]).any()):
        raise MarioError("data.batch must ascend from 0: the nodes of a graph must be consecutive")
    graphs = int(ptr.numel()) - 1 if ptr is not None else int(batch[-1]) + 1
    _check_count(data, "num_graphs", graphs, f"data.{'batch' if ptr is None else 'ptr'} has {graphs} graphs")
    if int(batch[-1]) >= graphs:
        named = int(batch[-1])
        raise MarioError(f"data.batch names graph {named}, but the {graphs} graphs are numbered 0..{graphs - 1}")
    # Not bincount: a huge id would ask for as much memory. As batch ascends, a gap is a step of two or more.
    ids, sizes = batch.unique_consecutive(return_counts=True)
    if ids.numel() != graphs:
        gaps = (ids != torch.arange(ids.numel(), device=ids.device)).nonzero()
        absent = int(gaps[0]) if gaps.numel() else ids.numel()
        raise MarioError(f"graph {absent} of data has no nodes; remove it from the set")
    if ptr is not None and (int(ptr[0]) != 0 or not torch.equal(ptr.diff(), sizes)):
        raise MarioError("data.ptr must hold the first node of each graph of data.batch, and the number of nodes")
    if edge_index.numel() and bool((batch[edge_index[0]] != batch[edge_index[1]]).any()):
        raise MarioError("data.edge_index links nodes of two graphs; the graphs of a set have no edges between them")
    return graphs


def _check_masks(masks: dict[str, Tensor], num_nodes: int, unit: str = "nodes") -> None:
    owner = None
    for name, mask in masks.items():
        if not _is_vector(mask, torch.bool, num_nodes):
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


def _check_visible(data: Data, masks: dict[str, Tensor], num_nodes: int) -> None:
    visible = data.get("visible_mask")
    if visible is None:
        return
    if "batch" in data:
        raise MarioError("data.visible_mask has no effect in a set of graphs, where train_mask decides; remove it")
    if not _is_vector(visible, torch.bool, num_nodes):
        raise MarioError(f"data.visible_mask must be a bool for each of {num_nodes} nodes, got {_kind(visible)}")
    if data.get("setting") is None:
        raise MarioError(
            "data.visible_mask needs data.setting: 'inductive' shows training these nodes, 'transductive' all nodes"
        )
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
    taken = [name for name in names if name in _SCORES]
    if taken:
        raise MarioError(f"data.groups names a group {taken[0]!r}, the name of another score; rename it")
    low, high = (int(end) for end in ids.aminmax())
    if low < -1 or high >= len(names):
        raise MarioError(f"data.group_id must be 0..{len(names) - 1} (-1 for none), got {low if low < -1 else high}")


def _check_labels(data: Data, num_nodes: int, unit: str = "nodes") -> None:
    y = data.get("y")
    if y is None:
        return
    if not _is_vector(y, torch.int64, num_nodes):
        column = isinstance(y, Tensor) and y.numel() == num_nodes
        classes = "use data.y.view(-1).long() for classes, or " if column else ""
        hint = f"{classes}del data.y if labels are not needed"
        raise MarioError(f"data.y must hold one int64 class for each of {num_nodes} {unit}, got {_kind(y)}; {hint}")
    classes = data.get("num_classes")
    if classes is not None and (isinstance(classes, bool) or not isinstance(classes, int) or classes < 1):
        raise MarioError(f"data.num_classes must be a whole number of classes, at least 1, got {classes!r}")
    low, high = (int(end) for end in y.aminmax())
    if low < -1 or (classes is not None and high >= classes):
        known = "0 or more" if classes is None else f"0..{classes - 1}"
        raise MarioError(f"data.y must be {known} (-1 for no label), got {low if low < -1 else high}")


def _is_vector(value: object, dtype: torch.dtype, length: int | None = None) -> TypeGuard[Tensor]:
    if not isinstance(value, Tensor) or value.dtype != dtype or value.layout != torch.strided or value.dim() != 1:
        return False
    return length is None or value.numel() == length


def _kind(value: object) -> str:
    if not isinstance(value, Tensor):
        return type(value).__name__
    layout = "" if value.layout == torch.strided else f"{_layout(value)} "
    return f"{layout}{value.dtype} of shape {tuple(value.shape)}"


def _layout(value: Tensor) -> str:
    return (
        "nested" if value.is_nested else "quantized" if value.is_quantized else str(value.layout).removeprefix("torch.")
    )
