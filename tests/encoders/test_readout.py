"""Readouts, worked by hand."""

import pytest
import torch

from mario.encoders import readout
from mario.errors import MarioError

H = torch.tensor([[1.0, -2.0], [3.0, -4.0], [5.0, 6.0]])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("mean", [[2.0, -3.0], [5.0, 6.0]]), ("sum", [[4.0, -6.0], [5.0, 6.0]]), ("max", [[3.0, -2.0], [5.0, 6.0]])],
)
def test_two_graphs(kind: str, expected: list[list[float]]) -> None:
    assert readout(H, torch.tensor([0, 0, 1]), kind).tolist() == expected


@pytest.mark.parametrize(("kind", "expected"), [("mean", [[3.0, 0.0]]), ("sum", [[9.0, 0.0]]), ("max", [[5.0, 6.0]])])
def test_no_batch_is_one_graph(kind: str, expected: list[list[float]]) -> None:
    assert readout(H, kind=kind).tolist() == expected


def test_mean_is_the_default_and_nodes_may_stand_in_any_order() -> None:
    graphs = torch.tensor([0, 0, 1])
    order = torch.tensor([2, 0, 1])
    assert torch.equal(readout(H), readout(H, kind="mean"))
    # Pooling wants a sorted batch only for speed.
    assert torch.equal(readout(H[order], graphs[order], "sum"), readout(H, graphs, "sum"))


def test_gradients_are_spread_over_the_nodes_of_a_graph() -> None:
    h = H.clone().requires_grad_()
    readout(h, torch.tensor([0, 0, 1]))[0].sum().backward()
    assert h.grad is not None
    assert h.grad.tolist() == [[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]]


def test_unknown_kind_is_named() -> None:
    with pytest.raises(MarioError, match="readout must be one of mean, sum, max, got 'median'"):
        readout(H, kind="median")
