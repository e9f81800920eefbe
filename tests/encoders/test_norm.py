"""Batch norm: torch's own in one process, and over two ranks that of one process with all rows."""

import copy

import pytest
import torch
from torch import Tensor, nn

from mario.encoders import GCN
from mario.encoders.norm import BatchNorm, NotedStatistics
from mario.errors import MarioError
from two_ranks import on_two_ranks


def rows(dtype: torch.dtype = torch.float64, shift: float = 0.0) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(9, 4, generator=generator, dtype=torch.float64).add(shift).to(dtype)


@pytest.mark.parametrize("options", [{}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}])
def test_alone_it_is_torchs(options: dict[str, object]) -> None:
    ours, torchs = BatchNorm(4, **options).double(), nn.BatchNorm1d(4, **options).double()  # type: ignore[arg-type]
    assert ours.state_dict().keys() == torchs.state_dict().keys()
    for training in (True, True, False):
        ours.train(training)
        torchs.train(training)
        assert torch.equal(ours(rows()), torchs(rows()))
    for name, value in torchs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value)


def part(rank: int, first: int) -> slice:
    return slice(first) if rank == 0 else slice(first, None)


def normalized(
    rank: int, options: dict[str, object], dtype: torch.dtype, shift: float, first: int
) -> dict[str, Tensor]:
    """Two passes forward and one back of the own rows, then one in evaluation."""
    norm = started(BatchNorm(4, **options).to(dtype))  # type: ignore[arg-type]
    x = rows(dtype, shift)[part(rank, first)].requires_grad_()
    weights = weighting(dtype)[part(rank, first)]
    norm(2 * x.detach() + 1)
    y = norm(x)
    (y.square() * weights).sum().backward()
    norm.eval()
    # Without running statistics, torch takes those of the own rows in evaluation too.
    rested = norm(x).detach() if norm.track_running_stats else None
    gradients = {f"d_{name}": p.grad for name, p in norm.named_parameters()}
    return {"y": y.detach(), "x": x.grad, "rested": rested, **norm.state_dict(), **gradients}


def started(norm: nn.BatchNorm1d) -> nn.BatchNorm1d:
    if norm.affine:
        with torch.no_grad():
            norm.weight.copy_(torch.tensor([1.0, -2.0, 0.5, 3.0]))
            norm.bias.copy_(torch.tensor([0.0, 1.0, 2.0, -1.0]))
    return norm


def weighting(dtype: torch.dtype) -> Tensor:
    return torch.linspace(-1, 2, 36, dtype=dtype).view(9, 4)


@pytest.mark.parametrize("options", [{}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}])
@pytest.mark.parametrize("first", [4, 1, 0])
def test_two_ranks_are_one_with_all_rows(options: dict[str, object], first: int) -> None:
    check(options, torch.float64, 0.0, first, 1e-12)


@pytest.mark.parametrize(("shift", "tolerance"), [(0.0, 2e-6), (100.0, 1e-4)])
def test_in_float32(shift: float, tolerance: float) -> None:
    check({}, torch.float32, shift, 4, tolerance)


def check(options: dict[str, object], dtype: torch.dtype, shift: float, first: int, tolerance: float) -> None:
    norm = started(nn.BatchNorm1d(4, **options).double())  # type: ignore[arg-type]
    x = rows(dtype, shift).double().requires_grad_()
    norm(2 * x.detach() + 1)
    y = norm(x)
    (y.square() * weighting(torch.float64)).sum().backward()
    norm.eval()
    rested = norm(x).detach()
    one, two = on_two_ranks(normalized, options, dtype, shift, first)
    scaled = {"rtol": tolerance, "atol": tolerance}
    for name, expected in (("y", y.detach()), ("x", x.grad), ("rested", rested)):
        if one[name] is None:
            continue
        found = torch.cat([one[name], two[name]]).double()
        torch.testing.assert_close(found, expected, **scaled)  # type: ignore[arg-type]
    for name, expected in norm.state_dict().items():
        assert torch.equal(one[name], two[name]), "equal to the bit on all ranks"
        torch.testing.assert_close(one[name].double(), expected.double(), **scaled)  # type: ignore[arg-type]
    for name, p in norm.named_parameters():
        found = (one[f"d_{name}"] + two[f"d_{name}"]).double()
        torch.testing.assert_close(found, p.grad, rtol=10 * tolerance, atol=10 * tolerance)


def apart(rank: int) -> tuple[Tensor, str]:
    own = BatchNorm(4).double()
    own.everywhere = False
    y = own(rows()[part(rank, 4)])
    said = []
    for norm, given in ((BatchNorm(4).double(), rows()[: 1 - rank]), (own, rows()[:1])):
        try:
            norm(given)
        except MarioError as error:
            said.append(str(error))
    return y.detach(), said


def test_everywhere_false_is_the_own_rows_and_one_row_in_all_is_an_error() -> None:
    for rank, (y, said) in enumerate(on_two_ranks(apart)):
        expected = copy.deepcopy(nn.BatchNorm1d(4).double())(rows()[part(rank, 4)])
        torch.testing.assert_close(y, expected.detach())
        assert said == ["batch norm cannot be trained on one row, a graph of one node: set batch_norm=False"] * 2


def test_a_pass_counts_in_the_running_statistics_without_being_made() -> None:
    edges = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 3]])
    views = [torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2)]
    first = GCN(3, hidden_channels=4, num_layers=2).double()
    second, fresh = copy.deepcopy(first), copy.deepcopy(first)
    for view in (views[1], views[0], views[1], views[1]):  # as it is written out
        first(view, edges)
    with NotedStatistics(second) as noted:
        z = second(views[1], edges)
    moved = copy.deepcopy(dict(second.named_buffers()))
    noted.undo()
    assert all(torch.equal(now, then) for now, then in zip(second.buffers(), fresh.buffers(), strict=True))
    noted.again()
    for name, buffer in second.named_buffers():
        torch.testing.assert_close(buffer, moved[name])
    second(views[0], edges)
    noted.again()
    noted.again()
    for written, told in zip(first.buffers(), second.buffers(), strict=True):
        torch.testing.assert_close(told, written)
    z.sum().backward()  # autograd takes no offense


def test_without_running_statistics_there_is_nothing_to_note() -> None:
    norm = nn.BatchNorm1d(3, track_running_stats=False)
    with NotedStatistics(norm) as noted:
        norm(torch.randn(4, 3))
    noted.undo()
    noted.again()
    assert not list(norm.buffers())
