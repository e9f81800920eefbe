"""Broken input: each kind gives one message that names the file, the row and the column, and nothing half-written "
"stays."""

import base64
import bz2
import errno
import gzip
import io
import lzma
import os
import pickle
import resource
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from mario.errors import MarioError, RunFailedError
from mario.graphs.tables.build import Wishes, build_graph
from mario.graphs.tables.columns import Roles
from mario.graphs.tables.frames import read_graph
from mario.graphs.tables.opening import open_graph, open_tables

NODES = b"id,size,label\na,1,x\nb,2,y\nc,3,x\n"
EDGES = b"source,target\na,b\nb,c\n"
Content = bytes | Callable[[], bytes]


@dataclass
class Case:
    """Files that replace sound ones, how they are given, and what the message says."""

    name: str
    match: str
    nodes: Content = NODES
    edges: Content = EDGES
    nodes_name: str = "n.csv"
    edges_name: str = "e.csv"
    given: dict[str, Any] = field(default_factory=dict)
    roles: dict[str, Any] = field(default_factory=dict)


def parquet(**columns: Any) -> Callable[[], bytes]:
    def write() -> bytes:
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        return sink.getvalue()

    return write


def lying_parquet(**columns: Any) -> Callable[[], bytes]:
    def write() -> bytes:
        whole = bytearray(parquet(**columns)())
        whole[20:60] = bytes(40)
        return bytes(whole)

    return write


def cut_parquet() -> bytes:
    return parquet(id=list(range(1000)), v=list(range(1000)))()[:-300]


