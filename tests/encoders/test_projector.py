"""The projector is the layers it says it is."""

import pytest
import torch

from mario.encoders import Projector
from mario.errors import MarioError


@pytest.fixture
def h(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(7, 4, generator=generator)


def test_is_linear_batch_norm_relu_linear(h: torch.Tensor) -> None:
    projector = Projector(4, hidden_channels=6, out_channels=3)
    first, norm, _, second = projector.layers
    a = h @ first.weight.T + first.bias
    a = (a - a.mean(0)) / (a.var(0, unbiased=False) + norm.eps).sqrt()
    expected = a.clamp_min(0) @ second.weight.T + second.bias
    torch.testing.assert_close(projector(h), expected)


def test_without_batch_norm(h: torch.Tensor) -> None:
    projector = Projector(4, hidden_channels=6, out_channels=3, batch_norm=False)
    first, _, _, second = projector.layers
    expected = (h @ first.weight.T + first.bias).clamp_min(0) @ second.weight.T + second.bias
    torch.testing.assert_close(projector(h), expected)
    torch.testing.assert_close(projector(h[:1]), expected[:1])


@pytest.mark.parametrize(
    ("widths", "shapes"),
    [({}, [(4, 4), (4, 4)]), ({"hidden_channels": 9}, [(9, 4), (4, 9)]), ({"out_channels": 2}, [(4, 4), (2, 4)])],
)
def test_widths_default_to_that_of_the_input(widths: dict[str, int], shapes: list[tuple[int, int]]) -> None:
    layers = Projector(4, **widths).layers
    assert [tuple(layers[i].weight.shape) for i in (0, 3)] == shapes


@pytest.mark.parametrize("bad", [{"in_channels": 0}, {"hidden_channels": 0}, {"out_channels": -1}])
def test_a_width_below_one_is_an_error(bad: dict[str, int]) -> None:
    with pytest.raises(MarioError, match="channels must be an integer of at least 1, got"):
        Projector(**{"in_channels": 4, **bad})


def test_one_row_cannot_train_batch_norm(h: torch.Tensor) -> None:
    projector = Projector(4)
    with pytest.raises(
        MarioError, match="batch norm cannot be trained on one row, a graph of one node: set batch_norm=False"
    ):
        projector(h[:1])
    assert projector.eval()(h[:1]).shape == (1, 4)
