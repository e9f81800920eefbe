"""A pass that is made twice against one that is kept: values, gradients, random draws and running statistics."""

import copy

import pytest
import torch
from torch import Tensor, nn

from mario.encoders import ENCODERS, Projector
from mario.encoders.recomputing import NotedStatistics, recomputed

EDGES = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 3]])


def networks(kind: str) -> nn.ModuleList:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.ModuleList([ENCODERS[kind](3, hidden=4, layers=2, dropout=0.5), Projector(4)]).double()


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
            return projector(encoder(x, EDGES, draws))

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


def test_a_pass_counts_in_the_running_statistics_without_being_made() -> None:
    views = [torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2)]
    first, second, fresh = (networks("gcn")[0] for _ in range(3))
    for encoder in (first, second):
        encoder.dropout = 0.0
    for view in (views[1], views[0], views[1], views[1]):  # as it is written out
        first(view, EDGES)
    with NotedStatistics(second) as noted:
        z = second(views[1], EDGES)
    moved = copy.deepcopy(dict(second.named_buffers()))
    noted.undo()
    assert all(torch.equal(now, then) for now, then in zip(second.buffers(), fresh.buffers(), strict=True))
    noted.again()
    for name, buffer in second.named_buffers():
        torch.testing.assert_close(buffer, moved[name])
    second(views[0], EDGES)
    noted.again()
    noted.again()
    for written, told in zip(first.buffers(), second.buffers(), strict=True):
        torch.testing.assert_close(told, written)
    z.sum().backward()  # autograd takes no offence


def test_without_running_statistics_there_is_nothing_to_note() -> None:
    norm = nn.BatchNorm1d(3, track_running_stats=False)
    with NotedStatistics(norm) as noted:
        norm(torch.randn(4, 3))
    noted.undo()
    noted.again()
    assert not list(norm.buffers())
