"""From tables to a graph folder: columns are found, ids become rows, columns become features, and nothing half-written
stays."""

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mario.errors import MarioError, RunFailedError, nearest
from mario.files import check_path
from mario.graphs.card import CARD_FILE, GraphCard, check_card, read_card, write_card
from mario.graphs.tables.columns import Column, Roles, infer_columns
from mario.graphs.tables.edges import EdgeCounts, EdgeSpool
from mario.graphs.tables.features import FeaturePlan
from mario.graphs.tables.formats import MemoryPart, Part
from mario.graphs.tables.ids import IDS_FILE, IdIndex, write_ids
from mario.graphs.tables.linking import Ends, add_edges, nodes_of_edges
from mario.graphs.tables.nodes import GRAPH, MISSING, Nodes, index_nodes, read_nodes
from mario.graphs.tables.sources import Meter
from mario.graphs.tables.structure import DIGEST, NAMES, structural_features

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLAN_FILE = "features.json"
GRAPH_FOLDER = "graph"
GRAPH_FILE = "graph.safetensors"
MATRIX = "matrix"
"""The column of the card that stands for features that came as a matrix."""
_RESERVED = (
    "x", "y", "edge_index", "edge_weight", "edge_attr", "starts", "time", "edge_time", "batch", "ptr", "domain",
    "domain_id", "domain_names", "env_id", "group_id", "groups", "shift", "setting", "name", "metric",
    "num_classes", "num_nodes", "num_features", "faults", "split_seed", "n_id", "class_names", "ids", "keys",
    "degree", "word", "size", "pagerank", "locality", "clustering", "random", "given", "rest", "update",
)  # fmt: skip
"""Names of attributes that mean something else; a domain of this name gets another."""
_STALE = re.compile(r"\.(?P<name>.+)\.(?P<pid>\d+)-[0-9a-f]{32}\.part")


@dataclass(frozen=True)
class Progress:
    """How far a build is.

    Attributes:
        stage: ``nodes``, ``edges``, ``sorting`` or ``features``.
        done, total: bytes, rows or edges, as the stage goes.
    """

    stage: str
    done: int
    total: int


@dataclass(frozen=True)
class Built:
    """A graph folder that was built.

    Attributes:
        card: what its ``graph.toml`` says.
        edges: what became of the rows of edges.
        lines: what a user should know, one sentence each.
        entries: of the features: all of them, or those that are not 0 if they are sparse.
        columns: the columns of each table with their roles.
    """

    card: GraphCard
    edges: EdgeCounts
    lines: tuple[str, ...]
    entries: int
    columns: Mapping[str, tuple[Column, ...]]


@dataclass(frozen=True)
class Tables:
    """What a graph is built from.

    Attributes:
        nodes, edges: their tables, in parts; no nodes for a list of edges alone.
        lists: lists for the ids of nodes.
        matrix: features of the nodes that are kept as they are, dense or CSR; None if columns become features.
        directed: whether edges have a direction, if the tables tell.
    """

    nodes: Sequence[Part]
    edges: Sequence[Part]
    lists: Sequence[MemoryPart] = ()
    matrix: Any = None
    directed: bool = False

    def size(self) -> int:
        """Bytes of the files."""
        files = (part.file for part in (*self.nodes, *self.edges) if part.file is not None)
        return sum(file.path.stat().st_size for file in files)


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """How a graph is built.

    Attributes:
        roles: what is said of columns, of both tables.
        directed: whether an edge goes from its source to its target only; None for what the tables say.
        drop_dangling: leave out edges to nodes that are not there.
        like: the folder of a graph whose features, classes and domains this one has, too.
        graph_column: the name of the domain that the names of files say.
        name, what: see `mario.graphs.card.GraphCard`. Default: the folder's name.
        keep: values of the first domain whose rows the features are fitted on; empty for all rows.
        seed: of the rows that quartiles and words are learned from.
    """

    roles: Roles = field(default_factory=Roles)
    directed: bool | None = None
    drop_dangling: bool = False
    like: str | os.PathLike[str] | None = None
    graph_column: str = "graph"
    name: str | None = None
    what: str = ""
    keep: tuple[str, ...] = ()
    seed: int = 0