def footer_of_lies() -> bytes:
    whole = parquet(id=["a", "b", "c"], v=[1, 2, 3])()
    return whole[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1"


def bomb() -> bytes:
    pa_codec = pa.Codec("zstd", 3)
    return bytes(pa_codec.compress(b"id,v\n" + b"aaaa,1\n" * 20_000_000, asbytes=True))


def many_columns(count: int) -> bytes:
    head = ",".join(["id", *(f"c{number}" for number in range(count))])
    return f"{head}\na{',1' * count}\nb{',2' * count}\n".encode()


CASES = [
    Case("empty file", r"n\.csv is empty", nodes=b""),
    Case("blank lines", r"n\.csv has only blank lines", nodes=b"\n\n  \n"),
    Case("header alone", r"n\.csv has a header and no rows", nodes=b"id,size\n"),
    Case("comments alone", r"n\.csv has no rows", nodes=b"# nothing\n# here\n"),
    Case("empty edges", r"e\.csv is empty", edges=b""),
    Case("edges with a header alone", r"e\.csv has a header and no rows", edges=b"source,target\n"),
    Case("one column of edges", r"e\.csv has one column, 'source'; edges need two", edges=b"source\na\n"),
    Case("no column is an id", r"no column is the id.*--id", nodes=b"u,v\n1,1\n1,2\n1,2\n"),
    Case("no target", r"no column 'goal'", roles={"target": "goal"}),
    Case("no such id column", r"nodes have no column 'idd'; did you mean 'id'", roles={"id": "idd"}),
    Case("two roles for a column", r"column 'id' is given as id and as label", roles={"id": "id", "label": "id"}),
    Case(
        "no such column to drop", r"--drop siz: no table has this column; did you mean 'size'", roles={"drop": ("siz",)}
    ),
    Case("duplicate ids", r"n\.csv, row 4, column id: the id 'a' is already in row 2", nodes=b"id,v\na,1\nb,2\na,3\n"),
    Case(
        "duplicate whole numbers",
        r"row 5, column id: the id 7 is already in row 3",
        nodes=b"id,v\n5,1\n7,1\n6,2\n7,3\n",
    ),
    Case("an id is missing", r"n\.csv, row 3, column id: there is no id", nodes=b"id,v\na,1\n,2\nc,3\n"),
    Case(
        "dangling source", r"e\.csv, row 3, column source: no node has the id 'z'", edges=b"source,target\na,b\nz,c\n"
    ),
    Case("dangling target", r"e\.csv, row 2, column t: no node has the id 'z'.*--drop-dangling", edges=b"s,t\na,z\n"),
    Case("an end is missing", r"e\.csv, row 3, column target: there is no id", edges=b"source,target\na,b\nb,\n"),
    Case(
        "text as the end of an edge",
        r"e\.csv, row 3, column t: 'x' is not a whole number, as the ids of the nodes are",
        nodes=b"id,v\n1,1\n2,2\n",
        edges=b"s,t\n1,2\n1,x\n",
    ),
    Case(
        "a negative weight",
        r"e\.csv, row 3, column weight: the weight -1; weights are finite",
        edges=b"source,target,weight\na,b,1\nb,c,-1\n",
    ),
    Case(
        "a weight that is NaN",
        r"e\.csv, row 3, column weight: no weight",
        edges=b"source,target,weight\na,b,1\nb,c,nan\n",
    ),
    Case(
        "a weight that is infinite",
        r"row 2, column weight: the weight inf",
        edges=b"source,target,weight\na,b,inf\nb,c,1\n",
    ),
    Case(
        "a weight beyond float32", r"row 2, column weight: the weight 1e\+39", edges=b"source,target,weight\na,b,1e39\n"
    ),
    Case(
        "a weight that is a text",
        r"e\.csv, row 3, column weight: 'heavy' is not a number",
        edges=b"source,target,weight\na,b,1\nb,c,heavy\n",
        roles={"weight": "weight"},
    ),
    Case(
        "too few values in a row",
        r"n\.csv, row 3: it has 2 values, but the header has 3",
        nodes=b"id,v,w\na,1,2\nb,2\n",
    ),
    Case(
        "too many values in a row",
        r"n\.csv, row 3: it has 4 values, but the header has 3",
        nodes=b"id,v,w\na,1,2\nb,2,3,4\n",
    ),
    Case("a row of edges too long", r"e\.csv, row 4: it has 3 values, but the header has 2", edges=EDGES + b"a,b,c\n"),
    Case("a quote left open", r"n\.csv, row 3: .*quote is opened", nodes=b'id,v,w\na,1,2\nb,"x,2\nc,3,4\nd,4,5\n'),
    Case(
        "a quote left open in the last column",
        r"n\.csv, row 3: a quote is opened and never closed",
        nodes=b'id,v\na,1\nb,"x\nc,y\nd,z\n',
    ),
    Case("no header", r"n\.csv, row 1: there is no header", nodes=b"1,2,3\n2,3,4\n"),
    Case("edges without a header", r"e\.csv, row 1: there is no header, as 'a' and 'b' are ids", edges=b"a,b\nb,c\n"),
    Case("two columns of one name", r"n\.csv, row 1: two columns have the name 'v'", nodes=b"id,v,v\na,1,2\n"),
    Case("a column without a name", r"n\.csv, row 1: column 3 has no name", nodes=b"id,v,\na,1,2\n"),
    Case("a column named with a control character", r"row 1: column 2 has the name 'v\\x07'", nodes=b"id,v\x07\na,1\n"),
    Case(
        "Latin-1", r"n\.csv, row 3, column v: it is not text in UTF-8.*iconv", nodes="id,v\na,x\nb,é\n".encode("latin1")
    ),
    Case(
        "Latin-1 far below",
        r"n\.csv, row 500,002, column v: it is not text in UTF-8",
        nodes=lambda: b"id,v\n" + b"".join(b"a%d,x%d\n" % (n, n % 9) for n in range(500_000)) + b"z,\xe9\n",
    ),
    Case("UTF-16 without its mark", r"n\.csv, row 1: it has null characters", nodes=NODES.decode().encode("utf-16-le")),
    Case("UTF-16 that is cut", r"n\.csv.*(UTF-16|utf-16)", nodes=NODES.decode().encode("utf-16")[:-1]),
    Case("null characters", r"n\.csv, row 3: it has null characters", nodes=b"id,v\na,1\n\0,2\n"),
    Case("a zip file named as CSV", r"n\.csv is a zip file", nodes=b"PK\x03\x04rest of it"),
    Case("a pickle named as CSV", r"n\.csv is a pickle, which is not read", nodes=lambda: pickle.dumps({"id": [1]})),
    Case("an Excel file", r"n\.xlsx is of an unknown kind", nodes_name="n.xlsx"),
    Case("a zip of tables", r"n\.csv\.zip is of an unknown kind; unpack it first", nodes_name="n.csv.zip"),
    Case("gzip that is none", r"n\.csv\.gz is not a sound gzip file", nodes_name="n.csv.gz"),
    Case(
        "gzip with a wrong bit",
        r"n\.csv\.gz is not a sound gzip file \(Error -3",
        nodes_name="n.csv.gz",
        nodes=lambda: gzip.compress(NODES * 100)[:10] + b"\x35\x8d\x4b" + gzip.compress(NODES * 100)[13:],
    ),
    Case(
        "gzip that is cut",
        r"n\.csv\.gz is not a sound gzip file",
        nodes_name="n.csv.gz",
        nodes=lambda: gzip.compress(NODES * 100)[:-20],
    ),
    Case(
        "bzip2 that is damaged",
        r"n\.csv\.bz2 is not a sound bzip2 file",
        nodes_name="n.csv.bz2",
        nodes=lambda: bz2.compress(NODES)[:-9],
    ),
    Case(
        "xz that is damaged",
        r"n\.csv\.xz is not a sound xz file",
        nodes_name="n.csv.xz",
        nodes=lambda: lzma.compress(NODES)[:30],
    ),
    Case(
        "zstd that is damaged",
        r"n\.csv\.zst is not a sound zstd file",
        nodes_name="n.csv.zst",
        nodes=b"\x28\xb5\x2f\xfdxx",
    ),
    Case("a zip bomb", r"n\.csv\.zst grows to more than 200 times", nodes_name="n.csv.zst", nodes=bomb),
    Case("a row without end", r"longer than 4,194,304 bytes", nodes=lambda: b"id,v\na," + b"x" * 9_000_000 + b"\n"),
    Case("30,000 columns", r"n\.csv has 30,001 columns; at most 20,000", nodes=many_columns(30_000)),
    Case(
        "a path that is a folder",
        r"--nodes: .* is of an unknown kind|Is a directory",
        nodes_name="folder.csv/x.csv",
        given={"nodes": ["folder.csv"]},
    ),
    Case("no such file", r"--nodes: there is no file nothing\.csv", given={"nodes": ["nothing.csv"]}),
    Case("no file matches", r"--nodes: no file matches \*\.tsv", given={"nodes": ["*.tsv"]}),
    Case("a file given twice", r"n\.csv is given twice", given={"nodes": ["n.csv", "./n.csv"]}),
    Case("a name without a file", r"'de=' names no file", given={"nodes": ["de="]}),
    Case("one file without a name", r"n\.csv has no name, but other files do", given={"nodes": ["de=e.csv", "n.csv"]}),
    Case("a graph without edges", r"--edges: name the file of the edges", given={"edges": []}),
    Case("a name of nothing", r"--nodes must name a file, got 'a\\x00b'", given={"nodes": ["a\0b"]}),
    Case(
        "edges of a graph that is not there",
        r"e\.csv: there are no nodes of the graph 'fr'",
        given={"nodes": ["de=n.csv"], "edges": ["fr=e.csv"]},
    ),
    Case(
        "JSON lines of two kinds",
        r"n\.jsonl, row 3, column v: 'x' is a text, and the rows before it have a number",
        nodes_name="n.jsonl",
        nodes=b'{"id":"a","v":1}\n{"id":"b","v":2}\n{"id":"c","v":"x"}\n',
    ),
    Case(
        "JSON lines that are cut",
        r"row 2 is not valid JSON",
        nodes_name="n.jsonl",
        nodes=b'{"id":"a","v":1}\n{"id":"b"\n',
    ),
    Case(
        "JSON lines with a name in Latin-1",
        r"n\.jsonl, row 2: it is not text in UTF-8",
        nodes_name="n.jsonl",
        nodes=b'{"id":"a","v":1}\n{"id":"b","v":1,"\xe9":2}\n',
    ),
    Case(
        "JSON lines with a value in Latin-1",
        r"n\.jsonl, row 1: it is not text in UTF-8",
        nodes_name="n.jsonl",
        nodes=b'{"id":"\xe9","v":1}\n{"id":"b","v":1}\n',
    ),
    Case(
        "JSON lines of lists",
        r"n\.jsonl, row 1: it is a list; each line must be an object",
        nodes_name="n.jsonl",
        nodes=b"[1,2]\n[3,4]\n",
    ),
    Case("empty JSON lines", r"n\.jsonl is empty", nodes_name="n.jsonl", nodes=b""),
    Case("JSON lines in UTF-16", r"n\.jsonl is in UTF-16", nodes_name="n.jsonl", nodes='{"id":1}\n'.encode("utf-16")),
    Case("JSON that is cut", r"n\.json is not valid JSON", nodes_name="n.json", nodes=b'{"a": [1,'),
    Case(
        "JSON nested without end",
        r"n\.json is not valid JSON \(it is nested",
        nodes_name="n.json",
        nodes=b"[" * 100_000,
    ),
    Case("JSON of numbers", r"n\.json, row 1: it is a number", nodes_name="n.json", nodes=b"[1, 2]"),
    Case(
        "JSON of two kinds",
        r"n\.json, column v: row 2 has a text, and the rows before it a number",
        nodes_name="n.json",
        nodes=b'[{"id": 1, "v": 1}, {"id": 2, "v": "x"}]',
    ),
    Case(
        "lists in lists", r"n\.json, id 'a': the list has a list", nodes_name="n.json", nodes=b'{"a": [[1]], "b": [2]}'
    ),
    Case("Parquet that is none", r"n\.parquet is not a Parquet file", nodes_name="n.parquet"),
    Case("Parquet that is cut", r"n\.parquet is not a sound Parquet file", nodes_name="n.parquet", nodes=cut_parquet),
    Case(
        "Parquet with a footer of lies",
        r"n\.parquet is not a sound Parquet file",
        nodes_name="n.parquet",
        nodes=footer_of_lies,
    ),
    Case(
        "Parquet of lies",
        r"n\.parquet is not a sound Parquet file",
        nodes_name="n.parquet",
        nodes=lying_parquet(id=[f"node {n}" for n in range(300)], v=list(range(300))),
    ),
    Case(
        "Parquet without rows",
        r"n\.parquet has no rows",
        nodes_name="n.parquet",
        nodes=parquet(id=pa.array([], pa.string())),
    ),
    Case(
        "Parquet with an id that is NaN",
        r"n\.parquet, row 2, column id: there is no id",
        nodes_name="n.parquet",
        nodes=parquet(id=[1.0, float("nan")], v=[1, 2]),
    ),
    Case(
        "Parquet with ids of lists",
        r"ids cannot be of type list",
        nodes_name="n.parquet",
        nodes=parquet(id=[[1], [2]], v=[1, 2]),
        roles={"id": "id"},
    ),
    Case(
        "Parquet with text as the end of an edge",
        r"e\.parquet, row 2, column t: 'x' is no id",
        nodes=b"id,v\n1,1\n2,2\n",
        edges_name="e.parquet",
        edges=parquet(s=["1", "2"], t=["2", "x"]),
    ),
    Case(
        "a time that is no date",
        r"n\.csv, row 4, column when: 'soon' is no date",
        roles={"time": "when"},
        nodes=b"id,when\na,2017-01-02\nb,2017-02-03\nc,soon\n",
    ),
    Case(
        "labels that are all different",
        r"column label: .*different values.*--drop",
        nodes=lambda: b"id,label\n" + b"".join(b"%d,k%d\n" % (n, n) for n in range(10_050)),
        roles={"label": "label"},
        edges=b"s,t\n1,2\n",
    ),
    Case("a kind that is none", r"kind of size must be one of|numeric", roles={"kinds": {"size": "number"}}),
    Case("ids in another column", r"use --id key", nodes=b"id,key2\na,1\nb,2\n", edges=b"s,t\n1,2\n"),
    Case("a name that climbs out", r"name must consist of letters", given={"name": "../up"}),
    Case("like a folder that is none", r"--like nowhere: there is no graph\.toml", given={"like": "nowhere"}),
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(path: str, content: Content) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content if isinstance(content, bytes) else content())


def build(case: Case) -> None:
    given = {"nodes": [case.nodes_name], "edges": [case.edges_name], **case.given}
    put(case.nodes_name, case.nodes)
    put(case.edges_name, case.edges)
    tables = open_tables(given.pop("nodes"), given.pop("edges"))
    build_graph(tables, "out", Wishes(roles=Roles(**case.roles), **given))


def check(error: BaseException) -> None:
    said = str(error)
    assert "\n" not in said, said
    assert len(said) < 700, said
    assert "Traceback" not in said
    left = {path.name for path in Path().iterdir()}
    assert "out" not in left
    assert not [name for name in left if name.endswith(".part")], left


def test_there_are_at_least_60_kinds() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_broken_tables(case: Case, home: Path) -> None:
    with pytest.raises(MarioError, match=case.match) as caught:
        build(case)
    check(caught.value)


def zip_with(name: str, content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, content)
    return sink.getvalue()


def matrix_of_lies() -> bytes:
    sink = io.BytesIO()
    np.savez(
        sink, data=np.ones(2), indices=np.array([0, 10**9]), indptr=np.array([0, 1, 2]), shape=[2, 2], format=b"csr"
    )
    return sink.getvalue()


def npz(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def rectangle() -> bytes:
    sink = io.BytesIO()
    sp.save_npz(sink, sp.csr_array(np.ones((2, 3))))
    return sink.getvalue()


CRASH = base64.b64decode(  # a .mat file that crashes scipy
    "TUFUTEFCIDUuMCBNQVQtZmlsZSBQbGF0Zm9ybTogcG9zaXgsIENyZWF0ZWQgb246IEJyaSBObnYgMjAgMDE6MTE6MjggMjAyNgAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABSU0OAAAAiAAAAAYAAAAIAAAABQAAAAQAAAAFAAAACAAAAAMA"
    "AAADAAAAAQAAAAcAAABOZXQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAd29yawAFAAAAEAAAAAEAAAAAAAAAAgAAAAEA"
    "AAAFAAAAEAAAAAAAAAABAAAAAwAAAAQAAAAJAAAAIAAAAAAAAAAAAPA/AAAAAAAA8D8AAAAAAAAAQAAAAAAAAABADgAAAHAAAAAGAAAACAAA"
    "AAYAAAAAAAAABQAAAAgAAAADAAAAAgAAAAEAAAAKAAAAQXR0cmlidXRlcwAAAAAAAAkAAAAwAAAAAAAAAAAA8D8AAAAAAADwPwAAAAAAAPA/"
    "AAAAAAAA8D8AAAAAAADwPwAAAAAAAPA/DgAAAFAAAAAGAAAACAAAAA4AAAAAAAAABQAAAAgAAAADAAAAAQAAAAEAAAAFAAAATGFiZWwAAAAM"
    "AAAAGAAAAAEAAAAAAAAAAgAAAAAAAAABAAAAAAAAAA=="
)
WHOLE = {
    "a mat that crashes scipy": ("g.mat", CRASH, "is not a sound mat file"),
    "a pickle posing as npz": ("g.npz", pickle.dumps([1]), "is not an .npz file; a pickle of that name is not read"),
    "an empty npz": ("g.npz", b"", "g.npz is empty"),
    "an npz without a graph": ("g.npz", npz(y=[1]), "has no matrix of edges: it has y"),
    "an npz of objects": ("g.npz", npz(adj=np.array([{}], object)), "has no matrix of edges"),
    "an npz of lies": ("g.npz", matrix_of_lies(), "is not a sound sparse matrix"),
    "an npz that is not square": ("g.npz", rectangle(), r"has shape \(2, 3\)"),
    "an npz bomb": ("g.npz", zip_with("adj.npy", bytes(2**27)), "grows to more than 200 times"),
    "a header of lies": (
        "g.npz",
        zip_with(
            "adj.npy",
            b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99999999, 99999999), }".ljust(
                128
            ),
        ),
        "g.npz",
    ),
    "a mat that is none": ("g.mat", b"hello" * 100, "g.mat is not a sound mat file"),
    "a mat of version 7.3": ("g.mat", b"MATLAB 7.3 MAT-file".ljust(600, b"\0"), "version 7.3, which is not read"),
    "a pickle posing as pt": ("g.pt", pickle.dumps([1]), "older ones are pickles"),
    "GraphML that is cut": ("g.graphml", b"<graphml><graph><node id='a'/>", "is not a sound graphml file"),
    "GML that is none": ("g.gml", b"no [ graph", "is not a sound gml file"),
    "GEXF without a graph": ("g.gexf", b"<gexf/>", "is not a sound gexf file"),
    "a billion laughs": (
        "g.graphml",
        b'<!DOCTYPE x [<!ENTITY a "ha">'
        + b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 30) for n in range(12))
        + b"]><graphml>&m;</graphml>",
        "is not a sound graphml file",
    ),
}


