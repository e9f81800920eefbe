"""Graphs of your own from Python: DataFrames, networkx, scipy and PyG, in the same way as `mario graph build`."""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mario.errors import MarioError

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

    from mario.graphs.tables.build import Tables

Folder = str | os.PathLike[str] | None


def from_dataframe(
    nodes: Any,
    edges: Any,
    *,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    label: str | None = None,
    domain: str | Sequence[str] = (),
    time: str | None = None,
    weight: str | None = None,
    drop: str | Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    directed: bool = False,
    drop_dangling: bool = False,
    like: Folder = None,
    folder: Folder = None,
) -> "Data":
    """A graph from a table of nodes and a table of edges: columns become features, as `mario graph build` makes them.

    The graph has ``x``, ``edge_index``, ``ids`` (the ids of the nodes, unchanged), and, where there is such a column,
    ``y`` (-1 without a label) with ``class_names``, ``edge_weight``, ``time``, and one attribute per domain.

    Args:
        nodes: A DataFrame (pandas, polars, or whatever has ``__arrow_c_stream__``), or a pyarrow Table; None for edges
            alone.
        edges: One row per edge.
        id: The column of ``nodes`` with the ids. Default: found by name, as all roles are; a named index of pandas is a
            column.
        source: The column of ``edges`` with the ids of where an edge begins.
        target: The column of ``edges`` with the ids of where it ends.
        label: The column with the classes.
        domain: The columns with groups of nodes that may differ.
        time: The column with dates or numbers.
        weight: The column with the weights of the edges.
        drop: Columns that are not used.
        kinds: How columns are read: ``numeric``, ``categorical``, ``text``, ``date``, ``list`` or ``boolean``.
        directed: Whether edges have a direction.
        drop_dangling: Leave out edges to nodes that are not there, instead of an error.
        like: A graph folder whose features, classes and domains this graph gets, too.
        folder: A new folder for the graph, for the commands and for ``like``. Default: it is in memory only.

    Example:
        >>> import pandas as pd
        >>> people = pd.DataFrame({"id": ["ann", "bob", "cem"], "age": [31, 45, 27], "city": ["Rome", "Oslo", "Rome"]})
        >>> knows = pd.DataFrame({"source": ["ann", "cem"], "target": ["bob", "ann"]})
        >>> data = from_dataframe(people, knows)
        >>> data.ids, data.edge_index.tolist(), data.city.tolist()
        (['ann', 'bob', 'cem'], [[0, 0, 1, 2], [1, 2, 0, 0]], [1, 0, 1])
    """
    from mario.graphs.tables.build import Tables
    from mario.graphs.tables.columns import Roles
    from mario.graphs.tables.formats import MemoryPart

    tables = Tables(
        [] if nodes is None else [MemoryPart(_arrow(nodes, "nodes"), "nodes")],
        [MemoryPart(_arrow(edges, "edges"), "edges")],
    )
    roles = Roles(
        id=id, source=source, target=target, label=label, time=time, weight=weight,
        domain=_names(domain, "domain"), drop=_names(drop, "drop"), kinds=dict(kinds or {}),
    )  # fmt: skip
    return _built(tables, folder, roles=roles, directed=directed, drop_dangling=drop_dangling, like=like)


def from_networkx(
    graph: "nx.Graph[Any]",
    *,
    label: str | None = None,
    domain: str | Sequence[str] = (),
    time: str | None = None,
    weight: str | None = None,
    drop: str | Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    directed: bool | None = None,
    like: Folder = None,
    folder: Folder = None,
) -> "Data":
    """A graph from one of networkx, whose attributes of nodes become features. See `from_dataframe`.

    Without attributes, features are of the structure: degrees of a node and of its neighbors.

    Example:
        >>> import networkx as nx
        >>> graph = nx.Graph([("a", "b"), ("b", "c")])
        >>> nx.set_node_attributes(graph, {"a": 1.5, "b": 2.5, "c": 4.0}, "size")
        >>> data = from_networkx(graph)
        >>> data.ids, data.x.shape, data.num_edges
        (['a', 'b', 'c'], torch.Size([3, 1]), 4)
    """
    from mario.graphs.tables.columns import Roles
    from mario.graphs.tables.whole import tables_of_networkx

    tables = tables_of_networkx(graph)
    roles = Roles(
        id=tables.nodes[0].schema.names[0], source="source", target="target", label=label, time=time,
        weight="weight" if weight is None and "weight" in tables.edges[0].schema.names else weight,
        domain=_names(domain, "domain"), drop=_names(drop, "drop"), kinds=dict(kinds or {}),
    )  # fmt: skip
    return _built(tables, folder, roles=roles, directed=directed, like=like)