def build_graph(
    tables: Tables,
    out: str | os.PathLike[str],
    wishes: Wishes | None = None,
    *,
    announce: Callable[[Mapping[str, tuple[Column, ...]]], None] = lambda columns: None,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Built:
    """Build a graph folder from tables.

    Args:
        tables: The tables.
        out: A new folder. Until all is done its content is in a temporary folder beside it.
        wishes: How. Default: everything is found.
        announce: Called with the columns of ``nodes`` and ``edges`` before anything is built.
        watch: Called with the progress.
    """
    wishes = wishes or Wishes()
    home = check_path("out", out).expanduser()
    name = wishes.name if wishes.name is not None else card_name(home.resolve().name)
    _check_new(home)
    like = None if wishes.like is None else Like.read(wishes.like)
    columns = find_columns(tables, wishes, like)
    _check_name(name)
    announce(columns)
    with _beside(home) as part:
        build = _Build(tables, columns, wishes, like, part, name, watch)
        build.run()
        check = read_card(part)
        _put(part, home)
    return Built(replace(check, folder=home.resolve()), build.counts, tuple(build.lines), build.entries, columns)


@dataclass(frozen=True)
class Like:
    """A graph folder whose plan is used again: its card, and the plan; None where features are of the structure."""

    card: GraphCard
    plan: FeaturePlan | None

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> "Like":
        """The card and the plan in a folder; `MarioError` if it was not built from tables."""
        home = check_path("like", folder).expanduser()
        if not (home / CARD_FILE).is_file():
            raise MarioError(
                f"--like {folder}: there is no {CARD_FILE} in it; name the folder of a graph that was built"
            )
        card = read_card(home)
        if not card.columns:
            raise MarioError(f"--like {folder}: it was not built from tables, so there is no plan to repeat")
        return cls(card, None if card.plan is None else FeaturePlan.load(card.folder / card.plan))

    @property
    def digest(self) -> str:
        """What the card of a graph that is like this one says."""
        if self.plan is not None:
            return self.plan.digest
        return f"{MATRIX}-{self.card.features}" if MATRIX in self.card.columns else DIGEST


def find_columns(tables: Tables, wishes: Wishes, like: Like | None = None) -> dict[str, tuple[Column, ...]]:
    """The columns of both tables with their roles: given, as in the graph that this one is like, or found."""
    found: dict[str, tuple[Column, ...]] = {}
    nodes, edges = _split_roles(tables, wishes.roles)
    for table, parts, given in (("nodes", tables.nodes, nodes), ("edges", tables.edges, edges)):
        if not parts:
            continue
        schema, sample = _common_sample(parts)
        if like is not None:
            given = _like_roles(like, table, schema, given)
        columns = infer_columns(schema, sample, table=table, given=given)
        if like is not None:
            columns = _as_before(like, table, columns, set(wishes.roles.by_column()))
        found[table] = tuple(columns)
    if "nodes" in found:
        _check_roles(found["nodes"], tables)
    if tables.lists and "nodes" in found:
        lists = Column("features", "feature", "list", f"lists of {', '.join(p.name for p in tables.lists)}"[:200])
        if any(column.name == "features" for column in found["nodes"]):
            raise MarioError(f"{tables.nodes[0].name} has a column features, the name of the lists; rename it")
        found["nodes"] = (*found["nodes"], lists)
    return found


class _Build:
    """A build in a temporary folder."""

    def __init__(
        self,
        tables: Tables,
        columns: Mapping[str, tuple[Column, ...]],
        wishes: Wishes,
        like: Like | None,
        home: Path,
        name: str,
        watch: Callable[[Progress], None],
    ) -> None:
        self.tables, self.columns, self.wishes, self.like = tables, columns, wishes, like
        self.home, self.name, self.watch = home, name, watch
        self.arrays = home / GRAPH_FOLDER
        self.lines: list[str] = []
        self.counts = EdgeCounts()
        self.plan: FeaturePlan | None = None
        self.file = GRAPH_FOLDER
        self.attributes: dict[str, str] = {}
        self.directed = tables.directed if wishes.directed is None else wishes.directed
        self._sparse: Any = None
        self.entries = 0

    def run(self) -> None:
        self.arrays.mkdir()
        total = self.tables.size()
        alone = not self.tables.nodes
        ends = Ends(self.columns["edges"])
        if alone:
            total *= 2
        stage = "edges" if alone else "nodes"
        meter = Meter(total, watch=lambda meter: self.watch(Progress(stage, meter.done, meter.total)))
        if alone:
            nodes = nodes_of_edges(self.tables.edges, ends, meter, self.home / "nodes.arrow")
            graphs = [""]
        else:
            nodes = self._read_nodes(meter)
            graphs = [part.graph for part in self.tables.nodes]
        by_graph = any(part.graph for part in self.tables.edges)
        column = next((one.name for one in self.columns.get("nodes", ()) if one.role == "id"), "id")
        index = (
            {"": nodes.index([""])[""]} if alone else index_nodes(nodes, self.tables.nodes, column, by_graph=by_graph)
        )
        self._check_headers(ends, nodes, index)
        self._write_ids(nodes, graphs)
        spool = EdgeSpool(self.home, nodes.count, directed=self.directed, weighted=ends.weight is not None)
        stage = "edges"
        edge_rows = add_edges(
            spool, self.tables.edges, ends, nodes, index, meter,
            drop_dangling=self.wishes.drop_dangling, hint=self._hint(ends, nodes),
        )  # fmt: skip
        del index
        nodes.ids.clear()
        self.counts = spool.finish(self.arrays, lambda done, whole: self.watch(Progress("sorting", done, whole)))
        width = self._write_features(nodes)
        self.entries = nodes.count * width if self._sparse is None else int(self._sparse.nnz)
        arrays = self._write_attributes(nodes)
        self._finish(nodes, arrays, weighted=ends.weight is not None)
        (self.home / "nodes.arrow").unlink(missing_ok=True)
        self._write_card(nodes, width, edge_rows, meter)

    def _read_nodes(self, meter: Meter) -> Nodes:
        classes = None
        values: dict[str, Sequence[str]] = {}
        if self.like is not None:
            card = self.like.card
            classes = card.class_names if card.column("label") else None
            for column in card.columns.values():
                if (column.role, column.table) == ("domain", "nodes"):
                    values[GRAPH if column.name == self.wishes.graph_column else column.name] = column.values
        nodes = read_nodes(
            self.tables.nodes, self.columns["nodes"], self.home, meter,
            lists=self.tables.lists, classes=classes, values=values,
        )  # fmt: skip
        if nodes.graph_codes is not None:
            if self.wishes.graph_column in nodes.domains:
                raise MarioError(
                    f"the nodes have a column {self.wishes.graph_column}, which is the name for the files; choose "
                    "another with --by-file NAME"
                )
            nodes.domains = {self.wishes.graph_column: (nodes.graph_codes, nodes.graphs)} | nodes.domains
        return nodes

    def _write_ids(self, nodes: Nodes, graphs: Sequence[str]) -> None:
        def parts() -> Iterator[pa.Array]:
            for graph, ids in zip(graphs, nodes.ids, strict=True):
                if nodes.prefixed:
                    texts = ids.cast(pa.large_string())
                    yield pa.array([f"{graph}/{one}" for one in texts.to_pylist()], pa.string())
                else:
                    yield ids.cast(kind)

        kind = pa.string() if nodes.prefixed else nodes.kind
        if nodes.kind == pa.large_string() or (kind == pa.string() and sum(one.nbytes for one in nodes.ids) > 2**30):
            kind = pa.large_string()
        if isinstance(kind, pa.BaseExtensionType):
            storage = kind
            write_ids(
                self.home / IDS_FILE,
                (pa.ExtensionArray.from_storage(storage, one.cast(storage.storage_type)) for one in nodes.ids),
                kind,
            )
        else:
            write_ids(self.home / IDS_FILE, (one.cast(kind) for one in parts()), kind)
        if nodes.prefixed:
            self.lines.append(
                f"Some ids occur in several graphs, so ids begin with the name of their graph, as {graphs[0]}/"
                f"{nodes.ids[0][0].as_py()}."
            )

    def _check_headers(self, ends: Ends, nodes: Nodes, index: "Mapping[str, IdIndex]") -> None:
        """Raise an error if the header of a file of edges is an edge."""
        for part in self.tables.edges:
            where = index.get(part.graph if "" not in index else "")
            if part.typed or part.first < 2 or where is None or not self.tables.nodes:
                continue
            keys = pa.array([ends.source, ends.target], pa.large_string())
            if nodes.key == keys.type and (where.rows(keys) >= 0).all():
                raise MarioError(
                    f"{part.name}, row {part.first - 1}: there is no header, as {ends.source!r} and {ends.target!r} "
                    "are ids of nodes; write a row such as source,target above it"
                )

    def _hint(self, ends: Ends, nodes: Nodes) -> str:
        """Another column of the nodes that has the ids of the first edges."""
        if not self.tables.nodes or not self.tables.edges:
            return ""
        edges = self.tables.edges[0].sample
        part = next((one for one in self.tables.nodes if one.graph == self.tables.edges[0].graph), self.tables.nodes[0])
        named: set[str] = set()
        for name in (ends.source, ends.target):
            if name in self.tables.edges[0].names:
                named |= {str(one) for one in edges.column(name).slice(0, 1000).to_pylist()}
        for column in self.columns["nodes"]:
            if column.role != "id" and column.name in part.names and named:
                there = {str(one) for one in part.sample.column(column.name).to_pylist()}
                if len(named & there) >= 0.9 * len(named) and len(there) == part.sample.num_rows:
                    return f"column {column.name} has such ids: use --id {column.name}; or "
        return ""

    def _write_features(self, nodes: Nodes) -> int:
        from mario.graphs.mapped import write_array

        columns = [column for column in self.columns.get("nodes", ()) if column.role == "feature"]
        if self.tables.matrix is not None:
            return self._write_matrix(nodes)
        if self.like is not None:
            if MATRIX in self.like.card.columns:
                raise MarioError(
                    f"--like {self.like.card.folder}: its features came as a matrix, and these tables have none"
                )
            self.plan = self.like.plan
        elif columns:
            self.watch(Progress("features", 0, nodes.count))
            keep = self._keep(nodes)
            self.plan = FeaturePlan.fit(nodes.batches, columns, keep=keep, seed=self.wishes.seed)
            if not self.plan.width:
                self.plan = None
        if self.plan is None:
            shape = (nodes.count, len(NAMES))
            write_array(self.arrays / "x.npy", np.float32, shape, structural_features(self.arrays))
            self.lines.append(
                "No column became a feature, so features are of the structure: degrees of nodes and neighbors."
            )
            return len(NAMES)
        blocks = self._transformed(nodes)
        if self.plan.sparse:
            import scipy.sparse as sp

            self._sparse = sp.vstack([sp.csr_matrix(block) for block in blocks], format="csr", dtype=np.float32)
            self.file = GRAPH_FILE
        else:
            write_array(self.arrays / "x.npy", np.float32, (nodes.count, self.plan.width), blocks)
        self.lines += [f"{line}." for line in self.plan.report.lines()]
        self.plan.save(self.home / PLAN_FILE)
        return self.plan.width

    def _write_matrix(self, nodes: Nodes) -> int:
        """Features that are a matrix already."""
        from mario.graphs.mapped import write_array

        matrix = self.tables.matrix
        width = int(matrix.shape[1])
        if self.like is not None and (self.like.plan is not None or self.like.card.features != width):
            raise MarioError(
                f"--like {self.like.card.folder}: it has {self.like.card.features:,} features, and this graph has a "
                f"matrix with {width:,}"
            )
        if isinstance(matrix, np.ndarray):
            write_array(self.arrays / "x.npy", np.float32, matrix.shape, [matrix])
        else:
            self._sparse, self.file = matrix, GRAPH_FILE
        return width

    def _transformed(self, nodes: Nodes) -> "Iterator[Any]":
        assert self.plan is not None
        done = 0
        for batch in nodes.batches():
            yield self.plan.transform(batch)
            done += batch.num_rows
            self.watch(Progress("features", done, nodes.count))

    def _keep(self, nodes: Nodes) -> "Callable[[pa.RecordBatch], NDArray[np.bool_]] | None":
        """The rows that features are fitted on."""
        if not self.wishes.keep:
            return None
        if not nodes.domains:
            raise MarioError("--fit-on names values of a domain, but no column is a domain; name one with --domain")
        name, (codes, values) = next(iter(nodes.domains.items()))
        for value in self.wishes.keep:
            if value not in values:
                meant = nearest(value, values, f"it has {', '.join(values[:10])}")
                raise MarioError(f"--fit-on: the domain {name} has no value {value!r}; {meant}")
        wanted = np.isin(codes, [values.index(value) for value in self.wishes.keep])
        place = 0

        def keep(batch: pa.RecordBatch) -> "NDArray[np.bool_]":
            nonlocal place
            place += batch.num_rows
            return np.asarray(wanted[place - batch.num_rows : place])

        return keep

    def _write_attributes(self, nodes: Nodes) -> dict[str, "NDArray[np.int64]"]:
        arrays: dict[str, NDArray[np.int64]] = {}
        if nodes.labels is not None:
            arrays["y"] = nodes.labels
        for name, (codes, _) in nodes.domains.items():
            key = attribute_name(name, taken=list(arrays))
            self.attributes[name] = key
            arrays[key] = codes
        if nodes.times is not None:
            arrays["time"] = nodes.times
        return arrays

    def _finish(self, nodes: Nodes, arrays: "dict[str, NDArray[np.int64]]", *, weighted: bool) -> None:
        from mario.graphs.mapped import finish_folder, write_array

        plain: dict[str, Any] = {}
        if nodes.labels is not None and self._classes(nodes):
            plain = {"num_classes": len(self._classes(nodes)), "class_names": list(self._classes(nodes))}
        if self.file == GRAPH_FOLDER:
            for name, values in arrays.items():
                write_array(self.arrays / f"{name}.npy", np.int64, values.shape, [values])
            names = ("x", "edge_index", *(["edge_weight"] if weighted else []), "starts", *arrays)
            finish_folder(self.arrays, names, plain, symmetric=not self.directed)
            return
        import torch
        from torch_geometric.data import Data

        from mario.graphs.sparse import csr
        from mario.graphs.store import save_graph

        x = self._sparse
        parts = (torch.from_numpy(part.astype(np.int64)) for part in (x.indptr, x.indices))
        data = Data(x=csr(next(parts), next(parts), torch.from_numpy(x.data), x.shape))
        data.edge_index = torch.from_numpy(np.load(self.arrays / "edge_index.npy"))
        if weighted:
            data.edge_weight = torch.from_numpy(np.load(self.arrays / "edge_weight.npy"))
        for name, values in arrays.items():
            data[name] = torch.from_numpy(values)
        for name, value in plain.items():
            data[name] = value
        save_graph(data, self.home / GRAPH_FILE)
        shutil.rmtree(self.arrays)

    def _classes(self, nodes: Nodes) -> tuple[str, ...]:
        if self.like is not None and self.like.card.column("label"):
            return self.like.card.class_names
        return nodes.label_names

    def _write_card(self, nodes: Nodes, width: int, edge_rows: Sequence[int], meter: Meter) -> None:
        classes = self._classes(nodes)
        table: dict[str, Any] = {
            "name": self.name,
            **({"what": self.wishes.what} if self.wishes.what else {}),
            "file": self.file,
            "metric": "accuracy",
            "setting": "transductive",
            "nodes": nodes.count,
            "edges": self.counts.edges,
            "features": width,
            "classes": len(classes),
            "labeled": 0 if nodes.labels is None else int((nodes.labels >= 0).sum()),
            **({"class_names": list(classes)} if classes else {}),
            "ids": IDS_FILE,
            **({"plan": PLAN_FILE} if self.plan is not None else {}),
            "like": "" if self.like is None else self.like.digest,
        }
        unseen = [name for name in nodes.label_names if name not in classes]
        if unseen:
            self.lines.append(
                f"{len(unseen)} label{'s' * (len(unseen) > 1)} that the other graph does not have count as missing: "
                f"{', '.join(unseen[:5])}."
            )
        if self.counts.dangling:
            self.lines.append(f"{self.counts.dangling:,} edges name a node that is not there and were left out.")
        if self.counts.repeated:
            self.lines.append(f"{self.counts.repeated:,} rows of edges repeat an edge and were merged with it.")
        if self.counts.loops:
            self.lines.append(f"{self.counts.loops:,} edges link a node to itself.")
        for part, value in getattr(self, "_unused", ()):
            self.lines.append(f"{part.name} has lists for ids that no node has, such as {value!r}; they are not used.")
        if self.lines:
            table["notes"] = [line[:500] for line in self.lines]
        table["columns"] = self._card_columns(nodes)
        table["sources"] = self._sources(nodes, edge_rows, meter)
        write_card(self.home, table)

    def _card_columns(self, nodes: Nodes) -> dict[str, Any]:
        widths = {} if self.plan is None else self.plan.widths
        made: dict[str, Any] = {}
        if nodes.graph_codes is not None:
            name = self.wishes.graph_column
            made[self.attributes[name]] = _column_table(name, "domain", "categorical", "nodes", values=nodes.graphs)
        for table, columns in self.columns.items():
            for column in columns:
                key = self.attributes.get(column.name, column.name) if table == "nodes" else column.name
                key = key if key not in made else f"{table}:{key}"
                made[key] = _column_table(
                    column.name, column.role, column.kind, table,
                    missing=nodes.missing.get(column.name, 0) if table == "nodes" else 0,
                    features=widths.get(column.name, 0) if table == "nodes" else 0,
                    values=nodes.domains[column.name][1] if table == "nodes" and column.name in nodes.domains else (),
                )  # fmt: skip
        return {
            key: {name: one for name, one in value.items() if name != "name" or one != key}
            for key, value in made.items()
        }

    def _sources(self, nodes: Nodes, edge_rows: Sequence[int], meter: Meter) -> list[dict[str, Any]]:
        made = []
        rows = {"nodes": nodes.rows, "edges": edge_rows}
        for table, parts in (("nodes", self.tables.nodes), ("edges", self.tables.edges)):
            for part, count in zip(parts, rows[table], strict=False):
                if part.file is not None:
                    made.append(_source(part, table, count, meter))
        made += [
            _source(part, "nodes", part.sample.num_rows, meter) for part in self.tables.lists if part.file is not None
        ]
        return made


def _source(part: Part, table: str, rows: int, meter: Meter) -> dict[str, Any]:
    from mario.graphs.tables.sources import checksum

    assert part.file is not None
    path = part.file.path
    digest = meter.digests.get(path) or checksum(path)
    return {"file": str(path), "sha256": digest, "bytes": path.stat().st_size, "rows": rows, "table": table}


def _column_table(
    name: str, role: str, kind: str, table: str, *, missing: int = 0, features: int = 0, values: Sequence[str] = ()
) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "role": role, "kind": kind}
    made |= {"table": table} if table != "nodes" else {}
    made |= {"missing": missing} if missing else {}
    made |= {"features": features} if features else {}
    made |= {"values": list(values)} if values else {}
    return made