def build_whole(name: str) -> None:
    tables, roles = open_graph(name, Roles())
    build_graph(tables, "out", Wishes(roles=roles))


@pytest.mark.parametrize("kind", WHOLE)
def test_broken_graphs(kind: str, home: Path) -> None:
    name, content, match = WHOLE[kind]
    put(name, content)
    with pytest.raises(MarioError, match=match) as caught:
        build_whole(name)
    check(caught.value)


CARDS = {
    "not TOML": ("name = ", "not valid TOML"),
    "a count that is a text": ('nodes = "many"', r"line \d+: nodes must be a whole number"),
    "a file outside": ('file = "../../etc"', "file must be in the folder"),
    "ids outside": ('ids = "/etc/passwd"', "ids must be in the folder"),
    "an unknown key": ("colour = 3", "colour"),
    "a role that is none": ('columns.id.role = "king"', "role of columns.id"),
    "more labels than nodes": ("labeled = 99", "labeled = 99, but there are 3"),
    "other counts": ("nodes = 4", "has 3 ids, but out has 4 nodes"),
}


@pytest.mark.parametrize("kind", CARDS)
def test_a_card_edited_by_hand_into_nonsense(kind: str, home: Path) -> None:
    build(Case("", ""))
    line, match = CARDS[kind]
    path = Path("out/graph.toml")
    key = line.split(" =", maxsplit=1)[0]
    head, mark, rest = path.read_text().partition("\n[")
    text = "\n".join(old for old in head.split("\n") if not old.startswith(f"{key} =")) + mark + rest
    text = text.replace('role = "id"', 'role = "king"') if key.startswith("columns") else f"{line}\n{text}"
    path.write_text(text)
    with pytest.raises(MarioError, match=match):
        read_graph("out")


