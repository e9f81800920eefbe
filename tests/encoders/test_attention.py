"""Attention by sparse products: values and gradients are those of a row for every edge."""

import pytest
import torch
from torch import Tensor

from mario.encoders import attention
from mario.encoders.attention import Attended


def slow(edge_index: Tensor, x: Tensor, scores: Tensor) -> Tensor:
    """Σ_j softmax_j(score of j→i) x_j, an edge at a time; ``scores`` [N, N] by source and target."""
    out = torch.zeros_like(x)
    for i in range(x.size(0)):
        sources = [i, *(int(s) for s, t in edge_index.t() if int(t) == i and int(s) != i)]
        share = torch.stack([scores[s, i] for s in sources]).softmax(0)
        out[i] = sum((share[k] * x[s] for k, s in enumerate(sources)), torch.zeros_like(x[i]))
    return out


def made() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    # A self-loop, a repeated edge, and node 6, which no edge reaches.
    edge_index = torch.tensor([[0, 1, 2, 2, 3, 3, 4, 0, 5], [1, 2, 0, 0, 3, 1, 1, 5, 4]])
    x, scores = (
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in ((7, 3), (7, 7))
    )
    return edge_index, x, scores


def test_values_and_gradients_are_those_of_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_BLOCK", 6)  # two edges at a time
    edge_index, x, scores = made()
    along = Attended(edge_index, 7)
    found = along(x, scores[along.source, along.target])
    expected = slow(edge_index, x, scores)
    torch.testing.assert_close(found, expected)
    weights = torch.arange(21.0, dtype=torch.float64).view(7, 3).sin()
    ours = torch.autograd.grad((found * weights).sum(), (x, scores))
    theirs = torch.autograd.grad((expected * weights).sum(), (x, scores))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_blocks_of_receivers() -> None:
    edge_index, x, scores = made()
    along = Attended(edge_index, 7)
    whole = along(x, scores[along.source, along.target])
    for start, stop in ((0, 2), (2, 7), (3, 3)):
        block = along.rows(start, stop)
        part = block(x, scores[block.source, block.target + start])
        torch.testing.assert_close(part, whole[start:stop])
        for of in (x, scores):
            (gradient,) = torch.autograd.grad(part.square().sum(), of, retain_graph=True)
            (expected,) = torch.autograd.grad(whole[start:stop].square().sum(), of, retain_graph=True)
            torch.testing.assert_close(gradient, expected)
