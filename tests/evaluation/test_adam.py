"""Layers trained together against torch's own optimizer and autograd, one by one."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import mario.evaluation.adam as module
from mario.evaluation.adam import adam_layers


def slow(z: Tensor, y: Tensor, classes: int, seed: int, epochs: int, lr: float) -> list[tuple[Tensor, Tensor]]:
    """The layer after each epoch."""
    generator = torch.Generator().manual_seed(seed)
    bound = z.size(1) ** -0.5
    weight, bias = (
        torch.empty(shape).uniform_(-bound, bound, generator=generator).to(z.dtype).requires_grad_()
        for shape in ((classes, z.size(1)), (classes,))
    )
    optimizer = torch.optim.Adam([weight, bias], lr=lr)
    found = []
    for _ in range(epochs):
        optimizer.zero_grad()
        F.cross_entropy(F.linear(z, weight, bias), y).backward()
        optimizer.step()
        found.append((weight.detach().clone(), bias.detach().clone()))
    return found


def problem(n: int, d: int, classes: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    y = torch.randint(classes, (n,), generator=generator)
    spread = torch.logspace(1, -2, d, dtype=torch.float64)  # axes of a thousandfold different width
    return spread * torch.randn(3, n, d, generator=generator, dtype=torch.float64) + 0.5, y


shapes = pytest.mark.parametrize(("n", "d", "classes"), [(40, 7, 4), (12, 30, 3), (25, 1, 2), (1, 5, 2)])


@pytest.mark.parametrize(
    ("transposed", "sparse"), [(0, -1.0), (2**18, -1.0), (0, 1.0)], ids=["as-given", "transposed", "sparse"]
)
@shapes
def test_every_epoch_equals_torchs_adam(
    n: int,
    d: int,
    classes: int,
    transposed: int,
    sparse: float,
    generator: torch.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TRANSPOSED", transposed)
    monkeypatch.setattr(module, "SPARSE", sparse)
    z, y = problem(n, d, classes, generator)
    trajectory = slow(z[0], y, classes, 5, 60, 0.05)
    for epochs, (weight, bias) in enumerate(trajectory, 1):
        found = adam_layers(z[:1], y, classes, [[5]], epochs=epochs, lr=0.05)
        torch.testing.assert_close(found[0][0, 0], weight, atol=1e-10, rtol=0)
        torch.testing.assert_close(found[1][0, 0], bias, atol=1e-10, rtol=0)


def test_counts_of_words_take_sparse_products(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    z = torch.rand(1, 600, 1000, generator=generator, dtype=torch.float64)
    z = z.masked_fill(torch.rand(z.shape, generator=generator) > 0.02, 0)
    y = torch.randint(3, (600,), generator=generator)
    taken: list[type] = []
    for name in ("_Products", "_SparseProducts"):
        kind = getattr(module, name)
        monkeypatch.setattr(module, name, lambda z, kind=kind: taken.append(kind) or kind(z))
    found = adam_layers(z, y, 3, [[5, 6]], epochs=20, lr=0.05)
    monkeypatch.setattr(module, "SPARSE", -1.0)
    dense = adam_layers(z, y, 3, [[5, 6]], epochs=20, lr=0.05)
    assert [kind.__name__ for kind in taken] == ["_SparseProducts", "_Products"]
    torch.testing.assert_close(found, dense, atol=1e-10, rtol=0)


def test_after_many_epochs(generator: torch.Generator) -> None:
    z, y = problem(40, 7, 4, generator)
    weight, bias = slow(z[0], y, 4, 0, 1000, 0.01)[-1]
    found = adam_layers(z[:1], y, 4, [[0]], epochs=1000, lr=0.01)
    torch.testing.assert_close(found[0][0, 0], weight, atol=1e-10, rtol=0)
    torch.testing.assert_close(found[1][0, 0], bias, atol=1e-10, rtol=0)


def test_single_precision_is_as_near_to_double_as_torchs(generator: torch.Generator) -> None:
    z, y = problem(40, 7, 4, generator)
    exact = slow(z[0].float().double(), y, 4, 0, 300, 0.01)[-1][0]
    theirs = slow(z[0].float(), y, 4, 0, 300, 0.01)[-1][0]
    ours = adam_layers(z[:1].float(), y, 4, [[0]], epochs=300, lr=0.01)[0][0, 0]
    assert ours.dtype == torch.float32
    assert (ours - exact).abs().max() < 1e-5 + 3 * (theirs - exact).abs().max()
    assert (ours - exact).abs().max() < 1e-4


@shapes
def test_together_equals_one_by_one(n: int, d: int, classes: int, generator: torch.Generator) -> None:
    z, y = problem(n, d, classes, generator)
    seeds = [[0, 1], [2, 3], [4, 0]]
    weight, bias = adam_layers(z, y, classes, seeds, epochs=50, lr=0.05)
    assert weight.shape == (3, 2, classes, d)
    assert bias.shape == (3, 2, classes)
    for e in range(3):
        for s in range(2):
            alone = slow(z[e], y, classes, seeds[e][s], 50, 0.05)[-1]
            torch.testing.assert_close(weight[e, s], alone[0], atol=1e-10, rtol=0)
            torch.testing.assert_close(bias[e, s], alone[1], atol=1e-10, rtol=0)


def test_no_epoch_leaves_the_start_of_a_linear_layer(generator: torch.Generator) -> None:
    z, y = problem(5, 4, 3, generator)
    weight, bias = adam_layers(z[:1], y, 3, [[7]], epochs=0, lr=0.1)
    draw = torch.Generator().manual_seed(7)
    assert torch.equal(weight[0, 0], torch.empty(3, 4).uniform_(-0.5, 0.5, generator=draw).double())
    assert torch.equal(bias[0, 0], torch.empty(3).uniform_(-0.5, 0.5, generator=draw).double())
