import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

import mario
from mario.datasets import load_dataset, save_dataset
from mario.errors import MarioError
from mario.evaluation import evaluate_many, invariance
from mario.graphs import check_graph, save_graph, save_mapped, split_graph, training_graph
from mario.graphs.samplers import Clusters, FullGraph, Graphs, Neighbors, RandomWalk
from mario.graphs.validation import check_structure
from mario.views import (
    AdversarialFeatures,
    Chain,
    Diffusion,
    DropEdges,
    DropNodes,
    MaskFeatures,
    MaskNodes,
    OneOf,
    PerturbEdges,
    RandomWalkSubgraph,
    ShuffleFeatures,
)


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
        check_graph(pair(visible_mask=torch.tensor([True, False, True]), setting=setting))
    check_graph(pair(group_id=torch.tensor([-1, 0, -1]), groups=["T1", "T2"]))
    check_graph(pair(edge_weight=torch.tensor([0.0, 2.5]), edge_attr=torch.tensor([[-1.0], [3.0]])))
    for setting in ("transductive", "inductive"):
        check_graph(training_graph(load_dataset("good-cbas", setting=setting)))


def test_large_finite_features_whose_sum_overflows_pass() -> None:
    check_graph(pair(x=torch.full((3, 2), 3e38)))


NAN, INF = float("nan"), float("inf")


def seen(*nodes: bool) -> dict[str, object]:
    return {"visible_mask": torch.tensor(nodes), "setting": "inductive"}


def sparse(crow: list[int], col: list[int], values: list[float], dtype: torch.dtype = torch.int64) -> Tensor:
    """A sparse CSR matrix of shape [3, 4] with any indices."""
    parts = torch.tensor(crow, dtype=dtype), torch.tensor(col, dtype=dtype), torch.tensor(values)
    return torch.sparse_csr_tensor(*parts, size=(3, 4), check_invariants=False)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_sound_sparse_features_pass(dtype: torch.dtype) -> None:
    for x in (sparse([0, 2, 2, 3], [0, 3, 1], [1.0, 2.0, 0.0], dtype), sparse([0, 0, 0, 0], [], [], dtype)):
        check_graph(pair(x=x))


BAD_SPARSE = {
    "a column at the width": (sparse([0, 1, 2, 2], [0, 4], [1.0, 1.0]), "column 4, but its 4 columns are 0..3"),
    "a huge column": (sparse([0, 1, 2, 2], [0, 2**40], [1.0, 1.0]), "column 1099511627776"),
    "a negative column": (sparse([0, 1, 2, 2], [-1, 0], [1.0, 1.0]), "column -1"),
    "row pointers that fall": (sparse([0, 2, 1, 2], [0, 1], [1.0, 1.0]), "row pointers of data.x must ascend"),
    "a negative row pointer": (sparse([0, -1, 2, 2], [0, 1], [1.0, 1.0]), "row pointers of data.x must ascend"),
    "a first row pointer above 0": (sparse([1, 1, 2, 2], [0, 1], [1.0, 1.0]), "row pointers of data.x must ascend"),
    "a huge last row pointer": (sparse([0, 1, 2, 2**50], [0, 1], [1.0, 1.0]), "row pointers of data.x must ascend"),
    "a last row pointer too small": (sparse([0, 1, 1, 1], [0, 1], [1.0, 1.0]), "row pointers of data.x must ascend"),
    "too few row pointers": (sparse([0, 2], [0, 1], [1.0, 1.0]), "3 rows: it has 2 row pointers"),
    "fewer columns than values": (sparse([0, 1, 2, 2], [0], [1.0, 1.0]), "1 columns and 2 values"),
    "columns out of order": (sparse([0, 2, 2, 2], [1, 0], [1.0, 1.0]), "do not ascend, or one is there twice"),
    "a column twice": (sparse([0, 1, 3, 3], [1, 2, 2], [1.0, 1.0, 1.0]), "do not ascend, or one is there twice"),
    "indices of two types": (
        torch.sparse_csr_tensor(
            torch.tensor([0, 1, 1, 1]).int(), torch.tensor([0]), torch.ones(1), (3, 4), check_invariants=False
        ),
        "rows torch.int32 and columns torch.int64",
    ),
    "no numbers": (sparse([0, 1, 1, 1], [0], [NAN]), "1 NaN or infinite"),
}


