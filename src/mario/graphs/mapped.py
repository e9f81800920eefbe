"""A graph as a folder of arrays that are read from disk when accessed, for graphs that do not fit in memory.

The folder holds ``x.npy`` ([N, F]), ``edge_index.npy`` (int64 [2, E], edges grouped by source), ``starts.npy``
(int64 [N + 1]; the edges that leave v are the columns ``starts[v]`` to ``starts[v + 1]``), one ``.npy`` file per other
tensor, and ``graph.json`` with the plain attributes. The last is written last: a folder without it is not a graph.
Nothing is pickled.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from mario.errors import MarioError, RunFailedError
from mario.files import write_json
from mario.graphs.csr import CSR
from mario.graphs.paging import blocks, count_not_finite, extremes, map_array, mapping_of
from mario.graphs.rules import EDGE_DATA
from mario.graphs.store import as_json
from mario.graphs.validation import check_edges, check_structure
from mario.untrusted import read_json, safe_name

_FORMAT = 1
_ABOUT = "graph.json"
_GRID = ("x", "edge_index", "starts")
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_DTYPES = (*_WHOLE, torch.float16, torch.float32, torch.float64)
_FINITE = ("x", *EDGE_DATA)


def save_mapped(data: Data, folder: str | os.PathLike[str]) -> None:
    """Write a graph to a new ``folder``, for `load_mapped`.

    Edges are sorted by source, and those of one source keep their order. ``edge_weight``, ``edge_attr`` and other
    edge-level tensors follow. Features must be dense.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as home:
        ...     save_mapped(Data(x=torch.eye(2), edge_index=torch.tensor([[1], [0]]), name="two"), f"{home}/two")
        ...     load_mapped(f"{home}/two")
        Data(x=[2, 2], edge_index=[2, 1], name='two')
    """
    num_nodes = check_structure(data)
    x, edge_index = data.get("x"), data.get("edge_index")
    if not isinstance(x, Tensor) or x.layout != torch.strided or not isinstance(edge_index, Tensor):
        raise MarioError("a mapped graph needs data.x, a dense matrix, and data.edge_index; save_graph writes others")
    for key, value in data.to_dict().items():
        _check_attribute(key, value)
    csr = CSR(edge_index, num_nodes)
    tensors: dict[str, Tensor] = {"x": x, "edge_index": edge_index, "starts": csr.starts}
    plain: dict[str, Any] = {}
    for key, value in data.to_dict().items():
        if key not in _GRID:
            (tensors if isinstance(value, Tensor) else plain)[key] = value
    as_json(plain)
    if csr.edge_ids is not None:
        for key in (key for key in tensors if key in data and data.is_edge_attr(key)):
            tensors[key] = tensors[key].index_select(data.__cat_dim__(key, tensors[key]), csr.edge_ids)
    home = new_folder(folder)
    for key, value in tensors.items():
        array = value.detach().cpu().numpy()
        write_array(home / f"{key}.npy", array.dtype, array.shape, [array])
    finish_folder(home, tuple(tensors), plain, symmetric=is_undirected(edge_index, num_nodes=num_nodes))


def load_mapped(folder: str | os.PathLike[str]) -> Data:
    """The graph in a folder that `save_mapped` wrote; its tensors are read from disk when accessed.

    They are plain tensors, and read-only: writing to one crashes the process, so ``clone()`` it first. Samplers and
    checks drop what they have read. If a file has changed since the folder was written, the graph is checked again.

    The sampler ``Neighbors`` sorts the edges in memory, about 24 bytes per edge, if the graph is directed or has
    edge-level tensors.
    """
    home = Path(folder)
    about = read_about(home)
    try:
        values = {key: _mapped(home, key, facts) for key, facts in about["arrays"].items()}
        x, edge_index, starts = (values[key] for key in _GRID)
        del values["starts"]
        _check_shapes(x, edge_index, starts)
        if not all(_unchanged(home, key, about["arrays"][key]) for key in ("edge_index", "starts")):
            _check_order(edge_index, starts)
        elif (mapping := mapping_of(edge_index)) is not None:
            low, high = about["extremes"]
            mapping.facts["extremes"] = int(low), int(high)
        for key in _FINITE:
            mapping = mapping_of(values[key]) if key in values else None
            if mapping is not None and _unchanged(home, key, about["arrays"][key]):
                mapping.facts["not_finite"] = 0
        if (mapping := mapping_of(edge_index)) is not None:
            mapping.starts, mapping.symmetric = starts, bool(about["symmetric"])
        if both := sorted(values.keys() & about["plain"].keys()):
            raise MarioError(f"graph.json has {both[0]} as an array and as a plain attribute")
        return Data.from_dict({**values, **about["plain"]})
    except MarioError as error:
        raise MarioError(f"{home} is not a sound graph: {error}") from None
    except (OSError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RuntimeError) as error:
        raise MarioError(f"{home} is not a graph that mario wrote, or is damaged: {error}") from None


def _check_attribute(key: str, value: object) -> None:
    """Whether `load_mapped` can read what would be written."""
    _check_name(key)
    if key == "starts":
        raise MarioError("data.starts cannot be written: the file of that name holds where rows begin; rename it")
    if isinstance(value, Tensor) and (value.layout != torch.strided or value.dtype not in _DTYPES):
        layout, dtype = (str(fact).removeprefix("torch.") for fact in (value.layout, value.dtype))
        raise MarioError(f"data.{key} is {layout} {dtype}; make it dense, of integers, bools or floats")


def new_folder(folder: str | os.PathLike[str]) -> Path:
    """An empty folder, created if missing."""
    home = Path(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
        empty = not any(home.iterdir())
    except OSError as error:
        raise MarioError(f"cannot make the folder {home}: {error.strerror}") from None
    if not empty:
        raise MarioError(f"{home} is not empty; choose a new folder for the graph")
    return home


def write_array(path: Path, dtype: Any, shape: Sequence[int], parts: Iterable[np.ndarray]) -> None:
    """Write an ``.npy`` file of a known shape from consecutive parts, so that it is never in memory as a whole."""
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": tuple(shape)}
    try:
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for part in parts:
                np.ascontiguousarray(part, dtype=dtype).tofile(file)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RunFailedError(f"cannot write {path}: {error.strerror or error}") from error


def finish_folder(home: Path, arrays: Sequence[str], plain: dict[str, Any], *, symmetric: bool) -> None:
    """Check the arrays, then write ``graph.json``, which completes the folder."""
    tensors = {key: map_array(home / f"{key}.npy") for key in arrays}
    x, edge_index, starts = (tensors[key] for key in _GRID)
    _check_shapes(x, edge_index, starts)
    _check_order(edge_index, starts)
    for key in _FINITE:
        if key in tensors and (bad := count_not_finite(tensors[key])):
            raise MarioError(f"data.{key} holds {bad} NaN or infinite entries; fill or drop them first")
    facts = {
        key: {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "written": (home / f"{key}.npy").stat().st_mtime_ns,
        }
        for key, tensor in tensors.items()
    }
    ends = list(extremes(edge_index)) if edge_index.numel() else []
    about = {"format": _FORMAT, "symmetric": symmetric, "extremes": ends, "arrays": facts, "plain": plain}
    as_json(about)
    write_json(home / _ABOUT, about)


def read_about(home: Path) -> dict[str, Any]:
    """The ``graph.json`` of a folder."""
    if not (home / _ABOUT).is_file():
        raise MarioError(f"there is no graph in {home}: {_ABOUT} is missing, so it was not written completely")
    about = read_json(home / _ABOUT)
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        there = about.get("format") if isinstance(about, dict) else None
        raise MarioError(f"{home} has graph format {there}; this version reads format {_FORMAT}")
    return about


def _mapped(home: Path, key: str, facts: dict[str, Any]) -> Tensor:
    _check_name(key)
    path = home / f"{key}.npy"
    if not path.is_file():
        raise MarioError(f"{path.name} is missing")
    tensor = map_array(path)
    there, due = (str(tensor.dtype).removeprefix("torch."), list(tensor.shape)), (facts["dtype"], facts["shape"])
    if there != due:
        raise MarioError(f"{path.name} holds {there[0]} of shape {there[1]}; graph.json says {due[0]} of {due[1]}")
    return tensor


def _check_name(key: str) -> None:
    if not safe_name(key, "the name of an attribute of data").isidentifier():
        raise MarioError(f"the name of an attribute of data must be a name of Python, got {key!r}")


def _unchanged(home: Path, key: str, facts: dict[str, Any]) -> bool:
    return bool((home / f"{key}.npy").stat().st_mtime_ns == facts["written"])


def _check_shapes(x: Tensor, edge_index: Tensor, starts: Tensor) -> None:
    if x.dim() != 2 or x.dtype not in (torch.float32, torch.float64):
        raise MarioError(f"x must be a float32 (or float64) matrix, got {x.dtype} of shape {tuple(x.shape)}")
    if edge_index.dim() != 2 or edge_index.size(0) != 2 or edge_index.dtype != torch.int64:
        got = f"{edge_index.dtype} of shape {tuple(edge_index.shape)}"
        raise MarioError(f"edge_index must be int64 of shape [2, edges], got {got}")
    if starts.dtype != torch.int64 or starts.shape != (x.size(0) + 1,):
        raise MarioError(f"starts must hold {x.size(0) + 1} int64, got {starts.dtype} of shape {tuple(starts.shape)}")


def _check_order(edge_index: Tensor, starts: Tensor) -> None:
    """Check, block by block, that edges end at nodes and are grouped by source as ``starts`` says."""
    num_nodes, num_edges = starts.numel() - 1, edge_index.size(1)
    if int(starts[0]) != 0 or int(starts[-1]) != num_edges or bool((starts[1:] < starts[:-1]).any()):
        raise MarioError(f"starts must ascend from 0 to the {num_edges} edges; it does not")
    if not num_edges:
        return
    check_edges(edge_index, num_nodes)
    first = 0
    for sources in blocks(edge_index[0]):
        slots = torch.arange(first, first + sources.numel())
        # The row of slot s is the last v with starts[v] <= s.
        if not torch.equal(torch.searchsorted(starts, slots, right=True) - 1, sources):
            raise MarioError("edge_index is not grouped by source as starts says")
        first += sources.numel()
