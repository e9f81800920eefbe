"""Diffusion against its closed form, the bound of the sparse form, and what odd graphs make of both."""

import copy

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.views import Diffusion, diffusion, diffusion_block, diffusion_matrix


def random_edges(nodes: int, edges: int, generator: torch.Generator, hubs: bool = False) -> Tensor:
    ends = torch.rand(2, edges, generator=generator)
    # To the fourth power, ends crowd at low node ids: a few nodes of high degree.
    return ((ends**4 if hubs else ends) * nodes).long()


def closed_form(edge_index: Tensor, nodes: int, kind: str, rate: float) -> tuple[Tensor, Tensor]:
    """The paper's equations 2 and 3, and the degrees."""
    a = torch.eye(nodes, dtype=torch.float64)
    a[edge_index[0], edge_index[1]] = a[edge_index[1], edge_index[0]] = 1
    d = a.sum(1)
    if kind == "ppr":
        return rate * torch.linalg.inv(torch.eye(nodes) - (1 - rate) * a / (d.outer(d)).sqrt()), d
    return torch.linalg.matrix_exp(rate * (a / d - torch.eye(nodes))), d


@pytest.mark.parametrize(("kind", "name", "rate"), [("ppr", "teleport", 0.2), ("heat", "time", 5.0)])
def test_small_graphs_have_the_closed_form(kind: str, name: str, rate: float, generator: torch.Generator) -> None:
    edge_index = random_edges(60, 150, generator)
    exact, _ = closed_form(edge_index, 60, kind, rate)
    torch.testing.assert_close(diffusion_matrix(edge_index, 60, kind).to_dense(), exact.float())  # the defaults
    given = diffusion_matrix(edge_index, 60, kind, **{name: rate / 2}).to_dense()
    torch.testing.assert_close(given, closed_form(edge_index, 60, kind, rate / 2)[0].float())


def test_heat_of_one_edge_by_hand() -> None:
    # A D^-1 has ½ everywhere: exp(t (A D^-1 − I)) = ½ (1 + e^-t, 1 − e^-t).
    matrix = diffusion_matrix(torch.tensor([[0], [1]]), 2, "heat", time=3.0).to_dense()
    there = (1 - torch.exp(torch.tensor(-3.0))) / 2
    torch.testing.assert_close(matrix, torch.stack([1 - there, there, there, 1 - there]).view(2, 2))


def test_columns_of_heat_sum_to_one_also_where_degrees_differ(generator: torch.Generator) -> None:
    matrix = diffusion_matrix(random_edges(50, 90, generator, hubs=True), 50, "heat").to_dense()
    torch.testing.assert_close(matrix.sum(0), torch.ones(50))
    assert not torch.allclose(matrix.sum(1), torch.ones(50), atol=0.1)


def test_direction_repetition_and_self_loops_play_no_part() -> None:
    plain = diffusion_matrix(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3).to_dense()
    odd = diffusion_matrix(torch.tensor([[1, 1, 2, 1], [0, 0, 1, 1]]), 3).to_dense()
    assert torch.equal(plain, odd)


@pytest.mark.parametrize("hubs", [False, True])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize(("kind", "rate"), [("ppr", 0.2), ("heat", 5.0)])
def test_large_graphs_lack_no_more_than_they_may(
    kind: str, rate: float, tolerance: float, hubs: bool, generator: torch.Generator
) -> None:
    edge_index = random_edges(400, 700, generator, hubs)
    exact, d = closed_form(edge_index, 400, kind, rate)
    lacks = exact - diffusion_matrix(edge_index, 400, kind, exact_nodes=0, tolerance=tolerance).to_dense()
    if kind == "heat":
        lacks = lacks * (d / d.unsqueeze(1)).sqrt()
    bound = tolerance * torch.minimum(d, d.unsqueeze(1)).sqrt()
    assert lacks.min() > -1e-6
    assert (lacks / bound).max() <= 1
    assert (lacks / bound).max() > 0.1, "a bound ten times too wide is work ten times too much"


def test_a_lower_tolerance_keeps_more_and_none_keeps_all(generator: torch.Generator) -> None:
    edge_index = random_edges(200, 400, generator)
    sizes = [
        diffusion_matrix(edge_index, 200, exact_nodes=0, tolerance=tolerance).values().numel()
        for tolerance in (1e-1, 1e-2, 1e-3)
    ]
    assert sizes[0] < sizes[1] < sizes[2] < 200**2
    close = diffusion_matrix(edge_index, 200, exact_nodes=0, tolerance=1e-7).to_dense()
    torch.testing.assert_close(close, diffusion_matrix(edge_index, 200).to_dense(), atol=2e-6, rtol=0)