ODD = {
    "a byte order mark": (b"\xef\xbb\xbf" + NODES, EDGES),
    "UTF-16": (NODES.decode().encode("utf-16"), EDGES.decode().encode("utf-16")),
    "Windows ends of lines": (NODES.replace(b"\n", b"\r\n"), EDGES.replace(b"\n", b"\r\n")),
    "old Mac ends of lines": (NODES.replace(b"\n", b"\r"), EDGES),
    "no end of the last line": (NODES[:-1], EDGES[:-1]),
    "semicolons": (NODES.replace(b",", b";"), EDGES.replace(b",", b"\t")),
    "bars and spaces": (NODES.replace(b",", b"|"), EDGES.replace(b",", b" ")),
    "blank lines between": (NODES.replace(b"\n", b"\n\n"), EDGES),
    "comments above": (b"# ids\n% and more\n" + NODES, EDGES),
    "quotes": (b'"id","size","label"\n"a","1","x"\n"b","2","y"\n"c",3,x\n', EDGES),
    "spaces in the header": (NODES.replace(b"size", b" size "), EDGES),
}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_odd_and_sound_is_read(kind: str, home: Path) -> None:
    nodes, edges = ODD[kind]
    build(Case("", "", nodes=nodes, edges=edges))
    data = read_graph("out")
    assert data.ids == ["a", "b", "c"]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.y.tolist() == [0, 1, 0]
    assert data.x[0, 0] < data.x[1, 0] < data.x[2, 0]


