import pytest
import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs import check_graph, load_dataset, training_graph


def pair(**changes: object) -> Data:
    parts = {
        "x": torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        "edge_index": torch.tensor([[0, 1], [1, 2]]),
        "y": torch.tensor([0, 1, 0]),
        "train_mask": torch.tensor([True, False, False]),
        "ood_test_mask": torch.tensor([False, True, False]),
        "num_classes": 2,
    }
    return Data(**(parts | changes))


def test_sound_graphs_pass() -> None:
    check_graph(pair())
    check_graph(pair(x=torch.eye(3).to_sparse_csr()))
    check_graph(pair(y=torch.tensor([0, 1, -1])))
    check_graph(Data(x=torch.eye(2), edge_index=torch.zeros(2, 0).long()))
    for setting in ("transductive", "inductive"):
        check_graph(training_graph(load_dataset("good-cbas", setting=setting)))


def test_large_finite_features_whose_sum_overflows_pass() -> None:
    check_graph(pair(x=torch.full((3, 2), 3e38)))


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.tensor([[NAN, 0], [0, 1.0], [1, 1]])}, "1 NaN or infinite"),
        ({"x": torch.tensor([[INF, 0], [-INF, 1.0], [1, 1]])}, "2 NaN or infinite"),
        ({"x": torch.tensor([[INF, 0], [0, 1.0], [1, 1]]).to_sparse_csr()}, "1 NaN or infinite"),
        ({"x": torch.ones(3)}, "matrix"),
        ({"x": None}, "matrix"),
        ({"x": torch.ones(3, 2).long()}, "float32"),
        ({"x": torch.ones(0, 2)}, "a node and a feature"),
        ({"x": torch.ones(3, 0)}, "a node and a feature"),
        ({"edge_index": torch.tensor([[0], [3]])}, r"names node 3, but the 3 nodes are numbered 0\.\.2"),
        ({"edge_index": torch.tensor([[0], [-1]])}, "names node -1"),
        ({"edge_index": torch.tensor([[0], [1]]).int()}, "must be int64"),
        ({"edge_index": torch.tensor([0, 1])}, r"\[2, edges\]"),
        ({"edge_index": torch.zeros(3, 2).long()}, r"\[2, edges\]"),
        ({"y": torch.tensor([0, 1])}, "data.y must hold one int64"),
        ({"y": torch.tensor([[0], [1], [0]])}, "data.y must hold one int64"),
        ({"y": torch.tensor([0.0, 1, 0])}, "data.y must hold one int64"),
        ({"y": torch.tensor([0, 2, 0])}, r"0\.\.1 .*got 2"),
        ({"y": torch.tensor([0, 1, -2])}, "got -2"),
        ({"y": torch.tensor([-1, 1, 0])}, "no label for 1 nodes of train_mask"),
        ({"train_mask": torch.tensor([True, False])}, "data.train_mask must be a bool"),
        ({"train_mask": torch.tensor([1, 0, 0])}, "data.train_mask must be a bool"),
        ({"train_mask": torch.zeros(3).bool()}, "data.train_mask is empty"),
        ({"ood_test_mask": torch.tensor([True, True, False])}, "train_mask and data.ood_test_mask share 1 nodes"),
        ({"env_id": torch.tensor([0, 0])}, "data.env_id"),
        ({"domain_id": torch.tensor([0.0, 0, 1])}, "data.domain_id"),
    ],
)
def test_each_fault_is_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        check_graph(pair(**changes))


def test_something_else_than_a_graph() -> None:
    with pytest.raises(MarioError, match="got dict"):
        check_graph({"x": torch.eye(2)})  # type: ignore[arg-type]
