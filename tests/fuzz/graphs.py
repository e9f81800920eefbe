"""Strategies for graphs: sound ones, and ones with any damage."""

from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from torch import Tensor
from torch_geometric.data import Data

from mario.graphs.rules import PARTS

NUMBERS = (0.0, 1.0, -1.0, 0.5, 1e-30, 1e-45, 1e19, -1e30, 3e38)
"""Entries that are allowed, including those whose squares are not."""
ODD_NUMBERS = (*NUMBERS, float("nan"), float("inf"), float("-inf"), 1e39, -1e300)
ODD_INTEGERS = (-(2**63), -(2**31) - 1, -2, -1, 0, 1, 2, 3, 5, 2**31, 2**40, 2**62, 2**63 - 1)
FLOATS = (torch.float32, torch.float64)
DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.bool),
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
)
KEYS = (
    *(
        "x",
        "edge_index",
        "edge_weight",
        "edge_attr",
        "y",
        "num_classes",
        "num_nodes",
        "domain_id",
        "env_id",
        "group_id",
    ),
    *("groups", "setting", "visible_mask", "batch", "ptr", "num_graphs", "n_id", "other", "pos", "face", "adj_t"),
    *(f"{part}_mask" for part in PARTS),
)
WORDS = ("", "a", "id_val", "step", "inductive", "Inductive", "transductive", "../x", "é", "\ud800", "x" * 300)

seeds = st.integers(0, 2**32 - 1)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@st.composite
def features(draw: DrawFn, nodes: int) -> Tensor:
    """A matrix of random numbers, some of which are as large or as small as they get."""
    width = draw(st.integers(1, 5))
    dtype = draw(st.sampled_from(FLOATS))
    x = torch.rand(nodes, width, generator=generator(draw(seeds)), dtype=dtype) * 2 - 1
    x[x.abs() < draw(st.sampled_from((0.0, 0.5, 1.1)))] = 0
    x = x * draw(st.sampled_from((1.0, 1.0, 1.0, 1e-30, 1e10, 1e19, 1e38)))
    for _ in range(draw(st.integers(0, 2))):
        x[draw(st.integers(0, nodes - 1)), draw(st.integers(0, width - 1))] = draw(st.sampled_from(NUMBERS))
    if draw(st.booleans()):
        return with_indices(x.to_sparse_csr(), draw(st.sampled_from((torch.int64, torch.int32))))
    return x if draw(st.booleans()) else x.t().contiguous().t()  # rows or columns next to one another


def with_indices(x: Tensor, dtype: torch.dtype) -> Tensor:
    parts = x.crow_indices().to(dtype), x.col_indices().to(dtype), x.values()
    return torch.sparse_csr_tensor(*parts, size=x.shape)


@st.composite
def edge_data(draw: DrawFn, edges: int) -> dict[str, Tensor]:
    drawn = generator(draw(seeds))
    found: dict[str, Tensor] = {}
    dtype = draw(st.sampled_from(FLOATS))
    if draw(st.booleans()):
        scale = draw(st.sampled_from((1.0, 0.0, 1e-30, 1e19)))
        found["edge_weight"] = torch.rand(edges, generator=drawn, dtype=dtype) * scale
    if draw(st.booleans()):
        found["edge_attr"] = torch.randn(edges, draw(st.integers(1, 3)), generator=drawn, dtype=dtype)
    return found


@st.composite
def graphs(draw: DrawFn, *, labeled: bool = False, most: int = 9) -> Data:
    """A sound graph: isolated nodes, self-loops and edges that occur twice are allowed."""
    nodes = draw(st.integers(2 if labeled else 1, most))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    edge_list = draw(st.lists(ends, max_size=16))
    if draw(st.booleans()):
        edge_list += [(target, source) for source, target in edge_list]
    edge_index = torch.tensor(edge_list, dtype=torch.int64).view(-1, 2).t()
    data = Data(x=draw(features(nodes)), edge_index=edge_index.contiguous() if draw(st.booleans()) else edge_index)
    for key, value in draw(edge_data(len(edge_list))).items():
        data[key] = value
    if labeled or draw(st.booleans()):
        _label(draw, data, nodes, labeled)
        if draw(st.booleans()):
            _show(draw, data)
    if draw(st.booleans()):
        data.name, data.faults, data.prior = "a graph", [], torch.tensor([0.5, 0.5])
    return data