def test_values_that_are_missing_infinite_or_mixed_are_read_and_counted(home: Path) -> None:
    rows = b"".join(b"n%d,%d,c%d,2017-01-%02d\n" % (n, n, n % 3, n % 28 + 1) for n in range(60))
    odd = b'p,inf,,\nq,,"c\n1",soon\nr,abc,c2,2017-03-04\n'
    put("n.csv", b"id,size,color,seen\n" + rows + odd)
    put("e.csv", b"s,t\nn1,p\nq,r\n")
    built = build_graph(open_tables(["n.csv"], ["e.csv"]), "out")
    said = " ".join(built.lines)
    assert np.isfinite(read_graph("out").x.to_dense().numpy()).all()
    assert "size" in said
    assert "abc" in said


@pytest.mark.parametrize("columns", [1_000])  # 10,000 take 12 s
def test_many_columns(columns: int, home: Path) -> None:
    build(Case("", "", nodes=many_columns(columns), edges=b"s,t\na,b\n"))
    assert read_graph("out").num_nodes == 2


@pytest.mark.parametrize("size", [300, 3_000, 200_000])
def test_a_full_disk_leaves_nothing(home: Path, size: int) -> None:
    rows = b"".join(b"%d,%d,c%d\n" % (n, n, n % 7) for n in range(20_000))
    put("n.csv", b"id,v,c\n" + rows)
    put("e.csv", b"s,t\n" + b"".join(b"%d,%d\n" % (n, n + 1) for n in range(19_999)))
    tables = open_tables(["n.csv"], ["e.csv"])
    import mario.graphs.mapped  # noqa: F401  # torch is imported without a limit

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with pytest.raises(RunFailedError, match=f"{os.strerror(errno.EFBIG)}.*|cannot write") as caught:
            build_graph(tables, "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    check(caught.value)
