"""Slow references, entry by entry in plain Python: what a graph is (docs/reliability.md), and its dense features."""

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.graphs.rules import PARTS

SCORES = ("train", "id_val", "id_test", "ood_val", "ood_test", "epoch", "step", "align_mean", "align_worst")
LARGEST = torch.finfo(torch.float32).max


def sound(data: Data) -> bool:
    """Whether every rule of the table in docs/reliability.md holds."""
    try:
        _check(data)
    except AssertionError:
        return False
    return True


def _check(data: Data) -> None:
    found = data.to_dict()
    for value in found.values():
        if isinstance(value, Tensor):
            _check_tensor(value)
    x, edge_index = found.get("x"), found.get("edge_index")
    assert isinstance(x, Tensor)
    assert x.dim() == 2
    nodes, columns = x.shape
    assert nodes >= 1
    assert columns >= 1
    _check_numbers(x.values() if x.layout == torch.sparse_csr else x)
    assert _is_count(found.get("num_nodes", nodes), nodes)
    assert isinstance(edge_index, Tensor)
    assert edge_index.layout == torch.strided
    assert edge_index.dtype == torch.int64
    assert edge_index.dim() == 2
    assert edge_index.size(0) == 2
    edges = list(zip(*edge_index.tolist(), strict=True))
    assert all(0 <= end < nodes for edge in edges for end in edge)
    _check_edge_data(found, len(edges))
    rows = _graphs(found, nodes, edges) if found.get("batch") is not None else nodes
    if "batch" in found:
        assert found["batch"] is not None
    else:
        assert found.get("ptr") is None
    parts = {name: _bools(found[f"{name}_mask"], rows) for name in PARTS if f"{name}_mask" in found}
    assert all(any(mask) for mask in parts.values())
    assert all(sum(masks) <= 1 for masks in zip(*parts.values(), strict=True))
    _check_labels(found, rows, parts)
    for key in ("domain_id", "env_id", "group_id"):
        if found.get(key) is not None:
            _integers(found[key], rows)
    setting = found.get("setting")
    assert setting is None or (isinstance(setting, str) and setting in ("transductive", "inductive"))
    if found.get("visible_mask") is not None:
        assert "batch" not in found
        visible = _bools(found["visible_mask"], rows)
        assert setting is not None
        assert all(seen for seen, trained in zip(visible, parts.get("train", ()), strict=False) if trained)
        for name in ("ood_val", "ood_test"):
            assert not any(seen and kept for seen, kept in zip(visible, parts.get(name, ()), strict=False))
    if found.get("group_id") is not None:
        names = found.get("groups")
        assert isinstance(names, list)
        assert all(isinstance(name, str) and name not in SCORES for name in names)
        assert len(set(names)) == len(names)
        assert all(-1 <= group < len(names) for group in found["group_id"].tolist())


def _check_tensor(value: Tensor) -> None:
    assert not value.is_nested
    assert not value.is_quantized
    assert value.layout in (torch.strided, torch.sparse_csr)
    assert value.device.type == "cpu"
    if value.layout == torch.strided:
        return
    assert value.dim() == 2
    assert value.values().dim() == 1
    crow, col, entries = value.crow_indices(), value.col_indices(), value.values().numel()
    assert crow.dtype == col.dtype
    assert crow.dtype in (torch.int32, torch.int64)
    starts, columns = crow.tolist(), col.tolist()
    assert len(starts) == value.size(0) + 1
    assert len(columns) == entries
    assert starts[0] == 0
    assert starts[-1] == entries
    for first, last in pairwise(starts):
        assert first <= last
        row = columns[first:last]
        assert row == sorted(set(row))
    assert all(0 <= column < value.size(1) for column in columns)


def _check_numbers(entries: Tensor) -> None:
    assert entries.dtype in (torch.float32, torch.float64)
    assert not entries.requires_grad
    numbers = entries.reshape(-1).tolist()
    assert all(math.isfinite(number) and abs(number) <= LARGEST for number in numbers)


def _check_edge_data(found: dict[str, Any], edges: int) -> None:
    for key, rank in (("edge_weight", 1), ("edge_attr", 2)):
        value = found.get(key)
        if value is not None:
            assert isinstance(value, Tensor)
            assert value.layout == torch.strided
            assert value.dim() == rank
            assert value.size(0) == edges
            _check_numbers(value)
    if found.get("edge_weight") is not None:
        assert all(weight >= 0 for weight in found["edge_weight"].tolist())


def _graphs(found: dict[str, Any], nodes: int, edges: list[tuple[int, int]]) -> int:
    """The number of graphs of a set."""
    batch = _integers(found["batch"], nodes)
    assert batch == sorted(batch)
    assert sorted(set(batch)) == list(range(len(set(batch))))
    if found.get("ptr") is not None:
        starts = [batch.index(graph) for graph in range(batch[-1] + 1)]
        assert _integers(found["ptr"], len(starts) + 1) == [*starts, nodes]
    assert _is_count(found.get("num_graphs", batch[-1] + 1), batch[-1] + 1)
    assert all(batch[source] == batch[target] for source, target in edges)
    return batch[-1] + 1


def _check_labels(found: dict[str, Any], rows: int, parts: dict[str, list[bool]]) -> None:
    if found.get("y") is None:
        return
    y, classes = _integers(found["y"], rows), found.get("num_classes")
    if classes is not None:
        assert isinstance(classes, int)
        assert not isinstance(classes, bool)
        assert classes >= 1
    assert all(label >= -1 and (classes is None or label < classes) for label in y)
    for mask in parts.values():
        assert all(label >= 0 for label, kept in zip(y, mask, strict=True) if kept)


def _is_count(value: object, due: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value == due


def _integers(value: Any, count: int) -> list[int]:
    assert isinstance(value, Tensor)
    assert value.layout == torch.strided
    assert value.dtype == torch.int64
    assert value.shape == (count,)
    return value.tolist()


def _bools(value: Any, count: int) -> list[bool]:
    assert isinstance(value, Tensor)
    assert value.layout == torch.strided
    assert value.dtype == torch.bool
    assert value.shape == (count,)
    return value.tolist()


def dense(x: Tensor) -> Tensor:
    """Features as a dense matrix, entry by entry."""
    if x.layout == torch.strided:
        return x
    made = torch.zeros(x.shape, dtype=x.dtype)
    starts, columns, values = x.crow_indices().tolist(), x.col_indices().tolist(), x.values()
    for row in range(x.size(0)):
        for entry in range(starts[row], starts[row + 1]):
            made[row, columns[entry]] = values[entry]
    return made


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal in type and bits; NaN equals NaN, and a list a tuple."""
    if isinstance(one, Tensor):
        if not isinstance(other, Tensor) or (one.shape, one.dtype, one.layout) != (
            *(other.shape, other.dtype, other.layout),
        ):
            return False
        if one.layout == torch.sparse_csr:
            parts = (Tensor.crow_indices, Tensor.col_indices, Tensor.values)
            return all(same(part(one), part(other)) for part in parts)
        return torch.equal(one.isnan(), other.isnan()) and torch.equal(one[~one.isnan()], other[~other.isnan()])
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):  # a file has no tuples
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)


def same_graph(one: Data, other: Data) -> bool:
    left, right = one.to_dict(), other.to_dict()
    return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
