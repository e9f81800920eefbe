"""`transport_plan`, `graph_emd` and `transport_nce` against linear programming, the formulas and their errors."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from mario.contrast import graph_emd, transport, transport_nce, transport_plan
from mario.errors import MarioError

U_SETS = torch.tensor([[0, 1, 2], [3, -1, -1], [4, 5, -1]])
V_SETS = torch.tensor([[0, -1], [1, 2], [3, 4]])


def embeddings(generator: torch.Generator, rows: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(rows, 4, generator=generator, dtype=dtype).requires_grad_()


def problem(generator: torch.Generator, n: int = 4, m: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    cost = torch.rand(2, n, m, generator=generator, dtype=torch.float64) * 2
    rows, columns = (torch.rand(2, k, generator=generator, dtype=torch.float64) + 0.1 for k in (n, m))
    return cost, rows / rows.sum(1, keepdim=True), columns / columns.sum(1, keepdim=True)


def exact_emd(cost: Tensor, rows: Tensor, columns: Tensor) -> float:
    n, m = cost.shape
    sums = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    return linprog(cost.flatten().numpy(), A_eq=sums, b_eq=torch.cat([rows, columns]).numpy()).fun


def slow_emd(a: Tensor, b: Tensor, ratio: Tensor | None = None, sharpness: float = 20.0, iterations: int = 5) -> Tensor:
    """g-EMD of one pair of sets, term by term, weights and plan constants."""
    cost = 1 - torch.cosine_similarity(a.unsqueeze(1), b.unsqueeze(0), dim=2)
    if ratio is not None:
        cost = cost * ratio
    with torch.no_grad():
        rows, columns = a @ b.mean(0), b @ a.mean(0)
        rows, columns = (w.where(w > 0, torch.tensor(1e-8, dtype=w.dtype)) for w in (rows, columns))
        rows, columns, kernel = rows / rows.sum(), columns / columns.sum(), torch.exp(-sharpness * cost)
        by_column = torch.ones_like(columns)
        for _ in range(iterations):
            by_row = rows / (kernel @ by_column)
            by_column = columns / (kernel.t() @ by_row)
        plan = by_row.unsqueeze(1) * kernel * by_column
    return (plan * cost).sum()


def take(z: Tensor, members: Tensor) -> Tensor:
    return z[members[members >= 0]]


def slow_nce(
    views: list[list[Tensor]], tau: float, hops: Tensor | None, with_positive: bool, stand_for: int = 2
) -> Tensor:
    """The loss of three roots, whose two negatives in each view stand for as many as one likes."""
    losses = []
    for this, that in ((0, 1), (1, 0)):
        for i in range(3):
            ratio = None
            if hops is not None:
                near = hops[i] if this == 0 else hops[i].t()
                ratio = torch.sigmoid(near / 2.0)[: len(views[this][i]), : len(views[that][i])]
            positive = (2 - 2 * slow_emd(views[this][i], views[that][i], ratio)) * (1 if hops is None else 2)
            terms = [2 - 2 * slow_emd(views[this][i], views[s][k]) for s in (0, 1) for k in range(3) if k != i]
            total = torch.stack(terms).div(tau).exp().sum() * (stand_for / 2)
            total = total + (positive / tau).exp() if with_positive else total
            losses.append(total.log() - positive / tau)
    return torch.stack(losses).mean()


class TestPlan:
    def test_sums_to_the_weights_of_rows_and_columns(self, generator: torch.Generator) -> None:
        cost, rows, columns = problem(generator)
        plan = transport_plan(cost, rows, columns, sharpness=5.0, iterations=500)
        torch.testing.assert_close(plan.sum(1), columns)
        torch.testing.assert_close(plan.sum(2), rows)
        assert (plan >= 0).all()

    @pytest.mark.parametrize("sharpness", [20.0, 2000.0])
    def test_columns_are_exact_at_once_and_rows_in_the_limit(
        self, generator: torch.Generator, sharpness: float
    ) -> None:
        cost, rows, columns = problem(generator)
        errors = []
        for iterations in (1, 5, 50, 2000):
            plan = transport_plan(cost, rows, columns, sharpness=sharpness, iterations=iterations)
            torch.testing.assert_close(plan.sum(1), columns)
            errors.append((plan.sum(2) - rows).abs().sum().item())
        assert errors[0] > errors[1] > errors[2] > errors[3]

    def test_tends_to_the_earth_movers_distance(self, generator: torch.Generator) -> None:
        cost, rows, columns = problem(generator)
        exact = torch.tensor([exact_emd(*each) for each in zip(cost, rows, columns, strict=True)], dtype=torch.float64)
        gaps = []
        for sharpness in (5.0, 50.0, 500.0):
            plan = transport_plan(cost, rows, columns, sharpness=sharpness, iterations=8000)
            gaps.append(((plan * cost).sum((1, 2)) - exact).abs().max().item())
        assert gaps[0] > gaps[1] > gaps[2]
        assert gaps[2] < 1e-3

    def test_logarithms_and_kernel_agree(self, monkeypatch: pytest.MonkeyPatch, generator: torch.Generator) -> None:
        cost, rows, columns = problem(generator)
        rows, columns = rows.clone(), columns.clone()
        rows[0, 1], columns[1, 2] = 0, 0
        direct = transport_plan(cost, rows, columns)
        monkeypatch.setattr(transport.math, "log", lambda _: 0.0)
        by_logarithms = transport_plan(cost, rows, columns)
        torch.testing.assert_close(by_logarithms, direct)
        assert not direct[0, 1].any()
        assert not direct[1, :, 2].any()

    def test_no_overflow_in_single_precision(self, generator: torch.Generator) -> None:
        cost, rows, columns = (part.float() for part in problem(generator))
        assert torch.isfinite(transport_plan(cost, rows, columns, sharpness=1e5, iterations=50)).all()

    def test_errors(self) -> None:
        cost, half = torch.zeros(2, 2), torch.full((2,), 0.5)
        with pytest.raises(MarioError, match="sharpness must be a finite number above 0, got 0"):
            transport_plan(cost, half, half, sharpness=0)
        with pytest.raises(MarioError, match="iterations must be an integer of at least 1, got 0"):
            transport_plan(cost, half, half, iterations=0)
        with pytest.raises(MarioError, match=r"got \(2, 2\), \(2,\) and \(3,\)"):
            transport_plan(cost, half, torch.ones(3))


class TestGraphEmd:
    @pytest.mark.parametrize("block", [1, 2**18])
    @pytest.mark.parametrize("with_ratio", [False, True])
    def test_equals_the_formula_and_its_gradient(
        self, monkeypatch: pytest.MonkeyPatch, generator: torch.Generator, block: int, with_ratio: bool
    ) -> None:
        monkeypatch.setattr(transport, "_BLOCK", block)
        u, v = embeddings(generator, 6), embeddings(generator, 5)
        partners = torch.tensor([[0, 1, 2], [1, 2, 0], [2, 2, 1]])
        ratio = 0.5 + torch.rand(3, 1, 3, 2, generator=generator, dtype=torch.float64) if with_ratio else None
        ours = graph_emd(u, U_SETS, v, V_SETS, partners, ratio=ratio)
        slow = []
        for i in range(3):
            for s in range(3):
                a, b = take(u, U_SETS[i]), take(v, V_SETS[partners[i, s]])
                slow.append(slow_emd(a, b, ratio[i, 0, : len(a), : len(b)] if with_ratio and s == 0 else None))
        expected = torch.stack(slow).view(3, 3)
        torch.testing.assert_close(ours, expected)
        weight = torch.rand(3, 3, generator=generator, dtype=torch.float64)
        torch.testing.assert_close(
            torch.autograd.grad((ours * weight).sum(), (u, v)), torch.autograd.grad((expected * weight).sum(), (u, v))
        )

    def test_gradcheck_where_the_plan_is_constant(self, generator: torch.Generator) -> None:
        # One node moves to one node, whatever it costs.
        u, v, single = embeddings(generator, 3), embeddings(generator, 3), torch.tensor([[0], [2]])
        partners, ratio = torch.tensor([[1, 0], [0, 1]]), torch.full((2, 1, 1, 1), 0.7, dtype=torch.float64)
        assert torch.autograd.gradcheck(lambda a, b: graph_emd(a, single, b, single, partners, ratio=ratio), (u, v))

    def test_the_order_of_nodes_and_the_padding_do_not_matter(self, generator: torch.Generator) -> None:
        u, v = embeddings(generator, 6), embeddings(generator, 5)
        partners = torch.tensor([[0, 1, 2]] * 3)
        moved = torch.tensor([[-1, 2, 0, 1], [-1, -1, 3, -1], [5, 4, -1, -1]])
        torch.testing.assert_close(graph_emd(u, U_SETS, v, V_SETS, partners), graph_emd(u, moved, v, V_SETS, partners))

    def test_a_set_and_itself_cost_nothing_and_opposites_most(self) -> None:
        u, one = torch.tensor([[1.0, 2.0], [-1.0, -2.0]]), torch.tensor([[0], [1]])
        emd = graph_emd(u, one, u, one, torch.tensor([[0, 1], [1, 0]]))
        torch.testing.assert_close(emd, torch.tensor([[0.0, 2.0], [0.0, 2.0]]))

    def test_a_zero_row_has_no_gradient_and_no_nan(self) -> None:
        u = torch.tensor([[0.0, 0.0], [1.0, 0.0]], requires_grad=True)
        both = torch.tensor([[0, 1]])
        graph_emd(u, both, u, both, torch.tensor([[0]])).sum().backward()
        assert u.grad is not None
        assert u.grad[0].tolist() == [0.0, 0.0]
        assert torch.isfinite(u.grad).all()

    def test_errors(self, generator: torch.Generator) -> None:
        u = embeddings(generator, 6)
        with pytest.raises(MarioError, match=r"u_sets must hold rows 0\.\.5, or -1, got 0\.\.6"):
            graph_emd(u, torch.tensor([[0, 6]]), u, U_SETS, torch.tensor([[0]]))
        with pytest.raises(MarioError, match="v_sets has a set of no nodes"):
            graph_emd(u, U_SETS, u, torch.tensor([[-1]]), torch.tensor([[0]] * 3))
        with pytest.raises(MarioError, match=r"partners must be int64 \[3, S\]"):
            graph_emd(u, U_SETS, u, U_SETS, torch.tensor([[0]]))


class TestNce:
    @pytest.mark.parametrize("with_hops", [False, True])
    @pytest.mark.parametrize("with_positive", [False, True])
    def test_equals_the_formula(self, generator: torch.Generator, with_hops: bool, with_positive: bool) -> None:
        u, v = embeddings(generator, 6), embeddings(generator, 5)
        hops = torch.randint(4, (3, 3, 2), generator=generator).double() if with_hops else None
        ours = transport_nce(u, U_SETS, v, V_SETS, 0.4, hops=hops, positive_in_denominator=with_positive)
        slow = slow_nce([[take(u, s) for s in U_SETS], [take(v, s) for s in V_SETS]], 0.4, hops, with_positive)
        torch.testing.assert_close(ours, slow)
        torch.testing.assert_close(torch.autograd.grad(ours, (u, v)), torch.autograd.grad(slow, (u, v)))

    @pytest.mark.parametrize("with_positive", [False, True])
    def test_groups_are_contrasted_by_themselves_and_scaled_up(
        self, generator: torch.Generator, with_positive: bool
    ) -> None:
        u, v = embeddings(generator, 14), embeddings(generator, 12)
        u_sets = torch.cat([U_SETS, torch.where(U_SETS < 0, U_SETS, U_SETS + 6)[:2], torch.tensor([[12, 13, -1]])])
        v_sets = torch.cat([V_SETS, torch.where(V_SETS < 0, V_SETS, V_SETS + 5)])
        hops = torch.randint(4, (6, 3, 2), generator=generator).double()
        given = {"hops": hops, "positive_in_denominator": with_positive}
        ours = transport_nce(u, u_sets, v, v_sets, 0.4, group=3, **given)
        slow = []
        for part in (slice(3), slice(3, 6)):
            views = [[take(z, s) for s in sets[part]] for z, sets in ((u, u_sets), (v, v_sets))]
            slow.append(slow_nce(views, 0.4, hops[part], with_positive, stand_for=5))
        torch.testing.assert_close(ours, torch.stack(slow).mean())
        expected = torch.autograd.grad(torch.stack(slow).mean(), (u, v))
        torch.testing.assert_close(torch.autograd.grad(ours, (u, v)), expected)

    def test_over_all_ways_to_group_the_sums_over_negatives_are_those_over_all(
        self, generator: torch.Generator
    ) -> None:
        # Sets of one node that is the same in both views: s⁺ = 2, and with τ large e^{s/τ} is 1 + s/τ, so that the mean
        # over groupings is that of a sum and not of a logarithm.
        u = embeddings(generator, 4)

        def loss(order: list[int], group: int) -> Tensor:
            one = torch.tensor(order).unsqueeze(1)
            return transport_nce(u, one, u, one, 1e4, group=group).detach() * 1e4

        ways = [loss(order, 2) for order in ([0, 1, 2, 3], [0, 2, 1, 3], [0, 3, 1, 2])]
        torch.testing.assert_close(torch.stack(ways).mean(), loss([0, 1, 2, 3], 0), rtol=0, atol=1e-3)

    @pytest.mark.parametrize(("group", "sizes"), [(0, [5]), (2, [3, 2]), (3, [3, 2]), (4, [3, 2]), (5, [5]), (9, [5])])
    def test_groups_are_about_even_and_none_is_of_one(
        self, monkeypatch: pytest.MonkeyPatch, generator: torch.Generator, group: int, sizes: list[int]
    ) -> None:
        met: list[int] = []
        emd = transport.graph_emd
        monkeypatch.setattr(transport, "graph_emd", lambda z, s, *a, **k: met.append(len(s) // 2) or emd(z, s, *a, **k))
        u, one = embeddings(generator, 5), torch.arange(5).unsqueeze(1)
        transport_nce(u, one, u, one, group=group)
        assert met == sizes

    def test_views_that_are_the_same_have_the_least_loss(self, generator: torch.Generator) -> None:
        u = embeddings(generator, 6)
        assert transport_nce(u, U_SETS, u, U_SETS) < transport_nce(u, U_SETS, u.flip(0), U_SETS)

    def test_errors(self, generator: torch.Generator) -> None:
        u = embeddings(generator, 6)
        with pytest.raises(MarioError, match="the same two or more sets, got 1 and 1"):
            transport_nce(u, U_SETS[:1], u, U_SETS[:1])
        with pytest.raises(MarioError, match="group must be 0 or at least 2, got 1"):
            transport_nce(u, U_SETS, u, U_SETS, group=1)
        with pytest.raises(MarioError, match="tau must be a finite number above 0"):
            transport_nce(u, U_SETS, u, U_SETS, tau=math.nan)
