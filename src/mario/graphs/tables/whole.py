"""Whole graphs as tables: matrices of scipy, graphs of networkx and PyG, and the files that hold one."""

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from mario.errors import MarioError, nearest
from mario.graphs.tables.build import Tables
from mario.graphs.tables.formats import MemoryPart
from mario.graphs.tables.sources import BOMB_BYTES, BOMB_RATIO, TableFile
from mario.untrusted import open_file

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

MOST_XML = 2**31
"""The largest GraphML, GML or GEXF file; networkx reads it into memory as a whole."""
_ADJACENCY = ("adj", "adjacency", "a", "network", "graph", "net", "w", "adj_matrix")
_FEATURES = ("attr", "x", "features", "attributes", "attrb", "feat", "feature")
_LABELS = ("labels", "label", "y", "gnd", "class", "group")
_IDS = ("node_ids", "ids", "id", "node_names", "names")
_PARTS = ("data", "indices", "indptr", "shape")
_LEFT_OUT = ("edge_attr", "pos", "face", "batch", "ptr", "n_id", "e_id")


def open_whole(file: TableFile) -> Tables:
    """The tables of a graph in a file of one of `mario.graphs.tables.sources.GRAPH_FORMATS`; nothing is unpickled."""
    open_file(file.path).close()
    if not file.path.stat().st_size:
        raise MarioError(f"{file} is empty")
    read: Callable[[TableFile], Tables] = {"npz": _npz, "mat": _mat, "pt": _pt}.get(file.form, _networkx_file)
    try:
        return read(file)
    except MarioError as error:
        raise MarioError(str(error) if str(file) in str(error) else f"{file}: {error}") from None
    except MemoryError:
        raise MarioError(f"{file} does not fit in memory; write it as tables of nodes and edges") from None
    except RecursionError:
        raise MarioError(f"{file} is not a sound {file.form} file: it is nested too deeply") from None
    except Exception as error:  # readers of others fail in many ways
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
        raise MarioError(
            f"{file} is not a sound {file.form} file ({type(error).__name__}: {said}); write it again, or as tables "
            "of nodes and edges"
        ) from None


def tables_of_scipy(
    adjacency: Any,
    features: Any = None,
    labels: Any = None,
    ids: Any = None,
    *,
    name: str = "the matrix",
    file: TableFile | None = None,
) -> Tables:
    """The tables of a graph whose edges are the entries of a matrix.

    It is undirected if the matrix is symmetric.
    """
    try:
        matrix = sp.csr_array(adjacency)
    except (TypeError, ValueError) as error:
        raise MarioError(f"{name} must be a sparse or dense matrix of numbers ({error})") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise MarioError(
            f"{name} has shape {tuple(matrix.shape)}; the matrix of a graph has a row and a column for each node"
        )
    if matrix.dtype.kind not in "biuf":
        raise MarioError(f"{name} holds {matrix.dtype}; it must hold real numbers")
    _check_csr(matrix, name)
    matrix.sum_duplicates()
    count = matrix.shape[0]
    directed = bool(abs(matrix - matrix.T).nnz)
    found = sp.coo_array(matrix if directed else sp.triu(matrix))
    weights = found.data.astype(np.float64)
    kept = weights != 0
    index = np.arange(count) if ids is None else ids
    key = _column(index, "ids", count)
    source, target = (key.take(pa.array(ends[kept].astype(np.int64))) for ends in found.coords)
    edges = {"source": source, "target": target}
    if not (weights[kept] == 1).all():
        edges["weight"] = pa.array(weights[kept])
    nodes = {"id": key}
    if labels is not None:
        nodes["label"] = _labels(labels, count)
    part = MemoryPart(pa.table(nodes), name, file=file)
    return Tables([part], [MemoryPart(pa.table(edges), name)], matrix=_matrix(features, count), directed=directed)


