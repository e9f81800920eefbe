"""Whole graphs in files of others, and from Python."""

import pickle
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import mario
from mario.graphs.card import read_card
from mario.graphs.tables.build import Wishes, build_graph
from mario.graphs.tables.columns import Roles
from mario.graphs.tables.frames import read_graph
from mario.graphs.tables.opening import open_graph

PATH = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], np.float64))
X = np.array([[1, 0], [0, 2], [3, 4]], np.float32)
EDGES = [[0, 1, 1, 2], [1, 0, 2, 1]]


def built(path: Path, out: Path, **roles: Any) -> Data:
    tables, found = open_graph(path, Roles(**roles))
    build_graph(tables, out, Wishes(roles=found))
    return read_graph(out)


def test_npz_of_scipy(tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "a.npz", PATH)
    data = built(tmp_path / "a.npz", tmp_path / "g")
    assert data.edge_index.tolist() == EDGES
    assert data.ids.tolist() == [0, 1, 2]
    assert data.num_features == 5
    assert read_card(tmp_path / "g").sources[0].file.endswith("a.npz")


@pytest.mark.parametrize("sparse", [False, True])
def test_npz_with_features_and_labels(tmp_path: Path, sparse: bool) -> None:
    parts = {f"adj_{key}": getattr(PATH, key) for key in ("data", "indices", "indptr", "shape")}
    x = sp.csr_array(X)
    attr = {f"attr_{key}": getattr(x, key) for key in ("data", "indices", "indptr", "shape")} if sparse else {"attr": X}
    np.savez(tmp_path / "a.npz", labels=[5, 7, 5], **attr, **parts)
    data = built(tmp_path / "a.npz", tmp_path / "g")
    assert (data.x.to_dense() if sparse else data.x).tolist() == X.tolist()
    assert data.y.tolist() == [0, 1, 0]
    assert data.class_names == ["5", "7"]
    assert data.edge_index.tolist() == EDGES


def test_mat(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"Network": sp.csc_array(PATH), "Attributes": X, "Label": [[1], [2], [1]]})
    data = built(tmp_path / "a.mat", tmp_path / "g")
    assert data.edge_index.tolist() == EDGES
    assert data.x.tolist() == X.tolist()
    assert data.y.tolist() == [0, 1, 0]


@pytest.mark.parametrize("form", ["graphml", "gml", "gexf"])
def test_files_of_networkx(tmp_path: Path, form: str) -> None:
    graph = nx.DiGraph()
    graph.add_node("a", size=1.5, kind="x")
    graph.add_node("b", size=2.5, kind="y")
    graph.add_node("c", size=0.5, kind="x")
    graph.add_edge("a", "b", weight=2.0)
    graph.add_edge("c", "b", weight=3.0)
    getattr(nx, f"write_{form}")(graph, tmp_path / f"a.{form}")
    data = built(tmp_path / f"a.{form}", tmp_path / "g", label="kind")
    assert data.ids == ["a", "b", "c"]
    assert data.edge_index.tolist() == [[0, 2], [1, 1]]
    assert data.edge_weight.tolist() == [2, 3]
    assert data.y.tolist() == [0, 1, 0]


@pytest.mark.parametrize("as_dict", [False, True])
def test_a_saved_data(tmp_path: Path, as_dict: bool) -> None:
    data = Data(x=torch.from_numpy(X), edge_index=torch.tensor(EDGES), y=torch.tensor([1, -1, 0]))
    torch.save(data.to_dict() if as_dict else data, tmp_path / "a.pt")
    found = built(tmp_path / "a.pt", tmp_path / "g")
    assert found.x.tolist() == X.tolist()
    assert found.y.tolist() == [1, -1, 0]
    assert found.edge_index.tolist() == EDGES


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("code of the file ran",))


def test_nothing_is_unpickled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.npz", "a.pt", "a.mat", "a.gml"):
        (tmp_path / name).write_bytes(pickle.dumps(Evil()))
    torch.save(Evil(), tmp_path / "b.pt")
    np.savez(tmp_path / "b.npz", adj=np.array([Evil()], dtype=object))
    for name in ("a.npz", "a.pt", "a.mat", "a.gml", "b.pt", "b.npz"):
        with pytest.raises(mario.MarioError, match=name):
            built(tmp_path / name, tmp_path / "g")
    assert "code of the file ran" not in capsys.readouterr().out
    assert not (tmp_path / "g").exists()


def test_from_dataframe_in_a_folder_and_like_it(tmp_path: Path) -> None:
    nodes = pd.DataFrame(
        {"v": [1.0, 2.0, np.nan], "c": pd.Categorical(["x", "y", "x"])}, index=pd.Index([7, 5, 9], name="id")
    )
    edges = pd.DataFrame({"source": [7, 9], "target": [5, 5], "weight": [1.0, 0.5]})
    data = mario.from_dataframe(nodes, edges, folder=tmp_path / "g", kinds={"c": "categorical"})
    assert data.ids.tolist() == [7, 5, 9]
    assert data.edge_weight.tolist() == [1, 1, 0.5, 0.5]
    again = mario.from_dataframe(nodes.iloc[::-1], edges, like=tmp_path / "g")
    assert torch.equal(again.x, data.x.flip(0))


def test_from_others() -> None:
    data = mario.from_pyg(
        Data(x=torch.from_numpy(X), edge_index=torch.tensor([[0], [1]]), year=torch.tensor([3, 4, 3])), domain="year"
    )
    assert data.edge_index.tolist() == [[0], [1]]
    assert data.year.tolist() == [0, 1, 0]
    graph = mario.from_networkx(nx.path_graph(3))
    assert graph.edge_index.tolist() == EDGES
    assert mario.from_scipy(PATH, sp.csr_array(X)).x.to_dense().tolist() == X.tolist()
    for wrong in (sp.csr_array((2, 3)), sp.csr_array([[0, np.nan], [0, 0]]), "no matrix"):
        with pytest.raises(mario.MarioError):
            mario.from_scipy(wrong)
    with pytest.raises(mario.MarioError, match="2 ids, but 3 nodes"):
        mario.from_scipy(PATH, ids=[1, 2])