def _label(draw: DrawFn, data: Data, rows: int, full: bool) -> None:
    """Labels, a part of the split for some rows, and their domains."""
    classes = draw(st.integers(1, 3))
    drawn = generator(draw(seeds))
    part = torch.randint(-1, len(PARTS), (rows,), generator=drawn)
    if full:  # every part, as far as there are rows
        part[torch.randperm(rows, generator=drawn)[: len(PARTS)]] = torch.arange(min(rows, len(PARTS)))
    y = torch.randint(classes, (rows,), generator=drawn)
    if draw(st.booleans()):
        y[part < 0] = -1
    data.y = y
    if full or draw(st.booleans()):
        data.num_classes = classes
    for number, name in enumerate(PARTS):
        if bool((part == number).any()):
            data[f"{name}_mask"] = part == number
    if draw(st.booleans()):
        data.domain_id = torch.randint(3, (rows,), generator=drawn)
        data.env_id = torch.where(part == 0, data.domain_id, -1)
    if draw(st.booleans()):
        data.group_id, data.groups = torch.where(part == len(PARTS) - 1, 0, -1), ["T1", "T2"]


def _show(draw: DrawFn, data: Data) -> None:
    """What training may see."""
    data.setting = draw(st.sampled_from(("transductive", "inductive")))
    if draw(st.booleans()):
        rows = data.y.numel()
        hidden = torch.zeros(rows, dtype=torch.bool)
        for name in ("ood_val", "ood_test"):
            if f"{name}_mask" in data:
                hidden |= data[f"{name}_mask"]
        seen = torch.rand(rows, generator=generator(draw(seeds))) < 0.5
        train = data.train_mask if "train_mask" in data else torch.zeros(rows, dtype=torch.bool)
        data.visible_mask = (seen | train) & ~hidden