def tables_of_networkx(graph: "nx.Graph[Any]", *, name: str = "the graph", file: TableFile | None = None) -> Tables:
    """The tables of a graph of networkx: attributes of nodes are columns, and the weights of edges are kept."""
    if not hasattr(graph, "nodes") or not hasattr(graph, "is_directed"):
        raise MarioError(f"{name} must be a graph of networkx, got {type(graph).__name__}")
    ids = list(graph.nodes)
    if not ids:
        raise MarioError(f"{name} has no nodes")
    if not all(isinstance(one, type(ids[0])) for one in ids) or not isinstance(ids[0], int | str):
        odd = next((one for one in ids if not isinstance(one, int | str)), None)
        if odd is not None and not isinstance(odd, float | tuple):
            raise MarioError(f"{name} has the node {odd!r}; ids must be texts or whole numbers")
        ids_as = [str(one) for one in ids]
    else:
        ids_as = ids
    if len(set(ids_as)) != len(ids_as):
        raise MarioError(f"{name} has two nodes with the same text as their id; write ids in one type")
    where = dict(zip(ids, ids_as, strict=True))
    names = list(dict.fromkeys(str(key) for _, attributes in graph.nodes(data=True) for key in attributes))
    id_name = next(one for one in ("id", "node_id", "node id of networkx") if one not in names)
    columns = {id_name: pa.array(ids_as)}
    for key in names:
        columns[key] = _loose([attributes.get(key) for _, attributes in graph.nodes(data=True)])
    links = list(graph.edges(data=True))
    edges = {
        "source": pa.array([where[one] for one, _, _ in links], columns[id_name].type),
        "target": pa.array([where[one] for _, one, _ in links], columns[id_name].type),
    }
    if any("weight" in attributes for _, _, attributes in links):
        edges["weight"] = _loose([attributes.get("weight", 1.0) for _, _, attributes in links])
    return Tables(
        [MemoryPart(pa.table(columns), name, file=file)],
        [MemoryPart(pa.table(edges), f"{name} (edges)")],
        directed=graph.is_directed(),
    )


def tables_of_pyg(
    data: "Data", *, ids: Any = None, domains: Sequence[str] = (), name: str = "the Data", file: TableFile | None = None
) -> Tables:
    """The tables of a `Data`: ``x`` is kept as it is, ``y`` are labels, and other attributes of nodes are columns."""
    from torch import Tensor
    from torch_geometric.data import Data
    from torch_geometric.utils import is_undirected

    from mario.graphs.validation import check_structure

    if not isinstance(data, Data):
        raise MarioError(f"{name} must be a torch_geometric.data.Data, got {type(data).__name__}")
    count = check_structure(data)
    edge_index = data.get("edge_index")
    if not isinstance(edge_index, Tensor):
        raise MarioError(f"{name} has no edge_index")
    key = _column(np.arange(count) if ids is None else ids, "ids", count)
    columns = {"id": key}
    y = data.get("y")
    if isinstance(y, Tensor):
        columns["label"] = _labels(y.detach().cpu().numpy(), count)
    for attribute, value in data.to_dict().items():
        if attribute in ("x", "y", "edge_index", "edge_weight", *_LEFT_OUT) or attribute.endswith("_mask"):
            continue
        wanted = attribute in domains or attribute in ("time", "year")
        if wanted and isinstance(value, Tensor) and value.shape == (count,) and not value.is_floating_point():
            columns[attribute] = pa.array(value.detach().cpu().numpy())
    for domain in domains:
        if domain not in columns:
            meant = nearest(domain, [str(one) for one in data.keys()])  # noqa: SIM118
            raise MarioError(f"{name} has no whole number per node called {domain!r}{meant and f'; {meant}'}")
    ends = edge_index.detach().cpu().numpy()
    weight = data.get("edge_weight")
    directed = not is_undirected(edge_index, None if weight is None else weight.view(-1), num_nodes=count)
    if not directed:
        upper = ends[0] <= ends[1]
        ends = ends[:, upper]
        weight = None if weight is None else weight[upper]
    edges = {"source": key.take(pa.array(ends[0])), "target": key.take(pa.array(ends[1]))}
    if weight is not None:
        edges["weight"] = pa.array(weight.detach().cpu().double().numpy())
    x = data.get("x")
    if isinstance(x, Tensor) and x.layout != Tensor().layout:
        x = x.to_sparse_csr()
        x = sp.csr_array((x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()), shape=tuple(x.shape))
    elif isinstance(x, Tensor):
        x = x.detach().cpu().numpy()
    return Tables(
        [MemoryPart(pa.table(columns), name, file=file)],
        [MemoryPart(pa.table(edges), f"{name} (edges)")],
        matrix=_matrix(x, count),
        directed=directed,
    )


