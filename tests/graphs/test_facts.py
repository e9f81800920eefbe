"""What is said of a split before anything is trained on it."""

import pytest
import torch
from torch_geometric.data import Data

import mario
from mario.errors import MarioError
from mario.graphs import DeclaredSplit, own_split, split_facts
from mario.graphs.facts import remarks
from mario.graphs.graph_sets import stack_graphs

TOWNS = ("Bern", "Oslo", "Rome", "Ulm")


def chain(**columns: torch.Tensor) -> Data:
    """Ten nodes, an edge from each to the next."""
    return Data(x=torch.eye(10), edge_index=torch.stack([torch.arange(9), torch.arange(1, 10)]), **columns)


def test_sizes_labels_classes_and_domains_of_each_part() -> None:
    y = torch.tensor([0, 1, -1, -1, 0, 1, 2, -1, 0, -1])
    town = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 1, -1])
    data = own_split(chain(town=town, y=y), {"by": "town", "leave_out": "Oslo", "in_domain": 0}, names={"town": TOWNS})
    data.class_names = ["cat", "dog", "owl"]
    facts = split_facts(data)
    assert [(part.name, part.nodes, part.labeled, part.classes, part.domains) for part in facts.parts] == [
        ("train", 6, 4, 2, 1),
        ("ood_test", 3, 2, 2, 1),
        ("none", 1, 0, 0, 0),
    ]
    assert facts.part("ood_val") is None
    assert (facts.only_in_test, facts.empty_domains, facts.labeled_domains) == (("owl",), ("Rome", "Ulm"), 1)
    assert (facts.edges, facts.between, facts.reached, facts.to_later) == (9, 1 / 9, 1 / 6, None)
    assert facts.warnings == (
        "the labels in train are of one domain only: no promise about other domains can be made",
        "ood_test has 2 labels: its score is uncertain",
        "class owl is in ood_test but not in train",
        "there is no ood_val: checkpoints are chosen in distribution, or the last is taken",
        "no nodes in Rome, Ulm",
    )


def test_edges_that_lead_to_later_nodes() -> None:
    data = chain(time=torch.tensor([0, 5, 1, 6, 2, 7, 3, 8, 9, 4]))
    facts = split_facts(own_split(data, {"by": "time", "train_until": 3, "gap": 1, "in_domain": 0}))
    train = {0, 2, 4, 6}
    test = {1, 3, 5, 7, 8}
    edges = [(i, i + 1) for i in range(9)]
    crossing = [edge for edge in edges if set(edge) & train and set(edge) & test]
    assert facts.between == len(crossing) / 9
    assert facts.reached == len({node for edge in crossing for node in edge} & train) / 4
    assert facts.to_later == 1.0
    assert any("100 % of the edges of training nodes go to later ones" in warning for warning in facts.warnings)
    hidden = own_split(data, {"by": "time", "train_until": 3}, setting="inductive")
    assert not any("later ones" in warning for warning in split_facts(hidden).warnings)


@pytest.mark.parametrize(
    ("y", "warning"),
    [
        (None, "no labels: embeddings can be trained, but not scored"),
        ([-1] * 5 + [0] * 5, "none of the 5 labels is in train: embeddings can be trained, but not scored"),
        ([1] * 5 + [-1] * 5, "the labels in train are of one class: no classifier can be trained on them"),
        ([0, 1, 0, 1, 0] + [-1] * 5, "ood_test has no labels, so there is no score out of distribution"),
        ([0, 1, 0, 1, 0, -1, -1, 0, 0, 0], "ood_val has no labels, so nothing can be chosen on it"),
        ([0, 1, 0, 1, 0, 2, 3, 2, 3, 4], "classes 2, 3, 4 are in ood_test but not in train"),
    ],
)
def test_labels_that_are_missing_are_warned_about(y: list[int] | None, warning: str) -> None:
    data = chain(age=torch.arange(10))
    if y is not None:
        data.y = torch.tensor(y)
    made = own_split(data, {"by": "age", "train": 0.5, "validation": 0.2, "in_domain": 0})
    assert warning in split_facts(made).warnings


def test_a_sound_split_has_no_warning() -> None:
    made = own_split(
        Data(
            x=torch.eye(300), edge_index=torch.empty(2, 0).long(), y=torch.arange(300) % 3, town=torch.arange(300) // 75
        ),
        DeclaredSplit(by="town", train=("Bern", "Oslo"), validation=("Rome",), test=("Ulm",)),
        names={"town": TOWNS},
    )
    assert split_facts(made).warnings == ()
    assert remarks(made) == []


def test_public_datasets_and_sets_of_graphs_have_facts() -> None:
    facts = split_facts(mario.load_dataset("good-cbas", shift="concept"))
    assert facts.part("train") is not None
    assert facts.edges == 3962
    few = [Data(x=torch.ones(n, 1), edge_index=torch.empty(2, 0).long()) for n in range(1, 11)]
    facts = split_facts(own_split(stack_graphs(few), {"by": "size"}))
    assert (facts.unit, facts.between) == ("graphs", 0.0)
    with pytest.raises(MarioError, match=r"no train_mask: split it with mario.graphs.own_split"):
        split_facts(chain())
