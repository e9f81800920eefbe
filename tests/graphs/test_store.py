import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs import load_dataset, load_graph, save_graph


def test_a_shift_graph_comes_back_equal(tmp_path: Path) -> None:
    data = load_dataset("good-cbas", shift="covariate")
    save_graph(data, tmp_path / "graph.safetensors")
    back = load_graph(tmp_path / "graph.safetensors")
    assert list(back.to_dict()) == list(data.to_dict())
    for key, value in data.to_dict().items():
        same = torch.equal(back[key], value) if isinstance(value, torch.Tensor) else back[key] == value
        assert same, key
    assert [path.name for path in tmp_path.iterdir()] == ["graph.safetensors"]


def test_sparse_features_come_back_sparse(tmp_path: Path) -> None:
    x = torch.tensor([[0.0, 2], [0, 0], [3, 4]])
    save_graph(Data(x=x.to_sparse_csr(), y=torch.tensor([0, 1, 2])), tmp_path / "g")
    back = load_graph(tmp_path / "g")
    assert back.x.layout == torch.sparse_csr
    assert torch.equal(back.x.to_dense(), x)


def test_edge_weights_and_attributes_come_back(tmp_path: Path) -> None:
    data = Data(
        x=torch.eye(2),
        edge_index=torch.tensor([[1, 0], [0, 1]]),
        edge_weight=torch.tensor([0.5, 2.0]),
        edge_attr=torch.tensor([[1.0, -1.0], [0.0, 3.0]], dtype=torch.float64),
    )
    save_graph(data, tmp_path / "g")
    back = load_graph(tmp_path / "g")
    for key in ("edge_index", "edge_weight", "edge_attr"):
        assert torch.equal(back[key], data[key])
        assert back[key].dtype == data[key].dtype


def test_tensors_that_share_memory_or_are_views(tmp_path: Path) -> None:
    base = torch.arange(12.0).view(4, 3)
    data = Data(x=base[1:3], same=base, turned=base.t())
    save_graph(data, tmp_path / "g")
    back = load_graph(tmp_path / "g")
    assert torch.equal(back.x, base[1:3])
    assert torch.equal(back.same, base)
    assert torch.equal(back.turned, base.t())


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "g"
    save_graph(Data(x=torch.ones(1, 1)), path)
    with pytest.raises(MarioError, match="JSON"):
        save_graph(Data(x=torch.zeros(1, 1), odd=object()), path)
    assert load_graph(path).x.item() == 1
    with pytest.raises(MarioError, match="cannot write"):
        save_graph(Data(x=torch.zeros(1, 1)), path / "inside a file")


def test_damaged_files_are_one_error(tmp_path: Path) -> None:
    path = tmp_path / "g"
    save_graph(load_dataset("good-cbas"), path)
    whole = path.read_bytes()
    for damaged in (b"", b"no graph", whole[: len(whole) // 2], whole[:40], b"\xff" * 64):
        path.write_bytes(damaged)
        with pytest.raises(MarioError, match="damaged"):
            load_graph(path)
    with pytest.raises(MarioError, match="no file"):
        load_graph(tmp_path / "absent")


def test_other_safetensors_files_and_false_indices_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "g"
    save_file({"x": torch.ones(1)}, path)
    with pytest.raises(MarioError, match="not a graph"):
        load_graph(path)
    parts = {"x.crow": torch.tensor([0, 1]), "x.col": torch.tensor([7]), "x.values": torch.ones(1)}
    about = {"format": 1, "keys": ["x"], "csr": {"x": [1, 2]}, "plain": {}}
    save_file(parts, path, metadata={"mario-graph": json.dumps(about)})
    with pytest.raises(MarioError, match="damaged"):
        load_graph(path)
    save_file({}, path, metadata={"mario-graph": json.dumps(about | {"format": 2})})
    with pytest.raises(MarioError, match="format 2"):
        load_graph(path)