def _npz(file: TableFile) -> Tables:
    _check_zip(file, "an .npz file; a pickle of that name is not read, as it can run code")
    arrays: dict[str, Any] = {}
    with np.load(file.path, allow_pickle=False) as opened:
        for name in opened.files:
            try:
                arrays[name] = opened[name]
            except ValueError as error:
                if "allow_pickle" not in str(error):
                    raise
                # Names and the like, which are pickled; the graph is in the other arrays.
    if set(_PARTS) <= set(arrays):
        return tables_of_scipy(_assembled(arrays, "", file), name=str(file), file=file)
    return _of_arrays(_with_matrices(arrays, file), file)


_READ_MAT = """
import sys
import numpy as np
import scipy.io
import scipy.sparse as sp

made = {}
for name, value in scipy.io.loadmat(sys.argv[1], spmatrix=False).items():
    if sp.issparse(value):
        value = sp.csr_array(value)
        made |= {f"{name}_{part}": getattr(value, part) for part in ("data", "indices", "indptr", "shape")}
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufUS":
        made[name] = value
np.savez(sys.argv[2], **made)
"""
"""A damaged .mat file can crash scipy, so another process reads it."""


def _mat(file: TableFile) -> Tables:
    with open_file(file.path) as opened:
        head = opened.read(128)
    if head.startswith((b"MATLAB 7.3", b"\x89HDF")):
        raise MarioError(f"{file} is of version 7.3, which is not read; save it with `save(..., '-v7')`")
    with tempfile.TemporaryDirectory(prefix="mario-") as home:
        made = os.path.join(home, "arrays.npz")
        words = [sys.executable, "-c", _READ_MAT, os.path.abspath(file.path), made]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["scipy crashed"])[-1][:120]
            raise MarioError(
                f"{file} is not a sound mat file ({said}); write it again, or as tables of nodes and edges"
            )
        with np.load(made, allow_pickle=False) as opened_arrays:
            arrays = {name: opened_arrays[name] for name in opened_arrays.files}
    return _of_arrays(_with_matrices(arrays, file), file)


def _of_arrays(arrays: Mapping[str, Any], file: TableFile) -> Tables:
    """A graph from arrays with usual names."""
    lower = {name.lower(): value for name, value in arrays.items()}
    adjacency = _first(lower, _ADJACENCY)
    if adjacency is None:
        names = ", ".join(list(arrays)[:12]) or "none"
        raise MarioError(
            f"{file} has no matrix of edges: it has {names}, and the matrix must be called "
            f"{', '.join(_ADJACENCY[:4])} or written with scipy.sparse.save_npz"
        )
    return tables_of_scipy(
        adjacency, _first(lower, _FEATURES), _first(lower, _LABELS), _first(lower, _IDS), name=str(file), file=file
    )


