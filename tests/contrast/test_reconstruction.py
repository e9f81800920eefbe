"""The decoder of GAE against its formula over the whole matrix, and against PyG."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GAE

from mario.contrast import edge_reconstruction, full_reconstruction, reconstruction
from mario.errors import MarioError
from mario.graphs.non_edges import sample_non_edges

EDGES = torch.tensor([[0, 1, 1, 2, 4], [1, 0, 2, 1, 0]])


def weighted_cross_entropy(z: Tensor, adjacency: Tensor) -> Tensor:
    """Kipf & Welling's: norm · mean of the cross entropy of A + I, edges weighted by pos_weight."""
    n, edges = len(z), adjacency.sum()
    others = n * n - edges
    loss = F.binary_cross_entropy_with_logits(z @ z.t(), adjacency + torch.eye(n).to(z), pos_weight=others / edges)
    return loss * n * n / (2 * others)


@pytest.mark.parametrize("tile", [1, 7, 1 << 22])
def test_full_equals_the_weighted_cross_entropy(monkeypatch, generator, tile: int) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(reconstruction, "_TILE", tile)
    z = torch.randn(6, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    adjacency = torch.zeros(6, 6, dtype=torch.float64)
    adjacency[EDGES[0], EDGES[1]] = 1
    loops_and_repeats = torch.cat([EDGES, EDGES[:, :2], torch.tensor([[3], [3]])], dim=1)
    ours, wanted = full_reconstruction(z, loops_and_repeats), weighted_cross_entropy(z, adjacency)
    torch.testing.assert_close(ours, wanted)
    torch.testing.assert_close(torch.autograd.grad(ours, z), torch.autograd.grad(wanted, z))
    assert torch.autograd.gradcheck(lambda a: full_reconstruction(a, EDGES), z)


def test_full_without_edges_pushes_all_pairs_apart(generator) -> None:  # type: ignore[no-untyped-def]
    z = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    s = (z @ z.t())[~torch.eye(4, dtype=torch.bool)]
    torch.testing.assert_close(full_reconstruction(z, EDGES[:, :0]), F.softplus(s).sum() / 16)


def test_full_holds_no_matrix_of_all_pairs(monkeypatch, generator, largest_tensor) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(reconstruction, "_TILE", 1000)
    z = torch.randn(1000, 2, generator=generator, requires_grad=True)
    with largest_tensor:
        full_reconstruction(z, EDGES).backward()
    assert largest_tensor.numel <= 5000  # a tile is 1000, the N own pairs both ways 4N


def test_sampled_is_half_of_pygs(generator) -> None:  # type: ignore[no-untyped-def]
    z = torch.randn(6, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    non_edges = sample_non_edges(EDGES, 6, 5, generator)
    ours, theirs = edge_reconstruction(z, EDGES, non_edges), GAE(torch.nn.Identity()).recon_loss(z, EDGES, non_edges)
    torch.testing.assert_close(2 * ours, theirs, atol=1e-12, rtol=0)
    torch.testing.assert_close(
        2 * torch.autograd.grad(ours, z)[0], torch.autograd.grad(theirs, z)[0], atol=1e-12, rtol=0
    )


def test_sampled_gradient_and_memory(monkeypatch, generator, largest_tensor) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(reconstruction, "_TILE", 60)
    z = torch.randn(6, 30, generator=generator, dtype=torch.float64, requires_grad=True)
    repeated = torch.cat([EDGES, EDGES[:, :3], torch.tensor([[3], [3]])], dim=1)
    non_edges = sample_non_edges(EDGES, 6, 9, generator)
    assert torch.autograd.gradcheck(lambda a: edge_reconstruction(a, repeated, non_edges), z)
    s = z @ z.t()
    wanted = (F.softplus(-s[tuple(repeated)]).mean() + F.softplus(s[tuple(non_edges)]).mean()) / 2
    torch.testing.assert_close(edge_reconstruction(z, repeated, non_edges), wanted)
    with largest_tensor:
        edge_reconstruction(z, repeated, non_edges).backward()
    assert largest_tensor.numel <= z.numel()


def test_sampled_stays_finite_where_a_sigmoid_saturates() -> None:
    z = torch.tensor([[100.0], [1.0], [-1.0]], requires_grad=True)
    loss = edge_reconstruction(z, torch.tensor([[0], [2]]), torch.tensor([[0], [1]]))
    assert loss.item() == 100
    loss.backward()
    assert z.grad.tolist() == [[1.0], [50.0], [-50.0]]


def test_the_mean_over_sampled_non_edges_is_that_over_all(generator) -> None:  # type: ignore[no-untyped-def]
    z = torch.randn(6, 3, generator=generator)
    apart = ~torch.eye(6, dtype=torch.bool)
    apart[EDGES[0], EDGES[1]] = False
    wanted = edge_reconstruction(z, EDGES, apart.nonzero().t())
    ours = edge_reconstruction(z, EDGES, sample_non_edges(EDGES, 6, 100_000, generator))
    torch.testing.assert_close(ours, wanted, atol=0.02, rtol=0)


def test_one_kind_alone_and_none() -> None:
    z = torch.tensor([[1.0], [2.0]])
    pair, none = torch.tensor([[0], [1]]), torch.empty(2, 0, dtype=torch.long)
    torch.testing.assert_close(edge_reconstruction(z, pair, none), F.softplus(torch.tensor(-2.0)))
    torch.testing.assert_close(edge_reconstruction(z, none, pair), F.softplus(torch.tensor(2.0)))
    with pytest.raises(MarioError, match="both empty"):
        edge_reconstruction(z, none, none)
