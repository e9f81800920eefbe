"""A pass that is made twice against one that is kept: values, gradients, random draws and running statistics."""

import pytest
import torch
from torch import Tensor, nn

from mario.encoders import ENCODERS, Projector
from mario.encoders.recomputing import recomputed

EDGES = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 3]])


def networks(kind: str) -> nn.ModuleList:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.ModuleList([ENCODERS[kind](3, hidden_channels=4, num_layers=2, dropout=0.5), Projector(4)]).double()


@pytest.mark.parametrize("kind", list(ENCODERS))
def test_gradients_and_state_are_those_of_one_pass(kind: str) -> None:
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    found = []
    for again in (False, True):
        encoder, projector = nets = networks(kind)
        generator = torch.Generator().manual_seed(2)

        def encode(
            draws: torch.Generator | None, encoder: nn.Module = encoder, projector: nn.Module = projector
        ) -> Tensor:
            return projector(encoder(x, EDGES, generator=draws))

        z = recomputed(encode, nets, generator) if again else encode(generator)
        x.grad = None
        z.square().sum().backward()
        found.append([z.detach(), x.grad, *(p.grad for p in nets.parameters()), *nets.buffers(), generator.get_state()])
    for kept, made in zip(*found, strict=True):
        torch.testing.assert_close(made, kept)


def test_nothing_is_kept_between_the_passes() -> None:
    kept: list[int] = []
    layer = nn.Linear(4, 4)
    x = torch.ones(7, 4)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        recomputed(lambda draws: layer(layer(x).relu()).relu(), layer)
    assert not any(size >= x.numel() for size in kept)


def test_an_error_in_the_second_pass_leaves_the_statistics() -> None:
    norm = nn.BatchNorm1d(2)
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    calls = []

    def once(draws: torch.Generator | None) -> Tensor:
        calls.append(1)
        if len(calls) > 1:
            norm.running_mean.fill_(9.0)
            raise RuntimeError("second")
        return norm(x)

    z = recomputed(once, norm)
    mean = norm.running_mean
    before = mean.clone()
    with pytest.raises(RuntimeError, match="second"):
        z.sum().backward()
    assert norm.running_mean is mean
    assert torch.equal(mean, before)