def _first(arrays: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((arrays[name] for name in names if name in arrays), None)


def _with_matrices(arrays: Mapping[str, Any], file: TableFile) -> dict[str, Any]:
    """Arrays such as ``adj_data`` and ``adj.indices`` become a matrix ``adj``."""
    made = dict(arrays)
    for name in arrays:
        for mark in ("_", "."):
            stem, found, last = name.rpartition(mark)
            if found and last == "data" and all(f"{stem}{mark}{part}" in arrays for part in _PARTS):
                made[stem] = _assembled(arrays, stem + mark, file)
    return made


def _assembled(arrays: Mapping[str, Any], stem: str, file: TableFile) -> Any:
    data, indices, indptr, shape = (arrays[stem + part] for part in _PARTS)
    form = str(arrays[f"{stem}format"].item().decode()) if f"{stem}format" in arrays else "csr"
    if form not in ("csr", "csc"):
        raise MarioError(f"{file} holds a matrix in the format {form}; save it as csr")
    size = tuple(int(one) for one in np.asarray(shape).reshape(-1))
    if len(size) != 2 or any(one < 0 for one in size):
        raise MarioError(f"{file} holds a matrix of shape {size}; it must have rows and columns")
    matrix = (sp.csr_array if form == "csr" else sp.csc_array)((data, indices, indptr), shape=size)
    _check_csr(matrix, str(file))
    return matrix


def _check_csr(matrix: Any, name: str) -> None:
    """The invariants of a compressed matrix; scipy crashes without."""
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise MarioError(f"{name} is not a sound sparse matrix ({error})") from None


def _pt(file: TableFile) -> Tables:
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    _check_zip(file, "a file of torch.save; older ones are pickles, which are not read as they can run code")
    known = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    try:
        with torch.serialization.safe_globals(known):
            found = torch.load(file.path, map_location="cpu", weights_only=True)
    except Exception as error:
        said = next((line for line in str(error).splitlines() if "GLOBAL" in line), "").strip()[:120]
        raise MarioError(
            f"{file} cannot be read without running code from it{f' ({said})' if said else ''}; write it as "
            "torch.save(data.to_dict(), file), or with mario.graphs.save_graph"
        ) from None
    if isinstance(found, tuple) and found:  # what PyG's InMemoryDataset saves
        found = found[0]
    if isinstance(found, dict):
        if not all(isinstance(key, str) for key in found):
            raise MarioError(f"{file} holds a dict whose keys are no texts; write data.to_dict()")
        found = Data.from_dict(found)
    return tables_of_pyg(found, name=str(file), file=file)


def _networkx_file(file: TableFile) -> Tables:
    import networkx as nx

    if file.path.stat().st_size > MOST_XML:
        raise MarioError(
            f"{file} is larger than {MOST_XML:,} bytes, the most that is read; write tables of nodes and edges"
        )
    readers = {"graphml": nx.read_graphml, "gml": nx.read_gml, "gexf": nx.read_gexf}
    with open_file(file.path) as opened:
        graph = readers[file.form](opened)
    return tables_of_networkx(graph, name=str(file), file=file)


def _check_zip(file: TableFile, what: str) -> None:
    try:
        with open_file(file.path) as opened, zipfile.ZipFile(opened) as packed:
            whole = sum(entry.file_size for entry in packed.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise MarioError(f"{file} is not {what}; write it again") from None
    if whole > max(BOMB_BYTES, BOMB_RATIO * file.path.stat().st_size):
        raise MarioError(
            f"{file} grows to more than {BOMB_RATIO} times its size when it is decompressed, which no graph does; if "
            "it is one, write it without compression"
        )


def _matrix(features: Any, count: int) -> Any:
    """Features as float32, dense or CSR."""
    if features is None:
        return None
    if sp.issparse(features):
        made = sp.csr_array(features).astype(np.float32)
        _check_csr(made, "the features")
        made.sum_duplicates()
        values = made.data
    else:
        made = np.asarray(features)
        if made.dtype.kind not in "biuf" or made.ndim != 2:
            raise MarioError(f"the features must be a matrix of numbers, got {made.dtype} of shape {made.shape}")
        with np.errstate(over="ignore"):
            made = values = np.ascontiguousarray(made, np.float32)
    if made.shape[0] != count or not made.shape[1]:
        raise MarioError(f"the features have shape {tuple(made.shape)}, but there are {count:,} nodes")
    if bad := int((~np.isfinite(values)).sum()):
        raise MarioError(f"the features hold {bad:,} NaN or infinite entries; fill them first")
    return made


def _labels(labels: Any, count: int) -> pa.Array:
    """One label per node, or one row per node with a single 1 in it; -1 and NaN are none."""
    found = labels.toarray() if sp.issparse(labels) else np.asarray(labels)
    if found.ndim == 2 and found.shape[0] == count and found.shape[1] > 1:
        if not ((found != 0).sum(1) <= 1).all():
            raise MarioError("the labels have more than one class for a node; keep one of them")
        found = np.where((found != 0).any(1), (found != 0).argmax(1), -1)
    found = found.reshape(-1)
    made = _column(found, "labels", count)
    if pa.types.is_integer(made.type):
        return pa.array(found, mask=found < 0)
    return made


def _column(values: Any, what: str, count: int) -> pa.Array:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        made = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    else:
        try:
            array = np.asarray(values)
            made = pa.array(array.reshape(-1).tolist() if array.dtype == object else array.reshape(-1))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise MarioError(f"the {what} must be texts or whole numbers, one per node ({error})") from None
    if len(made) != count:
        raise MarioError(f"there are {len(made):,} {what}, but {count:,} nodes")
    return made


def _loose(values: Sequence[Any]) -> pa.Array:
    """Values of any kind; as texts if they are of several."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        try:
            return pa.array([None if one is None else float(one) for one in values])
        except (TypeError, ValueError, OverflowError):
            return pa.array([None if one is None else str(one) for one in values], pa.string())
