"""From tables to a graph folder."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from mario.errors import MarioError
from mario.graphs import load_mapped
from mario.graphs.card import read_card
from mario.graphs.tables.build import Built, Wishes, build_graph
from mario.graphs.tables.columns import Roles
from mario.graphs.tables.ids import open_ids, read_ids
from mario.graphs.tables.opening import open_tables

NODES = "id,color,size,label,region\na,red,1.5,x,north\nb,blue,2,y,south\nc,,3,,north\n"
EDGES = "src,dst\na,b\nb,a\nc,a\n"

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    return put


def made(nodes: list[str], edges: list[str], out: Path, **wishes: object) -> Built:
    by_file = bool(wishes.pop("by_file", False))
    return build_graph(open_tables(nodes, edges, graphs_by_file=by_file), out, Wishes(**wishes))


def test_a_small_graph(write: Write, tmp_path: Path) -> None:
    built = made([write("n.csv", NODES)], [write("e.csv", EDGES)], tmp_path / "g")
    data = load_mapped(tmp_path / "g" / "graph")
    assert data.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert data.y.tolist() == [0, 1, -1]
    assert data.class_names == ["x", "y"]
    assert data.region.tolist() == [0, 1, 0]
    assert data.x.shape == (3, 4)
    assert read_ids(tmp_path / "g").tolist() == ["a", "b", "c"]
    card = read_card(tmp_path / "g")
    assert card == built.card
    assert (card.nodes, card.edges, card.features, card.classes, card.labeled) == (3, 4, 4, 2, 2)
    assert card.domain_columns() == {"region": ("north", "south")}
    assert [source.rows for source in card.sources] == [3, 3]
    assert built.edges.repeated == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "g", "n.csv"]


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (["b", "a", "é"], pa.string()),
        (["7", "-3", "12000000000"], pa.int64()),
        (["007", "7", "8"], pa.string()),
        (["18446744073709551615", "1", "2"], pa.uint64()),
        (["6f9619ff-8b86-d011-b42d-00c04fc964ff", "x", "NA"], pa.string()),
    ],
)
def test_ids_of_a_csv_come_back_unchanged(write: Write, tmp_path: Path, ids: list[str], kind: pa.DataType) -> None:
    rows = "".join(f"{one},{number}\n" for number, one in enumerate(ids))
    made([write("n.csv", f"id,v\n{rows}")], [write("e.csv", f"s,t\n{ids[0]},{ids[2]}\n")], tmp_path / "g")
    found = open_ids(tmp_path / "g")
    assert found.type == kind
    assert [str(one) for one in found.to_pylist()] == ids
    assert load_mapped(tmp_path / "g" / "graph").edge_index.tolist() == [[0, 2], [2, 0]]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([3, 1, 2], pa.int8()),
        pa.array([2**64 - 1, 0, 7], pa.uint64()),
        pa.array(["b", "a", ""], pa.large_string()),
        pa.array([b"\x00\xff" * 8, b"\x01" * 16, b"\x02" * 16], pa.binary(16)),
        pa.array(["b", "a", "c"]).dictionary_encode(),
        pa.array([1, 2, 3], pa.timestamp("us")),
        pa.array([1.0, 2.0, 1e18]),
    ],
)
def test_ids_of_a_parquet_file_come_back_unchanged(tmp_path: Path, ids: pa.Array) -> None:
    pq.write_table(pa.table({"id": ids, "v": [1.0, 2.0, 3.0]}), tmp_path / "n.parquet")
    pq.write_table(pa.table({"s": ids.take(pa.array([0])), "t": ids.take(pa.array([2]))}), tmp_path / "e.parquet")
    made([str(tmp_path / "n.parquet")], [str(tmp_path / "e.parquet")], tmp_path / "g")
    plain = ids.dictionary_decode() if pa.types.is_dictionary(ids.type) else ids
    found = open_ids(tmp_path / "g")
    assert found.to_pylist() == plain.to_pylist()
    assert found.type == plain.type
    assert load_mapped(tmp_path / "g" / "graph").edge_index.tolist() == [[0, 2], [2, 0]]


def test_weights_are_summed_and_the_same_in_both_directions(write: Write, tmp_path: Path) -> None:
    nodes = [write("n.csv", NODES)]
    edges = [write("e.csv", "src,dst,weight\na,b,1\na,b,2\nb,a,5\nc,a,3\nc,c,0.5\n")]
    made(nodes, edges, tmp_path / "g")
    data = load_mapped(tmp_path / "g" / "graph")
    assert data.edge_index.tolist() == [[0, 0, 1, 2, 2], [1, 2, 0, 0, 2]]
    assert data.edge_weight.tolist() == [5, 3, 5, 3, 0.5]
    made(nodes, edges, tmp_path / "d", directed=True)
    data = load_mapped(tmp_path / "d" / "graph")
    assert data.edge_index.tolist() == [[0, 1, 2, 2], [1, 0, 0, 2]]
    assert data.edge_weight.tolist() == [3, 5, 3, 0.5]


def test_edges_alone(write: Write, tmp_path: Path) -> None:
    built = made([], [write("e.txt", "# from a site\n10 30\n30 20\n")], tmp_path / "g")
    assert read_ids(tmp_path / "g").tolist() == [10, 30, 20]
    data = load_mapped(tmp_path / "g" / "graph")
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    torch.testing.assert_close(data.x[1], torch.tensor([np.log(3), np.log(2), np.log(2), np.log(2), 0]).float())
    assert "structure" in built.lines[0]


def test_graphs_by_name_of_file(write: Write, tmp_path: Path) -> None:
    for name, value in (("de", 1), ("fr", 2)):
        write(f"{name}/nodes_{name}.csv", f"id,v\n0,{value}\n1,{value + 1}\n")
        write(f"{name}/edges_{name}.csv", "s,t\n0,1\n")
    made([str(tmp_path / "*" / "nodes_*.csv")], [str(tmp_path / "*" / "edges_*.csv")], tmp_path / "g", by_file=True)
    data = load_mapped(tmp_path / "g" / "graph")
    assert data.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert data.graph.tolist() == [0, 0, 1, 1]
    assert read_ids(tmp_path / "g").tolist() == ["de/0", "de/1", "fr/0", "fr/1"]
    assert read_card(tmp_path / "g").domain_columns() == {"graph": ("de", "fr")}


def test_the_same_plan_for_next_month(write: Write, tmp_path: Path) -> None:
    made([write("n.csv", NODES)], [write("e.csv", EDGES)], tmp_path / "g")
    after = write("next.csv", "region,more,size,id,color,label\neast,1,3,q,green,z\nsouth,2,1.5,r,red,y\n")
    built = made([after], [write("f.csv", "src,dst\nq,r\n")], tmp_path / "h", like=tmp_path / "g")
    data = load_mapped(tmp_path / "h" / "graph")
    assert data.x[1].tolist()[:3] == load_mapped(tmp_path / "g" / "graph").x[0].tolist()[:3]
    assert data.y.tolist() == [-1, 1]
    assert data.region.tolist() == [2, 1]
    assert built.card.domain_columns() == {"region": ("north", "south", "east")}
    assert built.card.like
    assert any("green" in line for line in built.lines)
    short = write("short.csv", "id,color,label\nq,green,z\n")
    with pytest.raises(MarioError, match="no column 'size', which g has as feature"):
        made([short], [write("f.csv", "src,dst\nq,q\n")], tmp_path / "i", like=tmp_path / "g")


def test_dangling_edges_name_the_row_or_are_counted(write: Write, tmp_path: Path) -> None:
    nodes, edges = [write("n.csv", NODES)], [write("e.csv", "s,t\na,b\na,zz\n")]
    with pytest.raises(MarioError, match=r"e\.csv, row 3, column t: no node has the id 'zz'.*--drop-dangling"):
        made(nodes, edges, tmp_path / "g")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "n.csv"]
    assert made(nodes, edges, tmp_path / "g", drop_dangling=True).edges.dangling == 1


def test_another_column_has_the_ids_of_the_edges(write: Write, tmp_path: Path) -> None:
    nodes = [write("n.csv", "id,key2,v\na,1,1\nb,2,2\n")]
    with pytest.raises(MarioError, match="use --id key2"):
        made(nodes, [write("e.csv", "s,t\n1,2\n")], tmp_path / "g")
    built = made(nodes, [write("e.csv", "s,t\n1,2\n")], tmp_path / "g", roles=Roles(id="key2", drop=("id",)))
    assert built.card.nodes == 2


def test_an_interrupted_build_leaves_nothing(write: Write, tmp_path: Path) -> None:
    tables = open_tables([write("n.csv", NODES)], [write("e.csv", EDGES)])

    for stage in ("nodes", "edges", "sorting", "features"):

        def stop(progress: object, stage: str = stage) -> None:
            if progress.stage == stage:  # type: ignore[attr-defined]
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build_graph(tables, tmp_path / "g", watch=stop)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "n.csv"]
