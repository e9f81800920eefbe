"""Files of tables and of whole graphs: sound ones to damage, and what reading one may do."""

import bz2
import functools
import gzip
import io
import lzma
import tempfile
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse as sp
import torch

from mario.errors import MarioError
from mario.graphs import check_graph
from mario.graphs.tables.build import Wishes, build_graph
from mario.graphs.tables.columns import Roles
from mario.graphs.tables.frames import read_graph
from mario.graphs.tables.opening import open_graph, open_tables

NODES = (
    b"id,size,color,born,about,label,town\n"
    b'1,1.5,red,2017-01-02,"big, old",x,Rome\n2,-3,blue,2017-02-03,"new\nand ""small""",y,Oslo\n'
    b"3,,red,2018-11-30,,x,Rome\n4,1e3,,2019-05-06,old,,Lima\n"
)
EDGES = b"source,target,weight\n1,2,1\n2,3,0.5\n4,1,2\n3,3,1\n"
LINES = (
    b'{"id": "a", "size": 1, "tags": ["x", "y"], "ok": true}\n{"id": "b", "size": 2.5, "tags": [], "ok": null}\n'
    b'{"id": "c", "size": null, "tags": ["x"], "ok": false}\n'
)
TEXT_EDGES = b"source target\na b\nb c\n"


def _written(write: object, *arguments: object) -> bytes:
    sink = io.BytesIO()
    write(sink, *arguments)  # type: ignore[operator]
    return sink.getvalue()


def _parquet() -> bytes:
    table = pa.table(
        {"id": ["a", "b", "c"], "size": [1.0, None, 3.0], "color": pa.array(["x", "y", "x"]).dictionary_encode()}
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _npz() -> bytes:
    sink = io.BytesIO()
    np.savez(sink, adj=np.eye(3), attr=np.ones((3, 2)), labels=[0, 1, 0])
    return sink.getvalue()


@functools.cache
def sound() -> dict[str, bytes]:
    """A sound file of each kind, by its name."""
    graph = nx.Graph([("a", "b"), ("b", "c")])
    nx.set_node_attributes(graph, {"a": 1.0, "b": 2.0, "c": 3.0}, "size")
    square = sp.csr_array(np.array([[0, 1.0, 0], [1, 0, 2], [0, 2, 0]]))
    saved = {"x": torch.eye(3), "edge_index": torch.tensor([[0, 1], [1, 2]]), "y": torch.tensor([0, 1, 0])}
    return {
        "n.csv": NODES,
        "e.csv": EDGES,
        "n.tsv": NODES.replace(b",", b"\t"),
        "n16.csv": NODES.decode().encode("utf-16"),
        "n.csv.gz": gzip.compress(NODES, mtime=0),
        "n.csv.bz2": bz2.compress(NODES),
        "n.csv.xz": lzma.compress(NODES),
        "n.csv.zst": bytes(pa.Codec("zstd").compress(NODES, asbytes=True)),
        "n.jsonl": LINES,
        "n.json": b'[{"id": "a", "v": 1}, {"id": "b", "v": null}, {"id": "c", "v": 2.5}]',
        "lists.json": b'{"a": [1, 2], "b": [], "c": ["x"]}',
        "n.parquet": _parquet(),
        "a.npz": _written(sp.save_npz, square),
        "b.npz": _npz(),
        "a.mat": _written(
            scipy.io.savemat, {"Network": square, "Attributes": np.ones((3, 2)), "Label": [[1], [2], [1]]}
        ),
        "a.graphml": _written(lambda sink: nx.write_graphml(graph, sink)),
        "a.gml": _written(lambda sink: nx.write_gml(graph, sink)),
        "a.gexf": _written(lambda sink: nx.write_gexf(graph, sink)),
        "a.pt": _written(lambda sink: torch.save(saved, sink)),
    }


def build(name: str, content: bytes) -> bool:
    """Build a graph from a file with this content, and others that are sound; whether it was sound.

    A `MarioError` in one line is right. So is a graph that passes `check_graph`. Nothing else stays in the folder.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        home = Path(folder)
        (home / name).write_bytes(content)
        given = {name}
        said = ""
        try:
            if name[:2] in ("a.", "b."):
                tables, roles = open_graph(home / name, Roles())
            else:
                kind = "e.csv" if name != "e.csv" else "n.csv"
                other = TEXT_EDGES if name in ("n.jsonl", "n.json", "lists.json", "n.parquet") else sound()[kind]
                (home / kind).write_bytes(other)
                given.add(kind)
                nodes = name if name != "e.csv" else "n.csv"
                tables = open_tables([home / nodes], [home / (name if name == "e.csv" else "e.csv")])
                roles = Roles()
            build_graph(tables, home / "out", Wishes(roles=roles, drop_dangling=True))
        except MarioError as error:
            said = str(error)
        if said:
            assert "\n" not in said, f"more than a line: {said}"
            assert len(said) < 2000, f"a long message: {said}"
            assert {path.name for path in home.iterdir()} == given, "something was left"
            return False
        check_graph(read_graph(home / "out"))
        assert {path.name for path in home.iterdir()} == given | {"out"}, "something was left"
        return True
