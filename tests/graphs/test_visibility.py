import pytest
import torch
from torch_geometric.data import Data

from mario.datasets import load_dataset
from mario.errors import MarioError
from mario.graphs import training_graph
from mario.graphs.rules import PARTS, SHIFTS

HIDDEN = {f"{part}_mask" for part in PARTS if part != "train"} | {"domain_id"}


@pytest.mark.parametrize("shift", SHIFTS)
def test_transductive_training_sees_the_graph_but_no_other_label_or_mask(shift: str) -> None:
    data = load_dataset("good-cbas", shift=shift)
    seen = training_graph(data)
    assert torch.equal(seen.x, data.x)
    assert torch.equal(seen.edge_index, data.edge_index)
    assert torch.equal(seen.y[data.train_mask], data.y[data.train_mask])
    assert (seen.y[~data.train_mask] == -1).all()
    assert (seen.env_id[~data.train_mask] == -1).all()
    assert not HIDDEN & set(seen.keys())
    assert (data.y >= 0).all()


@pytest.mark.parametrize("shift", SHIFTS)
def test_inductive_training_sees_only_edges_between_training_nodes(shift: str) -> None:
    data = load_dataset("good-cbas", shift=shift, setting="inductive")
    seen = training_graph(data)
    assert torch.equal(seen.n_id, data.train_mask.nonzero().view(-1))
    assert torch.equal(seen.x, data.x[data.train_mask])
    assert torch.equal(seen.y, data.y[data.train_mask])
    between = data.train_mask[data.edge_index].all(dim=0)
    assert torch.equal(seen.n_id[seen.edge_index], data.edge_index[:, between])
    assert seen.train_mask.all()
    assert not HIDDEN & set(seen.keys())


def test_inductive_with_sparse_features() -> None:
    x = torch.tensor([[1.0, 0], [0, 2], [3, 4]])
    data = Data(
        x=x.to_sparse_csr(),
        edge_index=torch.tensor([[0, 2, 1], [2, 0, 2]]),
        y=torch.tensor([0, 1, 1]),
        train_mask=torch.tensor([True, False, True]),
        ood_test_mask=torch.tensor([False, True, False]),
        setting="inductive",
    )
    seen = training_graph(data)
    assert seen.x.layout == torch.sparse_csr
    assert seen.x.to_dense().tolist() == [[1, 0], [3, 4]]
    assert seen.edge_index.tolist() == [[0, 1], [1, 0]]


def test_inductive_training_sees_what_visible_mask_shows() -> None:
    data = Data(
        x=torch.eye(4),
        edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]),
        y=torch.tensor([0, 1, 1, 0]),
        env_id=torch.tensor([0, 3, -1, -1]),
        train_mask=torch.tensor([True, False, False, False]),
        ood_test_mask=torch.tensor([False, False, True, True]),
        visible_mask=torch.tensor([True, True, False, False]),
        group_id=torch.tensor([-1, -1, 0, 0]),
        groups=["T1"],
        setting="inductive",
    )
    seen = training_graph(data)
    assert seen.n_id.tolist() == [0, 1]
    assert seen.edge_index.tolist() == [[0, 1], [1, 0]]
    assert seen.train_mask.tolist() == [True, False]
    assert seen.y.tolist() == [0, -1]
    assert seen.env_id.tolist() == [0, -1]
    assert not {"visible_mask", "group_id", "groups", "ood_test_mask"} & set(seen.keys())
    data.setting = "transductive"
    seen = training_graph(data)
    assert seen.num_nodes == 4
    assert seen.y.tolist() == [0, -1, -1, -1]
    assert not {"visible_mask", "group_id", "groups"} & set(seen.keys())


@pytest.mark.parametrize("setting", ["transductive", "inductive"])
@pytest.mark.parametrize("many", [False, True], ids=["one graph", "a set of graphs"])
def test_weights_and_attributes_stay_with_their_edges(setting: str, many: bool) -> None:
    data = Data(
        x=torch.eye(4),
        edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]),
        edge_weight=torch.tensor([0.1, 0.2, 0.3, 0.4]),
        edge_attr=torch.tensor([[1.0], [2.0], [3.0], [4.0]]),
        y=torch.tensor([0, 1, 1, 0]),
        train_mask=torch.tensor([False, False, True, True]),
        setting=setting,
    )
    if many:
        data.batch, data.y = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1])
        data.train_mask = torch.tensor([False, True])
    seen = training_graph(data)
    kept = slice(0, 4) if setting == "transductive" and not many else slice(2, 4)
    assert torch.equal(seen.n_id[seen.edge_index], data.edge_index[:, kept])
    assert torch.equal(seen.edge_weight, data.edge_weight[kept])
    assert torch.equal(seen.edge_attr, data.edge_attr[kept])


def test_a_graph_without_labels_or_environments_is_accepted() -> None:
    seen = training_graph(
        Data(x=torch.eye(2), edge_index=torch.zeros(2, 0).long(), train_mask=torch.tensor([True, False]))
    )
    assert "y" not in seen
    assert "env_id" not in seen