@pytest.mark.parametrize("fault", BAD_SPARSE)
def test_each_fault_of_sparse_features_is_named(fault: str) -> None:
    x, message = BAD_SPARSE[fault]
    with pytest.raises(MarioError, match=message):
        check_graph(pair(x=x))


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
        ({"edge_weight": torch.tensor([1.0, NAN])}, "data.edge_weight holds 1 NaN or infinite"),
        ({"edge_weight": torch.tensor([1.0, -0.5])}, "data.edge_weight holds 1 negative"),
        ({"edge_weight": torch.tensor([1.0])}, "data.edge_weight has 1 rows, but data.edge_index has 2 edges"),
        ({"edge_weight": torch.ones(2, 1)}, r"data.edge_weight must be a tensor of shape \[edges\], .*\(2, 1\)"),
        ({"edge_weight": [1.0, 1.0]}, "data.edge_weight must be a tensor .* got list"),
        ({"edge_weight": torch.ones(2).long()}, r"must be float32 .* use data.edge_weight.float\(\)"),
        ({"edge_attr": torch.ones(2)}, r"data.edge_attr must be a tensor of shape \[edges, attributes\]"),
        ({"edge_attr": torch.ones(2, 3).long()}, r"data.edge_attr must be float32 .* use data.edge_attr.float\(\)"),
        ({"edge_attr": torch.tensor([[INF, NAN], [0, 0]])}, "data.edge_attr holds 2 NaN or infinite"),
        ({"edge_attr": torch.ones(3, 3)}, "data.edge_attr has 3 rows, but data.edge_index has 2 edges"),
        ({"y": torch.tensor([0, 1])}, r"data.y must hold one int64.*\(2,\); del data.y if labels are not needed"),
        ({"y": torch.tensor([[0], [1], [0]])}, r"data.y must hold one int64.*use data.y.view\(-1\).long\(\)"),
        ({"y": torch.tensor([0.0, 1, 0])}, "data.y must hold one int64"),
        ({"y": torch.tensor([0, 2, 0])}, r"0\.\.1 .*got 2"),
        ({"y": torch.tensor([0, 1, -2])}, "got -2"),
        ({"train_mask": torch.tensor([True, False])}, "data.train_mask must be a bool"),
        ({"train_mask": torch.tensor([1, 0, 0])}, "data.train_mask must be a bool"),
        ({"train_mask": torch.ones(3, 10).bool()}, r"choose one of several splits, such as data.train_mask\[:, 0\]"),
        ({"train_mask": torch.zeros(3).bool()}, "data.train_mask is empty"),
        ({"ood_test_mask": torch.tensor([True, True, False])}, "train_mask and data.ood_test_mask share 1 nodes"),
        ({"env_id": torch.tensor([0, 0])}, "data.env_id"),
        ({"domain_id": torch.tensor([0.0, 0, 1])}, "data.domain_id"),
        ({"visible_mask": torch.tensor([1, 0, 1])}, "data.visible_mask must be a bool"),
        (seen(False, False, True), "visible_mask leaves out nodes of train_mask"),
        (seen(True, True, True), "visible_mask contains nodes of ood_test_mask"),
        ({"visible_mask": torch.tensor([True, False, True])}, "visible_mask needs data.setting"),
        ({"setting": "Inductive"}, "unknown data.setting 'Inductive'; use one of .*did you mean 'inductive'"),
        ({"setting": ["inductive"]}, "unknown data.setting"),
        ({"group_id": torch.tensor([-1, 0])}, "data.group_id must hold one int64"),
        ({"group_id": torch.tensor([-1, 0, -1])}, "list of distinct names, one per group, got None"),
        ({"group_id": torch.tensor([-1, 0, -1]), "groups": ["T1", "T1"]}, "distinct names"),
        ({"group_id": torch.tensor([-1, 1, -1]), "groups": ["T1"]}, r"0\.\.0 \(-1 for none\), got 1"),
        ({"group_id": torch.tensor([-1, -2, 0]), "groups": ["T1"]}, "got -2"),
        ({"group_id": torch.tensor([-1, 0, -1]), "groups": ["id_val"]}, "'id_val', the name of another score"),
        ({"group_id": torch.tensor([-1, 0, -1]), "groups": ["step"]}, "'step', the name of another score"),
        ({"num_classes": "2"}, "data.num_classes must be a whole number of classes, at least 1, got '2'"),
        ({"num_classes": True}, "data.num_classes must be a whole number"),
        ({"num_nodes": 4}, "data.num_nodes is 4, but data.x has 3 rows"),
        ({"x": torch.ones(3, 2, requires_grad=True)}, r"data.x requires gradients.*use data.x.detach\(\)"),
        ({"edge_weight": torch.ones(2, requires_grad=True)}, "data.edge_weight requires gradients"),
        ({"x": torch.full((3, 2), 1e39, dtype=torch.float64)}, "data.x holds 6 entries that are infinite as .*float32"),
        ({"edge_attr": torch.full((2, 1), -1e39, dtype=torch.float64)}, "data.edge_attr holds 2 entries that are inf"),
        ({"edge_weight": torch.tensor([1.0, 1e300], dtype=torch.float64)}, "data.edge_weight holds 1 entries that are"),
        ({"x": torch.empty(3, 2, device="meta")}, "data.x is on meta"),
        ({"y": torch.empty(3, dtype=torch.int64, device="meta")}, "data.y is on meta and data.x on cpu"),
        ({"x": torch.eye(3).to_sparse()}, "data.x is sparse_coo; make it dense or sparse CSR"),
        ({"x": torch.eye(3).to_sparse_csc()}, "data.x is sparse_csc; make it dense or sparse CSR"),
        ({"edge_index": torch.tensor([[0, 1], [1, 2]]).to_sparse()}, "data.edge_index is sparse_coo"),
        ({"edge_index": torch.eye(2).to_sparse_csr()}, "tensor of node ids, got sparse_csr"),
        ({"train_mask": torch.tensor([True, False, False]).to_sparse()}, "data.train_mask is sparse_coo"),
        ({"other": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])}, "data.other is nested"),
        ({"other": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)}, "data.other is quantized"),
        ({"other": sparse([0, 1, 1, 9], [0], [1.0])}, "the row pointers of data.other must ascend"),
        ({"ptr": torch.tensor([0, 3])}, r"data\.ptr must hold .* without data\.batch"),
        ({"edge_weight": torch.tensor(1.0)}, "data.edge_weight has no rows, but data.edge_index has 2 edges"),
        ({"y": torch.eye(3).long().to_sparse_csr()}, "data.y must hold one int64"),
    ],
)
def test_each_fault_is_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        check_graph(pair(**changes))


