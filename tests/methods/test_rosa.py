"""What is particular to RoSA: its views, its loss, its adversary."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import mario
from mario.errors import MarioError
from mario.graphs.csr import CSR
from mario.graphs.samplers import Neighbors
from mario.methods.rosa import RoSA, hops_between, walk_views

from .tiny import tiny_graph

SMALL = {"hidden_channels": 8, "num_layers": 2, "contrast_roots": 12}
# 0 - 1 - 2 - 3 - 4 and 0 - 4, with 5 alone.
RING = Data(x=torch.eye(6), edge_index=torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4, 4, 0], [1, 0, 2, 1, 3, 2, 4, 3, 0, 4]]))


class Identity(nn.Module):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x


def made(**settings: object) -> tuple[RoSA, Data]:
    model = RoSA(**{**SMALL, **settings})  # type: ignore[arg-type]
    return model, model.prepare(tiny_graph(), seed=0, device="cpu")


class TestViews:
    def test_a_walk_sees_its_neighbors_and_the_edges_it_took(self, generator: torch.Generator) -> None:
        csr = CSR(RING.edge_index, 6)
        view = walk_views(RING.x, csr, torch.tensor([2, 5, 0]), length=1, restart=0.0, generator=generator)
        first, second, third = (view.nodes[m[m >= 0]].tolist() for m in view.members)
        assert first in ([1, 2], [2, 3])
        assert second == [5]
        assert third in ([0, 1], [0, 4])
        assert view.nodes[view.root_rows].tolist() == [2, 5, 0]
        assert torch.equal(view.x, RING.x[view.nodes])
        assert view.edge_index.tolist() == [[0, 1, 3, 4], [1, 0, 4, 3]]

    def test_edges_are_those_of_the_graph_within_a_subgraph(self, generator: torch.Generator) -> None:
        data = tiny_graph()
        linked = torch.zeros(80, 80, dtype=torch.bool)
        linked[data.edge_index[0], data.edge_index[1]] = True
        view = walk_views(data.x, CSR(data.edge_index, 80), torch.arange(80), 10, 0.5, generator)
        owner = torch.arange(80).unsqueeze(1).expand_as(view.members)[view.members >= 0]
        source, target = view.edge_index
        assert torch.equal(owner[source], owner[target])
        assert linked[view.nodes[source], view.nodes[target]].all()
        assert view.members[view.members >= 0].tolist() == list(range(view.num_nodes))

    def test_a_walk_that_always_restarts_stays(self, generator: torch.Generator) -> None:
        view = walk_views(RING.x, CSR(RING.edge_index, 6), torch.arange(6), 5, 1.0, generator)
        assert view.nodes.tolist() == list(range(6))
        assert view.num_edges == 0

    def test_restart_keeps_walks_near(self, generator: torch.Generator) -> None:
        data = tiny_graph()
        csr = CSR(data.edge_index, 80)
        sizes = [walk_views(data.x, csr, torch.arange(80), 10, r, generator).num_nodes for r in (0.0, 0.5, 0.9)]
        assert sizes[0] > sizes[1] > sizes[2] > 80

    def test_views_have_the_same_roots_and_other_nodes(self, generator: torch.Generator) -> None:
        model, graph = made()
        alpha, beta = model.make_views(graph, generator)
        assert torch.equal(alpha.nodes[alpha.root_rows], beta.nodes[beta.root_rows])
        assert alpha.nodes[alpha.root_rows].unique().numel() == 12
        assert alpha.nodes.tolist() != beta.nodes.tolist()
        z = model.encode(alpha)
        torch.testing.assert_close(z[0], z[1][alpha.root_rows])
        assert z[0].shape == (12, 8)

    def test_as_many_edges_as_roots_are_not_taken_for_them(self) -> None:
        # Two linked nodes and two alone: a walk of one step goes along one edge, 2 with its way back, from each of two.
        graph = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1], [1, 0]]))
        model = RoSA(walk_length=1, restart=0.0, drop_edges_1=0.5, drop_edges_2=0.5)
        for seed in range(5):
            for view in model.views_of(graph, torch.arange(4), torch.Generator().manual_seed(seed)):
                assert view.nodes[view.root_rows].tolist() == [0, 1, 2, 3]
                assert view.members.shape == (4, 2)
                assert view.hops.shape == (4, 2, 2)

    def test_roots_are_seeds_where_a_batch_has_them(self, generator: torch.Generator) -> None:
        model, graph = made()
        batch = Neighbors(graph, seeds=7, fanouts=[3, 3]).sample(generator)
        alpha, beta = model.make_views(batch, generator)
        assert alpha.nodes[alpha.root_rows].sort().values.tolist() == list(range(7))
        assert torch.equal(alpha.nodes[alpha.root_rows], beta.nodes[beta.root_rows])

    def test_one_root_is_one_clear_error(self) -> None:
        one = Data(x=torch.ones(1, 4), edge_index=torch.empty(2, 0, dtype=torch.long))
        with pytest.raises(MarioError, match="one node is not enough"):
            RoSA(batch_norm=False).make_views(one)

    def test_diagnostics_compare_the_same_roots(self, generator: torch.Generator) -> None:
        model, graph = made(walk_length=1, restart=1.0, mask_features_1=0.0, mask_features_2=0.0)
        # All views of a root are the root.
        assert model.diagnostics(graph, generator)["worst_case_alignment"] == pytest.approx(0, abs=1e-10)
        assert model.training


class TestHops:
    @staticmethod
    def views() -> tuple[Data, Data]:
        alpha = Data(nodes=torch.tensor([1, 0, 5]), members=torch.tensor([[0, 1], [2, -1]]))
        beta = Data(nodes=torch.tensor([1, 2, 3, 5]), members=torch.tensor([[0, 1, 2], [3, -1, -1]]))
        return alpha, beta

    def test_exact(self) -> None:
        hops = hops_between(*self.views(), CSR(RING.edge_index, 6))
        assert hops[0].tolist() == [[0, 1, 2], [1, 2, 2]]
        assert hops[1, 0, 0] == 0

    def test_within_the_subgraphs_the_short_cut_through_4_is_not_seen(self) -> None:
        hops = hops_between(*self.views(), CSR(RING.edge_index, 6), exact=False)
        assert hops[0].tolist() == [[0, 1, 2], [1, 2, 3]]
        assert hops[1, 0, 0] == 0

    def test_within_is_never_less_and_mostly_the_same(self, generator: torch.Generator) -> None:
        data = tiny_graph()
        csr = CSR(data.edge_index, 80)
        alpha, beta = (walk_views(data.x, csr, torch.arange(80), 10, 0.5, generator) for _ in range(2))
        real = (alpha.members >= 0).unsqueeze(2) & (beta.members >= 0).unsqueeze(1)
        exact, within = (hops_between(alpha, beta, csr, exact=e)[real] for e in (True, False))
        assert (within >= exact).all()
        assert torch.equal(within[exact < 2], exact[exact < 2])
        assert (within == exact).float().mean() > 0.5


class TestLoss:
    def test_by_hand_on_two_roots(self) -> None:
        # Sets {e₀} and {e₁} in both views: the positives cost 0, all negatives 1, so that s⁺ = 2·(2 − 0) and s = 0.
        parts = {"encoder": Identity(), "projector": "identity"}
        model = RoSA(tau=1.0, walk_length=1, restart=1.0, mask_features_1=0.0, mask_features_2=0.0, **parts)
        model.place(2, 0)
        pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]))
        loss = model.contrast(*(model.encode(view) for view in model.make_views(pair)))
        assert loss.item() == pytest.approx(-4 + math.log(2), abs=1e-5)
        model.topology = False
        loss = model.contrast(*(model.encode(view) for view in model.make_views(pair)))
        assert loss.item() == pytest.approx(-2 + math.log(2), abs=1e-5)
        model.positive_in_denominator = True
        loss = model.contrast(*(model.encode(view) for view in model.make_views(pair)))
        assert loss.item() == pytest.approx(-2 + math.log(2 + math.e**2), abs=1e-5)

    def test_roots_are_contrasted_in_groups(self, generator: torch.Generator) -> None:
        model, graph = made(contrast_group=0)
        sides = [model.encode(view) for view in model.make_views(graph, generator)]
        whole = model.contrast(*sides)
        model.contrast_group = 12
        assert torch.equal(model.contrast(*sides), whole)
        model.contrast_group = 4
        assert not torch.equal(model.contrast(*sides), whole)

    def test_a_group_of_one_is_refused(self) -> None:
        with pytest.raises(MarioError, match="contrast_group must be 0, which is all roots, or at least 2, got 1"):
            RoSA(contrast_group=1)

    def test_hops_count_only_with_topology(self, generator: torch.Generator) -> None:
        with_hops, graph = made(contrast_group=0)
        assert "hops" in with_hops.make_views(graph, generator)[0]
        without, _ = made(topology=False)
        assert "hops" not in without.make_views(graph, generator)[0]


class TestAdversary:
    def test_it_raises_the_loss(self) -> None:
        data = tiny_graph()
        calm, graph = made(robust=False, contrast_group=0, batch_norm=False)
        hard = RoSA(**{**calm.get_params(), "robust": True, "robust_epsilon": 0.05, "robust_steps": 8})
        hard.prepare(data, seed=0, device="cpu")
        hard.load_state_dict(calm.state_dict())
        higher = 0
        for seed in range(5):
            losses = [m.step(graph, torch.Generator().manual_seed(seed))["loss"] for m in (calm, hard)]
            higher += losses[1] > losses[0]
        assert higher == 5

    def test_gradients_are_the_mean_over_perturbations_of_both_views(self) -> None:
        model, graph = made(contrast_group=0, robust_steps=1, robust_epsilon=0.0)
        plain = copy.deepcopy(model)
        plain.robust = False
        losses = [m.step(graph, torch.Generator().manual_seed(0))["loss"] for m in (model, plain)]
        assert losses[0] == pytest.approx(losses[1])
        for a, b in zip(model.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(a.grad, b.grad, atol=1e-6, rtol=1e-4)

    def test_the_recipe_has_the_only_adversary(self) -> None:
        data = tiny_graph()
        recipe = mario.Recipe(RoSA(**SMALL, robust_epsilon=5.0), clusters=4, epsilon=0.0)
        twin = mario.Recipe(RoSA(**SMALL, robust=False), clusters=4, epsilon=0.0)
        losses = []
        for model in (recipe, twin):
            graph = model.prepare(data, seed=0, device="cpu")
            losses.append(model.step(graph, torch.Generator().manual_seed(0))["loss"])
        assert losses[0] == losses[1]