def test_without_train_mask_the_error_says_what_to_do() -> None:
    with pytest.raises(MarioError, match=r"mario\.load_dataset"):
        training_graph(Data(x=torch.eye(2), edge_index=torch.zeros(2, 0).long()))


@pytest.mark.parametrize("setting", ["transductive", "inductive"])
def test_of_a_set_of_graphs_training_sees_the_training_graphs(setting: str) -> None:
    data = Data(
        x=torch.arange(6.0).view(6, 1),
        edge_index=torch.tensor([[0, 2, 5], [1, 3, 5]]),
        batch=torch.tensor([0, 0, 1, 1, 2, 2]),
        y=torch.tensor([0, 1, 1]),
        train_mask=torch.tensor([True, False, True]),
        ood_test_mask=torch.tensor([False, True, False]),
        domain_id=torch.tensor([2, 2, 2]),
        env_id=torch.tensor([0, -1, 0]),
        setting=setting,
    )
    seen = training_graph(data)
    assert seen.x.view(-1).tolist() == [0, 1, 4, 5]
    assert seen.edge_index.tolist() == [[0, 3], [1, 3]]
    assert seen.batch.tolist() == [0, 0, 1, 1]
    assert seen.y.tolist() == [0, 1]
    assert seen.train_mask.tolist() == [True, True]
    assert seen.n_id.tolist() == [0, 1, 4, 5]
    assert not HIDDEN & set(seen.keys())


@pytest.mark.parametrize("shift", SHIFTS)
def test_training_domains_are_all_nodes_outside_the_ood_parts(shift: str) -> None:
    data = load_dataset("good-cbas", shift=shift)
    data.edge_weight = torch.arange(data.num_edges) + 1.0
    seen = training_graph(data, sees="training domains")
    shown = ~(data.ood_val_mask | data.ood_test_mask)
    assert torch.equal(shown, data.train_mask | data.id_val_mask | data.id_test_mask)
    assert torch.equal(seen.n_id, shown.nonzero().view(-1))
    assert torch.equal(seen.x, data.x[shown])
    between = shown[data.edge_index].all(dim=0)
    assert 0 < int(between.sum()) < data.num_edges
    assert torch.equal(seen.n_id[seen.edge_index], data.edge_index[:, between])
    assert torch.equal(seen.edge_weight, data.edge_weight[between])
    assert torch.equal(seen.train_mask, data.train_mask[shown])
    assert torch.equal(seen.y >= 0, seen.train_mask)
    assert not HIDDEN & set(seen.keys())


def unlabeled() -> Data:
    """One node of each part, and two in none: of the training domain 0 and of the domain 7."""
    masks = {f"{part}_mask": torch.arange(7) == i for i, part in enumerate(PARTS)}
    domain_id = torch.tensor([0, 0, 0, 0, 0, 0, 7])
    return Data(x=torch.eye(7), edge_index=torch.tensor([[0, 5, 6], [5, 6, 0]]), domain_id=domain_id, **masks)


def test_nodes_in_no_part_are_seen_if_their_domain_has_training_nodes() -> None:
    data = unlabeled()
    seen = training_graph(data, sees="training domains")
    assert seen.n_id.tolist() == [0, 1, 2, 5], "ood_val and ood_test are left out although their domain trains"
    assert seen.edge_index.tolist() == [[0], [3]]
    del data.domain_id
    assert training_graph(data, sees="training domains").n_id.tolist() == [0, 1, 2, 5, 6]
    del data.ood_val_mask, data.ood_test_mask
    data.domain_id = torch.tensor([0, 1, 1, 2, 2, 0, 7])
    assert training_graph(data, sees="training domains").n_id.tolist() == [0, 1, 2, 5]


def test_what_is_not_one_transductive_graph_is_seen_as_before() -> None:
    inductive = load_dataset("good-cbas", setting="inductive")
    assert torch.equal(training_graph(inductive, sees="training domains").n_id, training_graph(inductive).n_id)
    many = Data(
        x=torch.eye(4),
        edge_index=torch.tensor([[0, 2], [1, 3]]),
        batch=torch.tensor([0, 0, 1, 1]),
        y=torch.tensor([0, 1]),
        train_mask=torch.tensor([True, False]),
        ood_test_mask=torch.tensor([False, True]),
    )
    assert training_graph(many, sees="training domains").n_id.tolist() == [0, 1]


def test_training_domains_that_nothing_tells_of_are_an_error() -> None:
    data = unlabeled()
    del data.ood_val_mask, data.ood_test_mask, data.domain_id
    with pytest.raises(MarioError, match=r"needs ood_val_mask, ood_test_mask or domain_id.*use sees='all'"):
        training_graph(data, sees="training domains")
    with pytest.raises(MarioError, match="unknown sees 'train'; use one of all, training domains"):
        training_graph(data, sees="train")
