"""Nodes of a mask without a label: everything is as if labels and scores knew the others only."""

import pytest
import torch
from torch_geometric.data import Data

import mario
from mario.errors import MarioError
from mario.evaluation import SETS, LogisticProbe, evaluate_many, predict, score_controls, select
from mario.graphs.labels import labeled_parts

SMALL = {"hidden_channels": 8, "epochs": 1, "steps_per_epoch": 2}


def few_labels() -> Data:
    """Half of the nodes of each part have a label."""
    generator = torch.Generator().manual_seed(0)
    truth = torch.arange(200) % 3
    data = Data(
        x=torch.eye(3)[truth] + 0.5 * torch.randn(200, 3, generator=generator),
        edge_index=torch.randint(200, (2, 600), generator=generator),
        y=torch.where(torch.arange(200) % 2 == 0, truth, -1),
        domain_id=torch.arange(200) // 10 % 4,
        setting="transductive",
        num_classes=3,
    )
    for place, name in enumerate(SETS):
        data[f"{name}_mask"] = torch.arange(200) // 40 == place
    return data


def test_parts_have_their_labeled_nodes_or_are_gone() -> None:
    data = few_labels()
    data.y[data.id_val_mask] = -1
    found = labeled_parts(data)
    assert "id_val_mask" not in found
    assert found.train_mask.nonzero().view(-1).tolist() == list(range(0, 40, 2))
    assert int(data.train_mask.sum()) == 40
    assert labeled_parts(found) is found
    del data.y
    assert "train_mask" not in labeled_parts(data)


@pytest.mark.parametrize("probe", [None, LogisticProbe()])
def test_scores_are_those_of_the_labeled_nodes(probe: LogisticProbe | None) -> None:
    data = few_labels()
    model = mario.GRACE(**SMALL).fit(data)
    assert mario.evaluate(model, data, probe=probe) == mario.evaluate(model, labeled_parts(data), probe=probe)
    z = model.transform(data)
    assert evaluate_many([z], data, probe=probe) == evaluate_many([z], labeled_parts(data), probe=probe)
    assert predict(z, data, probe=probe).shape == (200, 3)
    data.y[data.ood_val_mask | data.id_val_mask] = -1
    assert {"train", "id_test", "ood_test"} <= mario.evaluate(model, data, probe=probe).keys()
    assert "ood_val" not in mario.evaluate(model, data, probe=probe)
    assert set(score_controls(data)) == {"raw-features", "hops", "random-init"}


@pytest.mark.parametrize("name", ["ERM", "IRM", "EERM"])
@pytest.mark.parametrize("sampling", ["full", "neighbors"])
def test_supervised_methods_learn_from_the_labeled_nodes(name: str, sampling: str) -> None:
    data = few_labels()
    data.env_id = torch.where(data.train_mask, data.domain_id, -1)
    logits = [
        getattr(mario, name)(sampling=sampling, **SMALL).fit(graph).predict(graph)
        for graph in (data, labeled_parts(data))
    ]
    assert torch.equal(*logits) or sampling == "neighbors"
    assert all(one.isfinite().all() for one in logits)


def test_steady_and_the_inductive_setting_see_nodes_without_labels() -> None:
    data = few_labels()
    data.setting = "inductive"
    assert mario.training_graph(data).num_nodes == 40
    model = mario.Steady(mario.GRACE(**SMALL)).fit(data)
    assert set(SETS) <= mario.evaluate(model, data, probe=LogisticProbe()).keys()


@pytest.mark.parametrize("rule", ["ood_val", "leave_domain_out", "id_val"])
def test_select_reads_the_labeled_nodes(rule: str) -> None:
    data = few_labels()
    models = [mario.RawFeatures(epochs=1).fit(data), mario.Hops(epochs=1).fit(data)]
    assert select(models, data, rule=rule).table.equals(select(models, labeled_parts(data), rule=rule).table)


def test_no_label_for_training_is_explained() -> None:
    data = few_labels()
    data.y[data.train_mask] = -1
    model = mario.RawFeatures(epochs=1).fit(data)
    with pytest.raises(MarioError, match="no node of train_mask has a label: use transform"):
        mario.evaluate(model, data)
    with pytest.raises(MarioError, match="learns from labels: no node of train_mask has one"):
        mario.ERM(**SMALL).fit(data)
    steady = mario.Steady(mario.GRACE(**SMALL)).fit(data)
    assert select([steady], data).rule == "gate"