def wrong_column() -> Data:
    """Reading it segfaults."""
    return pair(x=sparse([0, 1, 2, 2], [0, 2**40], [1.0, 1.0]), edge_index=torch.tensor([[0, 1], [1, 0]]))


ENTRIES: dict[str, Callable[[Data], object]] = {
    "fit": lambda data: mario.RandomInit(epochs=1).fit(data),
    "evaluate": lambda data: mario.evaluate(mario.RandomInit(epochs=1).fit(pair()), data),
    "evaluate_many": lambda data: evaluate_many([torch.ones(3, 2)], data),
    "transform": lambda data: mario.RandomInit(epochs=1).fit(pair()).transform(data),
    "predict": lambda data: mario.ERM(epochs=1, batch_norm=False).fit(pair()).predict(data),
    "invariance": lambda data: invariance(mario.RandomInit(epochs=1).fit(pair()), data),
    "split_graph": lambda data: split_graph(data, domain="degree"),
    "training_graph": training_graph,
    "save_graph": lambda data: save_graph(data, "unused"),
    "save_mapped": lambda data: save_mapped(data, "unused"),
    "save_dataset": lambda data: save_dataset(data, "unused"),
    "FullGraph": FullGraph,
    "RandomWalk": lambda data: RandomWalk(data, roots=1, length=1),
    "Neighbors": lambda data: Neighbors(data, seeds=1, fanouts=[1]),
    "Clusters": lambda data: Clusters(data, clusters=1),
    "Graphs": lambda data: Graphs(data, per_batch=1),
    "DropEdges": DropEdges(0.5),
    "DropNodes": DropNodes(0.5),
    "MaskFeatures": MaskFeatures(0.5),
    "MaskNodes": MaskNodes(0.5),
    "PerturbEdges": PerturbEdges(0.5),
    "RandomWalkSubgraph": RandomWalkSubgraph(0.5),
    "ShuffleFeatures": ShuffleFeatures(),
    "Diffusion": Diffusion(),
    "AdversarialFeatures": AdversarialFeatures(loss=lambda data: data.x.sum()),
    "Chain": Chain(DropEdges(0.5), MaskFeatures(0.5)),
    "OneOf": OneOf(DropEdges(0.5), MaskFeatures(0.5)),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_checks_its_graph(entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MarioError, match="column 1099511627776"):
        ENTRIES[entry](wrong_column())
    with pytest.raises(MarioError, match="names node 7"):
        ENTRIES[entry](pair(edge_index=torch.tensor([[0], [7]])))
    with pytest.raises(MarioError, match="data must be a torch_geometric"):
        ENTRIES[entry](torch.eye(3))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_the_output_of_a_foreign_transform_is_checked() -> None:
    class Beyond(BaseTransform):
        def forward(self, data: Data) -> Data:
            data.edge_index = data.edge_index + 7
            return data

    with pytest.raises(MarioError, match="names node 9"):
        Chain(Beyond(), DropEdges(0.5))(pair())


def test_graphs_of_a_set_are_consecutive_where_a_part_is_cut() -> None:
    data = graph_set(batch=torch.tensor([0, 1, 0]), edge_index=torch.zeros(2, 0, dtype=torch.int64), ptr=None)
    for entry in ("Graphs", "OneOf"):
        with pytest.raises(MarioError, match="must be consecutive"):
            ENTRIES[entry](data)


def test_a_graph_that_has_passed_is_checked_again_if_a_tensor_changed() -> None:
    data = pair(x=sparse([0, 1, 2, 2], [0, 1], [1.0, 1.0]))
    assert check_structure(data) == check_structure(data) == 3
    data.edge_index[0, 0] = 7
    with pytest.raises(MarioError, match="names node 7"):
        check_structure(data)
    data.edge_index[0, 0] = 0
    data.x.col_indices()[0] = 9
    with pytest.raises(MarioError, match="column 9"):
        check_structure(data)


def test_changes_that_torch_does_not_track_are_noticed_by_check_graph() -> None:
    data = pair()
    check_graph(data)
    data.x.numpy()[0, 0] = NAN
    with pytest.raises(MarioError, match="1 NaN"):
        check_graph(data)


def test_what_is_remembered_does_not_keep_a_graph_alive() -> None:
    data = pair()
    check_structure(data)
    kept = weakref.ref(data.edge_index)
    del data
    gc.collect()
    assert kept() is None


def test_something_else_than_a_graph() -> None:
    with pytest.raises(MarioError, match="got dict"):
        check_graph({"x": torch.eye(2)})  # type: ignore[arg-type]


def graph_set(**changed: object) -> Data:
    """Graphs of two and of one node."""
    sound = {
        "x": torch.ones(3, 1),
        "edge_index": torch.tensor([[0], [1]]),
        "batch": torch.tensor([0, 0, 1]),
        "ptr": torch.tensor([0, 2, 3]),
        "y": torch.tensor([0, 1]),
        "train_mask": torch.tensor([True, False]),
        "ood_test_mask": torch.tensor([False, True]),
        "domain_id": torch.tensor([2, 1]),
    }
    return Data(**(sound | changed))


def test_a_sound_set_of_graphs_passes_with_and_without_ptr() -> None:
    check_graph(graph_set())
    bare = graph_set()
    del bare.ptr
    check_graph(bare)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch": torch.tensor([0, 1, 0])}, "must ascend"),
        ({"batch": torch.tensor([-1, 0, 1])}, "must ascend from 0"),
        ({"batch": torch.tensor([0.0, 0.0, 1.0])}, r"data\.batch must hold the graph \(int64\) of each of 3 nodes"),
        ({"batch": torch.tensor([0, 0])}, r"of each of 3 nodes, got .*\(2,\)"),
        ({"batch": torch.tensor([0, 0, 2])}, "names graph 2, but the 2 graphs are numbered"),
        ({"ptr": torch.tensor([0, 2, 3, 3])}, "graph 2 of data has no nodes"),
        ({"ptr": torch.tensor([0, 1, 3])}, r"data\.ptr must hold the first node of each graph"),
        ({"edge_index": torch.tensor([[0], [2]])}, "links nodes of two graphs"),
        ({"y": torch.tensor([0, 1, 1])}, "one int64 class for each of 2 graphs"),
        ({"train_mask": torch.tensor([True, False, False])}, "a bool for each of 2 graphs"),
        ({"train_mask": torch.tensor([True, True])}, "share 1 graphs"),
        ({"domain_id": torch.tensor([2, 2, 1])}, "one int64 for each of 2 graphs"),
        ({"batch": torch.tensor([0, 0, 2**60])}, "names graph 1152921504606846976"),
        ({"batch": torch.tensor([0, 0, 2]), "ptr": None}, "graph 1 of data has no nodes"),
        ({"ptr": [0, 2, 3]}, r"data\.ptr must hold the first node \(int64\) of each graph.*got list"),
        ({"ptr": torch.tensor([], dtype=torch.int64)}, r"data\.ptr must hold the first node"),
        ({"num_graphs": 3}, r"data\.num_graphs is 3, but data\.ptr has 2 graphs"),
        ({"visible_mask": torch.tensor([True, False])}, "visible_mask has no effect in a set of graphs"),
    ],
)
def test_each_fault_of_a_set_of_graphs_is_named(changed: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        check_graph(graph_set(**changed))