@st.composite
def graph_sets(draw: DrawFn, *, labeled: bool = False) -> Data:
    """A sound set of graphs."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2 if labeled else 1, max_size=6))
    nodes, edge_list, first = sum(sizes), [], 0
    for size in sizes:
        ends = st.tuples(st.integers(first, first + size - 1), st.integers(first, first + size - 1))
        edge_list += draw(st.lists(ends, max_size=5))
        first += size
    data = Data(x=draw(features(nodes)), edge_index=torch.tensor(edge_list, dtype=torch.int64).view(-1, 2).t())
    for key, value in draw(edge_data(len(edge_list))).items():
        data[key] = value
    data.batch = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    if draw(st.booleans()):
        data.ptr = torch.tensor([0, *np.cumsum(sizes).tolist()])
    if draw(st.booleans()):
        data.num_graphs = len(sizes)
    if labeled or draw(st.booleans()):
        _label(draw, data, len(sizes), labeled)
    return data


@st.composite
def tensors(draw: DrawFn, lengths: tuple[int, ...] = (0, 1, 2, 3, 5)) -> Tensor:
    """Any tensor: of any type, shape, layout and device, with any entries."""
    shape = tuple(draw(st.lists(st.sampled_from(lengths), max_size=3)))
    dtype = draw(st.sampled_from(DTYPES))
    if draw(st.integers(0, 19)) == 0:
        return torch.empty(shape or (1,), dtype=dtype, device="meta")  # PyG cannot show a graph with a single number
    if dtype.is_floating_point or dtype.is_complex:
        pool = torch.tensor(draw(st.lists(st.sampled_from(ODD_NUMBERS), min_size=1, max_size=3)), dtype=torch.float64)
    else:
        pool = torch.tensor(draw(st.lists(st.sampled_from(ODD_INTEGERS), min_size=1, max_size=3)))
    count = int(np.prod(shape))
    made = pool[torch.arange(count) % pool.numel()].to(dtype).view(shape)
    kind = draw(
        st.sampled_from(("dense", "dense", "dense", "dense", "gradient", "layout", "nested", "quantized", "view"))
    )
    if kind == "gradient" and (dtype.is_floating_point or dtype.is_complex):
        return made.requires_grad_()
    if kind == "layout" and made.dim() == 2 and dtype in FLOATS:
        names = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)
        return made.to_sparse(layout=draw(st.sampled_from(names)))
    if kind == "nested" and made.dim() and dtype in FLOATS:
        return torch.nested.nested_tensor([made, made])
    if kind == "quantized" and dtype == torch.float32 and bool(torch.isfinite(made).all()):
        return torch.quantize_per_tensor(made, 0.1, 0, torch.qint8)
    if kind == "view" and made.dim():
        return made.expand(2, *made.shape).transpose(0, -1)
    return made


@st.composite
def sparse_matrices(draw: DrawFn, rows: int, columns: int) -> Tensor:
    """A sparse CSR matrix with any indices. torch crashes where it reads some of them."""
    entries = draw(st.integers(0, 6))
    integers = st.one_of(st.integers(0, max(entries, columns)), st.sampled_from(ODD_INTEGERS))
    crow = draw(st.lists(integers, min_size=rows + 1, max_size=rows + 1))
    if draw(st.booleans()):
        crow = sorted(min(max(number, 0), entries) for number in crow)
        crow[0], crow[-1] = 0, entries
    if draw(st.integers(0, 9)) == 0:
        crow = crow[:-1]
    col = draw(st.lists(integers, min_size=entries, max_size=entries))
    if draw(st.booleans()):
        col = [number % columns for number in col]
    values = draw(st.lists(st.sampled_from(ODD_NUMBERS), min_size=entries, max_size=entries))
    first, second = (draw(st.sampled_from((np.int64, np.int64, np.int64, np.int32))) for _ in range(2))
    return torch.sparse_csr_tensor(
        torch.from_numpy(np.array(crow, dtype=np.int64).astype(first)),
        torch.from_numpy(np.array(col, dtype=np.int64).astype(second)),
        torch.tensor(values, dtype=draw(st.sampled_from(FLOATS))),
        size=(rows, columns),
        check_invariants=False,
    )


things: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(ODD_INTEGERS),
    st.sampled_from(ODD_NUMBERS),
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), max_size=3),
    st.just((1, 2)),
    st.just({"a": [1]}),
    st.just({1: 2}),
    st.just(2**70),
    st.just(object()),
    st.just(b"bytes"),
    st.just(np.ones(3)),
)
"""Values that are no tensors."""


@st.composite
def broken_graphs(draw: DrawFn) -> Data:
    """A sound graph after one to three changes, which may have broken it."""
    data = draw(st.one_of(graphs(), graph_sets()))
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("entry", "entry", "entry", "tensor", "thing", "missing", "sparse", "cut")))
        dense = [key for key, value in data if isinstance(value, Tensor) and _has_entries(value)]
        lengths = (0, 1, 2, 3, data.x.size(0) if isinstance(data.get("x"), Tensor) and data.x.dim() else 4)
        if kind == "entry" and dense:
            key = draw(st.sampled_from(sorted(dense)))
            value = data[key] = data[key].clone()
            pool = ODD_NUMBERS if value.dtype.is_floating_point else ODD_INTEGERS
            odd = torch.tensor(draw(st.sampled_from(pool)), dtype=torch.float64 if pool is ODD_NUMBERS else torch.int64)
            value.view(-1)[draw(st.integers(0, value.numel() - 1))] = odd.to(value.dtype)
        elif kind == "tensor":
            data[draw(st.sampled_from(KEYS))] = draw(tensors(lengths))
        elif kind == "thing":
            data[draw(st.sampled_from(KEYS))] = draw(things)
        elif kind == "missing":
            key = draw(st.sampled_from(sorted(data.keys())))
            del data[key]
            if not data.keys():
                return data
        elif kind == "sparse":
            data[draw(st.sampled_from(("x", "x", "x", "other", "y")))] = draw(sparse_matrices(lengths[-1], 3))
        elif kind == "cut" and dense:
            key = draw(st.sampled_from(sorted(dense)))
            data[key] = data[key][draw(st.integers(0, 1)) :]
    return data


def _has_entries(value: Tensor) -> bool:
    strided = value.layout == torch.strided and not value.is_nested and not value.is_quantized
    plain = strided and value.device.type == "cpu" and not value.requires_grad and not value.dtype.is_complex
    return plain and bool(value.numel()) and value.is_contiguous() and bool(value.dim())
