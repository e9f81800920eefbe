"""Editing graphs, the policy that edits them, and the objective over the edited graphs."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj

from mario.graphs.features import Features
from mario.methods import EERM, ERM, eerm
from mario.methods.eerm import candidate_nodes, draw, draw_uniformly, flip_edges, log_probability

from .tiny import tiny_graph

SMALL = {"hidden_channels": 4, "num_layers": 1, "generators": 3}


def prepared(**settings: object) -> tuple[EERM, Data]:
    model = EERM(**{**SMALL, **settings})
    graph = model.prepare(tiny_graph())
    model.train()
    return model, graph


class TestFlipEdges:
    def test_by_hand(self) -> None:
        edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        edited = flip_edges(edge_index, torch.tensor([[1, 3, 2], [0, 1, 2]]), 4)
        assert sorted(map(tuple, edited.t().tolist())) == [(0, 1), (1, 2), (2, 1), (2, 2), (3, 1)]

    def test_equals_the_dense_formula(self, generator: torch.Generator) -> None:
        a = torch.rand(7, 7, generator=generator) < 0.4
        b = torch.rand(7, 7, generator=generator) < 0.4
        edited = flip_edges(a.nonzero().t(), b.nonzero().t(), 7)
        a, b = a.float(), b.float()
        assert torch.equal(to_dense_adj(edited, max_num_nodes=7)[0], a + b * ((1 - a) - a))

    def test_nothing_to_flip_and_nothing_there(self) -> None:
        edge_index, none = torch.tensor([[0, 1], [1, 0]]), torch.empty(2, 0, dtype=torch.long)
        assert torch.equal(flip_edges(edge_index, none, 2), edge_index)
        assert torch.equal(flip_edges(none, edge_index, 2), edge_index)


class TestDraws:
    @pytest.mark.parametrize("edits", [1, 2, 3])
    def test_frequencies_are_the_probabilities(self, edits: int, generator: torch.Generator) -> None:
        logits = torch.tensor([0.0, 1.0, 2.0])
        rows = draw(logits.expand(1, 30_000, 3), edits, generator)[0].tolist()
        for order in itertools.permutations(range(3), edits):
            expected = log_probability(logits.view(1, 1, 3), torch.tensor([[order]])).exp().item()
            assert rows.count(list(order)) / 30_000 == pytest.approx(expected, abs=0.01)

    def test_probability_without_replacement_by_hand(self) -> None:
        weights = torch.tensor([1.0, 2.0, 5.0])
        log_p = log_probability(weights.log().view(1, 1, 3), torch.tensor([[[1, 2]]]))
        assert log_p.exp().item() == pytest.approx(2 / 8 * 5 / 6)

    def test_uniform_draws_are_those_of_generators_with_fresh_logits(self, generator: torch.Generator) -> None:
        fresh = draw(torch.rand(20_000, 4, 4, generator=generator), 2, generator)
        uniform = draw_uniformly(20_000, 4, 2, generator)
        for picks in (fresh, uniform):
            pairs = picks.sort(dim=2).values.view(-1, 2).tolist()
            for pair in itertools.combinations(range(4), 2):
                assert pairs.count(list(pair)) / 80_000 == pytest.approx(1 / 6, abs=0.01)

    def test_more_edits_than_nodes_are_all_nodes(self) -> None:
        assert draw(torch.zeros(1, 2, 2), 5).sort().values.tolist() == [[[0, 1], [0, 1]]]
        assert draw_uniformly(1, 2, 5).sort().values.tolist() == [[[0, 1], [0, 1]]]

    def test_no_edits(self) -> None:
        assert draw(torch.zeros(2, 3, 3), 0).shape == draw_uniformly(2, 3, 0).shape == (2, 3, 0)


class TestCandidates:
    def test_are_distinct_and_any_node_is_as_likely(self, generator: torch.Generator) -> None:
        counts = torch.zeros(5, 5)
        for _ in range(3000):
            allowed = candidate_nodes(5, 2, generator)
            assert (allowed[:, 0] != allowed[:, 1]).all()
            counts.scatter_add_(1, allowed, torch.ones(5, 2))
        assert (counts / 3000 - 2 / 5).abs().max() < 0.05

    def test_as_many_as_nodes_are_the_exact_generators(self) -> None:
        """The sampled branch with all nodes as candidates, and the exact one, give the same bits."""
        results = []
        for exact_nodes in (0, 1000):
            model, graph = prepared(inner_steps=3, exact_nodes=exact_nodes, candidates=80)
            results.append((model.step(graph, torch.Generator().manual_seed(0)), model.head_.weight.grad))
        assert results[0][0] == results[1][0]
        assert torch.equal(results[0][1], results[1][1])

    def test_of_large_batches_are_few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shapes = []
        monkeypatch.setattr("mario.methods.eerm.draw", lambda z, *rest: shapes.append(z.shape) or draw(z, *rest))
        model, graph = prepared(inner_steps=2, exact_nodes=79, candidates=6)
        model.step(graph, torch.Generator().manual_seed(0))
        assert shapes == [(3, 80, 6)] * 2


class TestReinforce:
    def test_is_the_gradient_of_the_expected_reward(self) -> None:
        """Two generators, two nodes, two possible sources: sixteen outcomes, all of them counted."""
        logits = torch.tensor(
            [[[0.3, -0.2], [0.1, 0.9]], [[-1.0, 0.4], [0.0, 0.5]]], dtype=torch.float64, requires_grad=True
        )

        def reward(picks: torch.Tensor) -> torch.Tensor:
            edited = [
                flip_edges(torch.tensor([[0], [1]]), torch.stack([pick[:, 0], torch.arange(2)]), 2) for pick in picks
            ]
            risks = torch.tensor([(edges[0] + 2.0 * edges[1] + 0.7).prod().item() for edges in edited])
            return risks.var()

        outcomes = [torch.tensor(o).view(2, 2, 1) for o in itertools.product((0, 1), repeat=4)]
        p = logits.softmax(dim=2)
        expected = sum(p.gather(2, picks).prod() * reward(picks) for picks in outcomes)
        theirs = torch.autograd.grad(expected, logits)[0]
        ours = torch.zeros_like(logits)
        for picks in outcomes:
            log_p = log_probability(logits, picks)
            ours += log_p.exp().detach() * torch.autograd.grad(reward(picks) * log_p, logits)[0]
        assert theirs.abs().max() > 0.1
        torch.testing.assert_close(ours, theirs)

    def test_generators_learn_to_disagree(self) -> None:
        """The risk is the share of edges from node 0: its variance is 0.5 at most, when one generator always draws that
        node and the other never does."""

        class Counting(EERM):
            def risk(self, batch: Data, known: torch.Tensor, source: torch.Tensor, generator: object) -> torch.Tensor:
                return (source == 0).float().mean()

        def variance(updates: int, seed: int) -> float:
            model = Counting(generators=2, inner_steps=updates + 1, generator_lr=0.1)
            sources = model.explore(Data(), torch.ones(5, dtype=torch.bool), torch.Generator().manual_seed(seed))
            return (sources == 0).float().mean(dim=(1, 2)).var().item()

        assert sum(variance(0, seed) for seed in range(5)) / 5 < 0.1
        assert sum(variance(300, seed) for seed in range(5)) / 5 > 0.25


class TestObjective:
    def test_mean_and_variance_and_their_gradient_by_hand(self) -> None:
        model, graph = prepared(beta=0.7, batch_norm=False)
        sources = draw_uniformly(3, 80, 1, torch.Generator().manual_seed(1))
        values = model.descend(graph, graph.train_mask, sources, torch.Generator())
        risks = []
        for k in range(3):
            a = to_dense_adj(graph.edge_index, max_num_nodes=80)[0]
            for i in range(80):
                if (m := int(sources[k, i, 0])) != i:
                    a[m, i] = 1 - a[m, i]
            logits = model.head_(model.encoder_(graph.x, a.nonzero().t()))
            risks.append(F.cross_entropy(logits[graph.train_mask], graph.y[graph.train_mask]))
        mean = sum(risks) / 3
        variance = sum((risk - mean) ** 2 for risk in risks) / 2
        loss = variance + 0.7 * mean
        assert values == pytest.approx({"loss": loss.item(), "mean": mean.item(), "variance": variance.item()})
        for p, expected in zip(model.parameters(), torch.autograd.grad(loss, list(model.parameters())), strict=True):
            torch.testing.assert_close(p.grad, expected, rtol=1e-4, atol=1e-6)

    def test_wide_features_are_multiplied_once_for_all_graphs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        products: list[int] = []
        times = Features.product
        monkeypatch.setattr(Features, "product", lambda self, w: products.append(id(times(self, w))) or times(self, w))
        found = []
        for wide in (False, True):
            monkeypatch.setattr(eerm, "is_wide", lambda _, wide=wide: wide)
            model, graph = prepared(num_layers=2, inner_steps=2)
            losses = model.step(graph, torch.Generator().manual_seed(0))
            found.append((losses, [p.grad for p in model.trained()]))
        torch.testing.assert_close(found[1], found[0])
        assert len(products) == 6  # of two draws of three graphs
        assert len(set(products)) == 1

    def test_without_edits_it_is_erm(self) -> None:
        erm = ERM(hidden_channels=4, num_layers=1)
        risk = erm.step(erm.prepare(tiny_graph()), torch.Generator())["loss"]
        model, graph = prepared(edits=0, beta=2.0)
        values = model.step(graph, torch.Generator())
        assert values == pytest.approx({"loss": 2 * risk, "mean": risk, "variance": 0.0}, abs=1e-6)
        torch.testing.assert_close(model.head_.weight.grad, 2 * erm.head_.weight.grad)

    def test_beta_grows_linearly_to_its_multiple(self) -> None:
        model, graph = prepared(edits=0, beta=2.0, beta_growth=10.0)
        weights = []
        for step in range(5):
            values = model.step(graph, torch.Generator())
            weights.append(values["loss"] / values["mean"])
            model.after_step(step, 4)
        assert weights == pytest.approx([2.0, 6.5, 11.0, 15.5, 20.0])


class TestOptions:
    def test_last_learns_from_trained_generators_and_first_from_fresh_ones(self) -> None:
        def gradient(**settings: object) -> torch.Tensor:
            model, graph = prepared(**settings)
            model.step(graph, torch.Generator().manual_seed(0))
            return model.head_.weight.grad

        first = gradient(outer="first", inner_steps=5)
        assert torch.equal(first, gradient(outer="last", inner_steps=1))
        assert not torch.equal(first, gradient(outer="last", inner_steps=5))

    @pytest.mark.parametrize("self_loops", [False, True])
    def test_self_loops_are_flipped_only_if_asked(self, self_loops: bool) -> None:
        model, graph = prepared(self_loops=self_loops, encoder="sage")
        to_itself = torch.arange(80).view(80, 1)
        none = torch.empty(80, 0, dtype=torch.long)
        edited, plain = (model.risk(graph, graph.train_mask, source, None) for source in (to_itself, none))
        assert (edited == plain).item() is not self_loops

    def test_training_nodes_alone_are_what_an_inductive_graph_shows(self) -> None:
        data = tiny_graph()
        data.setting = "inductive"
        whole = EERM(**SMALL)
        expected = whole.step(whole.prepare(data), torch.Generator().manual_seed(0))
        model, graph = prepared(edited="training_nodes")
        assert model.step(graph, torch.Generator().manual_seed(0)) == expected

    def test_a_batch_without_training_nodes_gives_nothing(self) -> None:
        for edited in ("graph", "training_nodes"):
            model, graph = prepared(edited=edited)
            graph.train_mask = torch.zeros(80, dtype=torch.bool)
            assert model.step(graph, torch.Generator()) == {}

    def test_only_seeds_of_sampled_neighborhoods_are_scored(self) -> None:
        model, graph = prepared(edits=0, batch_norm=False)
        graph.seed_mask = torch.arange(80) < 40
        mean = model.step(graph, torch.Generator())["mean"]
        known = graph.train_mask & graph.seed_mask
        logits = model.head_(model.encoder_(graph.x, graph.edge_index))[known]
        assert math.isclose(mean, F.cross_entropy(logits, graph.y[known]).item(), rel_tol=1e-5)