def from_scipy(
    adjacency: Any,
    features: Any = None,
    labels: Any = None,
    *,
    ids: Any = None,
    directed: bool | None = None,
    like: Folder = None,
    folder: Folder = None,
) -> "Data":
    """A graph from a matrix with an entry for each edge. See `from_dataframe`.

    Args:
        adjacency: A square matrix of scipy, sparse or dense; entries other than 0 are edges, and their weights.
        features: A matrix with a row for each node, dense or sparse, which is kept as it is.
        labels: One per node; negative ones are missing.
        ids: One per node. Default: 0, 1, 2, ...
        directed: Whether edges have a direction. Default: not, if the matrix is symmetric.
        like: A graph folder with as many features, whose classes this graph gets, too.
        folder: A new folder for the graph.

    Example:
        >>> import scipy.sparse as sp
        >>> data = from_scipy(sp.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), features=[[1.0], [2.0], [3.0]])
        >>> data.edge_index.tolist(), data.x.flatten().tolist(), data.ids.tolist()
        ([[0, 1, 1, 2], [1, 0, 2, 1]], [1.0, 2.0, 3.0], [0, 1, 2])
    """
    from mario.graphs.tables.columns import Roles
    from mario.graphs.tables.whole import tables_of_scipy

    tables = tables_of_scipy(adjacency, features, labels, ids)
    roles = Roles(id="id", source="source", target="target", label=None if labels is None else "label")
    return _built(tables, folder, roles=roles, directed=directed, like=like)


def from_pyg(
    data: "Data",
    *,
    ids: Any = None,
    domain: str | Sequence[str] = (),
    directed: bool | None = None,
    like: Folder = None,
    folder: Folder = None,
) -> "Data":
    """A graph from a `Data` of PyG: ``x`` is kept as it is, ``y`` are labels. See `from_dataframe`.

    Masks are left out: how a graph of your own is split is said in its card.

    Args:
        data: A graph.
        ids: One per node. Default: 0, 1, 2, ...
        domain: Attributes with a whole number per node, which are groups of nodes that may differ.
        directed: Whether edges have a direction. Default: as ``edge_index`` tells.
        like: A graph folder with as many features, whose classes and domains this graph gets, too.
        folder: A new folder for the graph.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> mine = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([1, 0]))
        >>> from_pyg(mine, ids=["left", "right"]).ids
        ['left', 'right']
    """
    from mario.graphs.tables.columns import Roles
    from mario.graphs.tables.whole import tables_of_pyg

    domains = _names(domain, "domain")
    tables = tables_of_pyg(data, ids=ids, domains=domains)
    names = tables.nodes[0].schema.names
    roles = Roles(
        id="id", source="source", target="target", label="label" if "label" in names else None, domain=domains
    )
    return _built(tables, folder, roles=roles, directed=directed, like=like)


def _built(tables: "Tables", folder: Folder, **wishes: Any) -> "Data":
    """The graph of some tables, in memory; in a folder, too, if one is named."""
    from mario.graphs.tables.build import Wishes, build_graph

    if folder is not None:
        build_graph(tables, folder, Wishes(**wishes))
        return read_graph(folder)
    with tempfile.TemporaryDirectory(prefix="mario-") as home:
        build_graph(tables, Path(home) / "graph", Wishes(**wishes))
        return read_graph(Path(home) / "graph")


def read_graph(folder: str | os.PathLike[str]) -> "Data":
    """The graph of a folder in memory, not split, with ``ids``: a tensor if they are integers, else a list."""
    import numpy as np
    import torch

    from mario.graphs.card import read_card
    from mario.graphs.mapped import load_mapped
    from mario.graphs.store import load_graph
    from mario.graphs.tables.ids import open_ids, read_ids

    card = read_card(folder)
    data = load_mapped(card.path).clone() if card.path.is_dir() else load_graph(card.path)
    if card.ids is not None:
        ids = read_ids(folder)
        data.ids = torch.from_numpy(ids.astype(np.int64)) if ids.dtype.kind == "i" else open_ids(folder).to_pylist()
    return data


def _names(given: str | Iterable[str], what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise MarioError(f"{what} must be the name of a column, or several, got {given!r}")
    return names


def _arrow(table: Any, what: str) -> Any:
    """A DataFrame as a table of pyarrow."""
    import pyarrow as pa

    try:
        if isinstance(table, pa.Table):
            return table
        if type(table).__module__.partition(".")[0] == "pandas":
            named = [name for name in table.index.names if name is not None]
            frame = table.reset_index() if named else table
            if odd := [name for name in frame.columns if not isinstance(name, str)]:
                raise MarioError(f"{what} has a column called {odd[0]!r}; names of columns must be texts")
            return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        if hasattr(table, "__arrow_c_stream__"):
            return pa.table(table)
        return pa.table({str(name): values for name, values in table.items()})
    except MarioError:
        raise
    except (pa.ArrowException, TypeError, ValueError, AttributeError, OverflowError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise MarioError(f"{what} must be a DataFrame or a table of pyarrow: {said}") from None