def test_rows_in_chunks_are_the_same(monkeypatch: pytest.MonkeyPatch, generator: torch.Generator) -> None:
    edge_index = random_edges(100, 200, generator)
    whole = diffusion_matrix(edge_index, 100, exact_nodes=0)
    monkeypatch.setattr(diffusion, "_CHUNK", 700)  # seven rows at a time, two in the last chunk
    assert torch.equal(diffusion_matrix(edge_index, 100, exact_nodes=0).to_dense(), whole.to_dense())


def test_memory_is_that_of_what_is_kept() -> None:
    """A ring of 50,000 nodes, of which a dense matrix would hold 10 GB."""
    nodes = torch.arange(50_000)
    ring = torch.stack([nodes, (nodes + 1) % 50_000])
    matrix = diffusion_matrix(ring, 50_000, tolerance=1e-2)
    assert matrix.values().numel() < 20 * 50_000
    first = diffusion_matrix(torch.stack([nodes[:99], nodes[1:100]]), 100).to_dense()[50, 45:56]
    row = matrix.col_indices()[matrix.crow_indices()[5000] : matrix.crow_indices()[5001]]
    assert row.tolist() == list(range(int(row[0]), int(row[0]) + row.numel()))
    middle = matrix.values()[matrix.crow_indices()[5000] : matrix.crow_indices()[5001]]
    torch.testing.assert_close(middle.max(), first.max(), atol=1e-2 * 3**0.5, rtol=0)


@pytest.mark.parametrize("exact_nodes", [0, 3000])
@pytest.mark.parametrize("kind", ["ppr", "heat"])
def test_isolated_nodes_keep_to_themselves(kind: str, exact_nodes: int) -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    torch.testing.assert_close(
        diffusion_matrix(none, 3, kind, exact_nodes=exact_nodes).to_dense(), torch.eye(3), atol=2e-3, rtol=0
    )
    matrix = diffusion_matrix(torch.tensor([[0, 2], [1, 3]]), 5, kind, exact_nodes=exact_nodes).to_dense()
    assert not matrix[:2, 2:].any()
    assert not matrix[2:4, 4:].any()
    torch.testing.assert_close(matrix[:2, :2], matrix[2:4, 2:4])


@pytest.mark.parametrize("exact_nodes", [0, 3000])
def test_extreme_rates(exact_nodes: int, generator: torch.Generator) -> None:
    edge_index = random_edges(30, 60, generator)
    for kind, rate in (("ppr", {"teleport": 1.0}), ("heat", {"time": 0.0})):
        matrix = diffusion_matrix(edge_index, 30, kind, exact_nodes=exact_nodes, **rate)
        torch.testing.assert_close(matrix.to_dense(), torch.eye(30))
    long = diffusion_matrix(edge_index, 30, "heat", time=900.0, exact_nodes=exact_nodes).to_dense()
    torch.testing.assert_close(long, closed_form(edge_index, 30, "heat", 900.0)[0].float(), atol=5e-3, rtol=0)


def test_order_of_nodes_does_not_matter(generator: torch.Generator) -> None:
    edge_index = random_edges(80, 200, generator)
    order = torch.randperm(80, generator=generator)
    for exact_nodes in (0, 3000):
        here = diffusion_matrix(edge_index, 80, exact_nodes=exact_nodes).to_dense()
        there = diffusion_matrix(order[edge_index], 80, exact_nodes=exact_nodes).to_dense()
        torch.testing.assert_close(there[order][:, order], here)


def test_block_is_rows_and_columns_in_the_given_order(generator: torch.Generator) -> None:
    dense = torch.rand(9, 9, generator=generator) * (torch.rand(9, 9, generator=generator) < 0.4)
    nodes = torch.tensor([7, 0, 3, 4])
    block = diffusion_block(dense.to_sparse_csr(), nodes)
    assert torch.equal(block.to_dense(), dense[nodes][:, nodes])
    everything = diffusion_block(dense.to_sparse_csr(), torch.arange(9))
    assert torch.equal(everything.to_dense(), dense)


def test_a_product_with_it_has_a_gradient(generator: torch.Generator) -> None:
    matrix = diffusion_matrix(random_edges(20, 40, generator, hubs=True), 20, "heat")  # not symmetric
    h = torch.randn(20, 3, generator=generator, requires_grad=True)
    weight = torch.randn(20, 3, generator=generator)
    ((matrix @ h) * weight).sum().backward()
    torch.testing.assert_close(h.grad, matrix.to_dense().t() @ weight)