def attribute_name(name: str, taken: Sequence[str] = ()) -> str:
    """The attribute of a graph that a column becomes: a name of Python that means nothing else.

    Example:
        >>> attribute_name("home town"), attribute_name("domain")
        ('home_town', 'domain_column')
    """
    made = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "column"
    made = made if made[0].isalpha() else f"column_{made}"
    if made in _RESERVED or made.endswith("_mask") or made in taken:
        made = f"{made}_column"
    number = 2
    while made in taken:
        made, number = f"{made}{number}", number + 1
    return made[:100]


def card_name(folder: str) -> str:
    """The name of a folder as the name of a graph."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder).lstrip("-._") or "graph"


def _check_name(name: str) -> None:
    check_card(
        {"name": name, "file": "x", "metric": "accuracy", "setting": "transductive"}
        | dict.fromkeys(("nodes", "edges", "features", "classes"), 0)
    )


def _split_roles(tables: Tables, roles: Roles) -> tuple[Roles, Roles]:
    """What is said of the columns of the nodes, and of the edges."""
    node_names = {name for part in tables.nodes for name in part.names}
    edge_names = {name for part in tables.edges for name in part.names}
    for name in roles.drop:
        if name not in node_names | edge_names:
            meant = nearest(name, node_names | edge_names)
            raise MarioError(f"--drop {name}: no table has this column{meant and f'; {meant}'}")
    time_of_nodes = roles.time in node_names or (roles.time is not None and roles.time not in edge_names)
    nodes = replace(
        roles, source=None, target=None, weight=None,
        time=roles.time if time_of_nodes else None,
        drop=tuple(name for name in roles.drop if name in node_names),
        kinds={name: kind for name, kind in roles.kinds.items() if name in node_names or name not in edge_names},
    )  # fmt: skip
    edges = Roles(
        source=roles.source, target=roles.target, weight=roles.weight,
        time=None if time_of_nodes else roles.time,
        drop=tuple(name for name in roles.drop if name in edge_names),
        kinds={name: kind for name, kind in roles.kinds.items() if name in edge_names and name not in node_names},
    )  # fmt: skip
    if not tables.nodes:
        for role in ("id", "label", "time"):
            if getattr(nodes, role) is not None:
                raise MarioError(f"--{role} names a column of the nodes, and there is no table of nodes; give --nodes")
    return nodes, edges


def _common_sample(parts: Sequence[Part]) -> tuple[pa.Schema, pa.Table]:
    """Columns that all parts have, in the order of the first, and their first rows."""
    first = parts[0]
    names = [name for name in first.schema.names if all(name in part.names for part in parts)]
    if not names:
        other = next(part for part in parts if not first.names & part.names)
        raise MarioError(f"{first.name} and {other.name} have no column in common; write the same header into both")
    samples = []
    kept = 20 if len(parts) > 20 else len(parts)
    rows = max(1000, 20_000 // kept)
    for part in parts[:kept]:
        samples.append(part.sample.select(names).slice(0, rows))
    try:
        sample = pa.concat_tables(samples, promote_options="permissive")
    except pa.ArrowException:
        texts = [pa.table({name: _texts(one.column(name)) for name in names}) for one in samples]
        sample = pa.concat_tables(texts)
    return sample.schema, sample


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        return pa.chunked_array(
            [pa.array([None if one is None else str(one) for one in column.to_pylist()], pa.string())]
        )


def _like_roles(like: Like, table: str, schema: pa.Schema, given: Roles) -> Roles:
    """The roles that the columns of the other graph have; what is given wins."""
    roles: dict[str, Any] = {}
    lists: dict[str, list[str]] = {"domain": [], "drop": [], "feature": []}
    kinds = dict(given.kinds)
    said = set(given.by_column())
    for column in like.card.columns.values():
        if column.table != table or column.name in said:
            continue
        if column.name not in schema.names:
            continue
        if column.role in lists:
            lists[column.role].append(column.name)
        elif getattr(given, column.role) is None:
            roles[column.role] = column.name
        if column.kind != "none" and column.role == "feature":
            kinds.setdefault(column.name, column.kind)
    return replace(
        given, **roles, kinds=kinds,
        domain=(*given.domain, *lists["domain"]), drop=(*given.drop, *lists["drop"]),
        feature=(*given.feature, *lists["feature"]),
    )  # fmt: skip


def _as_before(like: Like, table: str, columns: Sequence[Column], said: set[str]) -> list[Column]:
    """Columns that the other graph does not have are dropped; one that it has and this one lacks is an error."""
    known = {column.name: column for column in like.card.columns.values() if column.table == table}
    there = {column.name for column in columns}
    if table == "nodes":
        for name, column in known.items():
            made = column.role == "feature" and (like.plan is None or name in like.plan.columns)
            if name not in there and (made or column.role == "id") and name != "features":
                meant = nearest(name, there, f"they have {', '.join(sorted(there)[:12])}")
                raise MarioError(
                    f"the nodes have no column {name!r}, which {like.card.folder.name} has as {column.role}; {meant}"
                )
    name = like.card.folder.name
    return [
        column
        if column.name in said
        else replace(column, reason=f"as in {name}")
        if column.name in known
        else column
        if column.role in ("id", "source", "target")
        else Column(column.name, "drop", "none", f"not in {name}")
        for column in columns
    ]


def _check_roles(columns: Sequence[Column], tables: Tables) -> None:
    ids = [column.name for column in columns if column.role == "id"]
    if len(ids) != 1:
        names = ", ".join(column.name for column in columns[:12])
        raise MarioError(
            f"{tables.nodes[0].name}: no column is the id of the nodes; name it with --id (the columns are {names})"
        )


def _check_new(home: Path) -> None:
    if home.is_file():
        raise MarioError(f"{home} is a file; choose a new folder for -o")
    if home.is_dir() and any(home.iterdir()):
        holds = "holds a graph" if (home / CARD_FILE).exists() else "is not empty"
        raise MarioError(f"{home} {holds}: choose another folder for -o, or remove it")


@contextmanager
def _beside(home: Path) -> Iterator[Path]:
    """A temporary folder beside ``home``, which is removed if anything fails. Those of killed processes are, too."""
    parent = home.resolve().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for other in parent.glob(f".{home.name}.*.part"):
            found = _STALE.fullmatch(other.name)
            if found and found["name"] == home.name and not _is_running(int(found["pid"])):
                shutil.rmtree(other, ignore_errors=True)
        part = parent / f".{home.name}.{os.getpid()}-{uuid.uuid4().hex}.part"
        part.mkdir()
    except OSError as error:
        raise RunFailedError(f"cannot make a folder in {parent}: {error.strerror or error}") from None
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _put(part: Path, home: Path) -> None:
    try:
        os.replace(part, home.resolve())
    except OSError as error:
        raise RunFailedError(
            f"cannot make the folder {home}: {error.strerror or error}; choose another for -o"
        ) from None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


__all__ = ["MISSING", "Built", "Like", "Progress", "Tables", "Wishes", "build_graph", "find_columns"]
