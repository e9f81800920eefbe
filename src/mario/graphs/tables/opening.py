"""From names of files to the tables of a graph: which file is a table of nodes, of edges, of lists or a whole graph."""

import os
from collections.abc import Sequence
from dataclasses import replace

from mario.errors import MarioError
from mario.graphs.tables.build import Tables
from mario.graphs.tables.columns import Roles
from mario.graphs.tables.formats import ListsPart, MemoryPart, Part, open_part
from mario.graphs.tables.sources import GRAPH_FORMATS, TableFile, by_file, table_files

Paths = Sequence[str | os.PathLike[str]]


def open_tables(nodes: Paths = (), edges: Paths = (), *, graphs_by_file: bool = False) -> Tables:
    """The tables in some files, of which the first rows are read.

    A JSON file with a list for each id goes with the other files of nodes: its lists become one more column.

    Args:
        nodes: Paths or patterns of the tables of nodes, as ``nodes.csv`` or ``de=german.csv``; none for edges alone.
        edges: Those of the tables of edges.
        graphs_by_file: Whether each file is of a graph of its own, named by what differs in the names of the files.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as home:
        ...     _ = Path(home, "edges.csv").write_text("source,target\\na,b\\n")
        ...     open_tables(edges=[f"{home}/edges.csv"]).edges[0].schema.names
        ['source', 'target']
    """
    if not edges:
        raise MarioError("--edges: name the file of the edges; a graph needs some")
    node_files, edge_files = table_files(nodes, "--nodes"), table_files(edges, "--edges")
    for option, files in (("--nodes", node_files), ("--edges", edge_files)):
        for file in files:
            if file.form in GRAPH_FORMATS.values():
                raise MarioError(f"{option}: {file} is a whole graph and no table; give it alone, as --graph {file}")
    if graphs_by_file:
        node_files, edge_files = _by_file(node_files), _by_file(edge_files)
    parts = [open_part(file, "nodes") for file in node_files]
    tables: list[Part] = [part for part in parts if not isinstance(part, ListsPart)]
    lists: list[MemoryPart] = [part for part in parts if isinstance(part, ListsPart)]
    if not tables:
        tables, lists = [*lists], []
    return Tables(tables, [open_part(file, "edges") for file in edge_files], lists)


def open_graph(path: str | os.PathLike[str], roles: Roles) -> tuple[Tables, Roles]:
    """The tables of a file with a whole graph, and the roles with those that it has itself."""
    from mario.graphs.tables.whole import open_whole

    files = table_files([path], "--graph")
    if len(files) != 1:
        raise MarioError(f"--graph: {path} matches {len(files)} files; name one")
    if files[0].form not in GRAPH_FORMATS.values():
        raise MarioError(f"--graph: {files[0]} is a table; give it as --nodes or --edges")
    tables = open_whole(files[0])
    names = tables.nodes[0].schema.names
    weight = "weight" if "weight" in tables.edges[0].schema.names else None
    label = "label" if tables.matrix is not None and "label" in names else None
    return tables, replace(
        roles, id=roles.id or names[0], source="source", target="target", weight=roles.weight or weight,
        label=roles.label or label,
    )  # fmt: skip


def _by_file(files: list[TableFile]) -> list[TableFile]:
    """Files with the names of their graphs; lists are named like the tables they go with."""
    if any(file.graph for file in files):
        return files
    lists = [file for file in files if file.form == "json"]
    tables = [file for file in files if file.form != "json"]
    if not lists or not tables:
        return by_file(files)
    return [*by_file(tables), *by_file(lists)]