def test_the_view_carries_it_through_copies_and_leaves_the_graph_alone() -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))
    view = Diffusion("heat", time=2.0)(data)
    assert "diffusion" not in data
    assert torch.equal(view.edge_index, data.edge_index)
    expected = diffusion_matrix(data.edge_index, 3, "heat", time=2.0).to_dense()
    assert torch.equal(copy.copy(view).to("cpu").diffusion.to_dense(), expected)
    assert repr(Diffusion("heat", time=2.0)) == "Diffusion('heat', time=2)"
    assert repr(Diffusion(teleport=0.1)) == "Diffusion('ppr', teleport=0.1)"


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"kind": "cosine"}, "kind must be one of ppr, heat, got 'cosine'"),
        ({"teleport": 0.0}, "teleport must be a probability above 0, got 0.0"),
        ({"teleport": 1.5}, "got 1.5"),
        ({"time": -1.0}, "time must be finite and not negative, got -1.0"),
        ({"time": float("nan")}, "got nan"),
        ({"tolerance": 0.0}, "tolerance must be above 0 and below 100, got 0.0"),
        ({"tolerance": 100.0}, "tolerance must be above 0 and below 100, got 100.0"),
    ],
)
def test_wrong_settings_are_errors(settings: dict, match: str) -> None:
    with pytest.raises(MarioError, match=match):
        Diffusion(**settings)


def test_edges_out_of_range_are_an_error() -> None:
    with pytest.raises(MarioError, match="names node 3, but the 3 nodes are numbered"):
        diffusion_matrix(torch.tensor([[0], [3]]), 3)
    with pytest.raises(MarioError, match="no edge_index"):
        Diffusion()(Data(x=torch.eye(2)))


class TestEdgeWeight:
    @pytest.mark.parametrize(("kind", "rate"), [("ppr", 0.2), ("heat", 1.5)])
    def test_equals_the_dense_formula(self, kind: str, rate: float, generator: torch.Generator) -> None:
        edge_index = random_edges(30, 60, generator)
        weight = torch.rand(edge_index.size(1), generator=generator, dtype=torch.float64)
        A = torch.zeros(30, 30, dtype=torch.float64)
        for (i, j), w in zip(edge_index.t().tolist(), weight.tolist(), strict=True):
            A[i, j] = A[j, i] = max(A[i, j].item(), w)
        A.fill_diagonal_(1)
        d = A.sum(1)
        if kind == "ppr":
            spread = A / (d * d.unsqueeze(1)).sqrt()
            expected = rate * torch.linalg.inv(torch.eye(30) - (1 - rate) * spread)
            found = diffusion_matrix(edge_index, 30, "ppr", teleport=rate, edge_weight=weight)
        else:
            expected = torch.matrix_exp(rate * (A / d - torch.eye(30)))
            found = diffusion_matrix(edge_index, 30, "heat", time=rate, edge_weight=weight)
        torch.testing.assert_close(found.to_dense(), expected.float())

    @pytest.mark.parametrize("kind", ["ppr", "heat"])
    @pytest.mark.parametrize("exact_nodes", [0, 3000])
    def test_ones_equal_no_weights(self, kind: str, exact_nodes: int, generator: torch.Generator) -> None:
        edge_index = random_edges(50, 100, generator)
        ones = torch.ones(edge_index.size(1))
        plain, found = (
            diffusion_matrix(edge_index, 50, kind, exact_nodes=exact_nodes, edge_weight=weight)  # type: ignore[arg-type]
            for weight in (None, ones)
        )
        assert torch.equal(found.to_dense(), plain.to_dense())

    def test_large_graphs_keep_the_bound(self, generator: torch.Generator) -> None:
        edge_index = random_edges(200, 400, generator)
        weight = 3 * torch.rand(edge_index.size(1), generator=generator)
        exact = diffusion_matrix(edge_index, 200, edge_weight=weight).to_dense()
        lacks = exact - diffusion_matrix(edge_index, 200, exact_nodes=0, tolerance=1e-2, edge_weight=weight).to_dense()
        A = torch.zeros(200, 200)
        for (i, j), w in zip(edge_index.t().tolist(), weight.tolist(), strict=True):
            A[i, j] = A[j, i] = max(A[i, j].item(), w)
        d = A.fill_diagonal_(1).sum(1)
        assert lacks.min() > -1e-6
        assert (lacks / (1e-2 * torch.minimum(d, d.unsqueeze(1)).sqrt())).max() <= 1

    def test_the_view_uses_the_weights_of_the_graph(self, generator: torch.Generator) -> None:
        edge_index = random_edges(10, 20, generator)
        weight = torch.rand(edge_index.size(1), generator=generator)
        data = Data(x=torch.eye(10), edge_index=edge_index, edge_weight=weight)
        expected = diffusion_matrix(edge_index, 10, edge_weight=weight)
        assert torch.equal(Diffusion()(data).diffusion.to_dense(), expected.to_dense())

    def test_a_wrong_shape_is_named(self) -> None:
        with pytest.raises(MarioError, match=r"edge_weight must have shape \[1\], got \[2\]"):
            diffusion_matrix(torch.tensor([[0], [1]]), 2, edge_weight=torch.ones(2))
