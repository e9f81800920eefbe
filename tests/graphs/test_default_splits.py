"""How a graph is split if its card says nothing."""

import pytest
import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs import DeclaredSplit, default_split, own_split
from mario.graphs.default_splits import described

TOWNS = ("Bern", "Oslo", "Rome", "Ulm", "Nice")


def towns(*sizes: int, y: torch.Tensor | None = None) -> Data:
    town = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    data = Data(x=torch.ones(len(town), 1), edge_index=torch.empty(2, 0).long(), town=town)
    if y is not None:
        data.y = y
    return data


def held_out(data: Data) -> tuple[object, object]:
    split = default_split(data, "town", names={"town": TOWNS})
    own_split(data, split, names={"town": TOWNS})
    return split.validation, split.test if split.leave_out is None else split.leave_out


def test_the_smallest_domains_are_held_out() -> None:
    assert held_out(towns(5, 9)) == (None, "Bern")
    assert held_out(towns(8, 9, 5)) == (None, ("Rome",))
    assert held_out(towns(8, 9, 5, 4)) == (("Rome",), ("Ulm",))
    assert held_out(towns(5, 5, 5, 5)) == (("Rome",), ("Ulm",))  # of the same size, the last
    assert held_out(towns(50, 40, 3, 9, 30)) == (("Ulm",), ("Rome",))
    assert held_out(towns(5, 0, 9)) == (None, "Bern")


def test_domains_with_labels_are_held_out_if_there_are_two() -> None:
    y = torch.tensor([0] * 8 + [1] * 9 + [-1] * 5 + [0] * 6)
    assert held_out(towns(8, 9, 5, 6, y=y)) == (("Bern",), ("Ulm",))
    y = torch.tensor([0] * 8 + [-1] * 20)
    assert held_out(towns(8, 9, 5, 6, y=y)) == (("Ulm",), ("Rome",))


def test_one_domain_cannot_be_held_out() -> None:
    with pytest.raises(MarioError, match="town has 1 domain with nodes, so none can be held out"):
        default_split(towns(5), "town", names={"town": TOWNS})


def test_orders_are_cut() -> None:
    data = towns(5, 5)
    data.age, data.time = torch.arange(10.0), torch.arange(10)
    assert default_split(data, "age") == DeclaredSplit(by="age")
    assert default_split(data, "time") == DeclaredSplit(by="time")
    assert default_split(data, "degree") == DeclaredSplit(by="degree", descending=True)
    assert default_split(data, "town", "no_shift") == DeclaredSplit(by="random")
    assert default_split(data, "town", "concept") == DeclaredSplit(by="town", shift="concept")
    many = {"town": tuple(map(str, range(60)))}
    assert default_split(towns(*[1] * 60), "town", names=many) == DeclaredSplit(by="town")


def test_each_is_said_in_words() -> None:
    assert described(DeclaredSplit(by="degree", descending=True)) == (
        "by degree (the largest 60 % train, the next 20 % validate, 20 % test)"
    )
    assert described(DeclaredSplit(by="random", train=0.8, test=0.2)) == "by random (80 % train, 20 % test)"
    assert described(DeclaredSplit(by="town", train=("Bern", "Oslo"), validation=("Ulm",))) == (
        "by town (Bern, Oslo trains, Ulm validates, the rest tests)"
    )
    assert described(DeclaredSplit(by="given")) == "by the masks of the graph"
