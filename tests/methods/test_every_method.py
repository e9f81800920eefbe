"""One suite that every registered method passes: the `MethodTester`."""

import copy

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

import mario
from mario.errors import MarioError
from mario.methods import REGISTRY, Method, TwoView, find
from mario.training import train

from .tiny import tiny_graph

HOSTS = [f"{name}+mario" for name, cls in REGISTRY.items() if getattr(cls, "host", False) and name != "grace"]
LEARNED = [name for name, cls in REGISTRY.items() if cls.trains] + HOSTS
SMALL = {"hidden": 8, "layers": 2, "epochs": 3, "steps_per_epoch": 2, "roots": 60}


def make(name: str, **settings: object) -> Method:
    given = {**SMALL, **({"clusters": 4} if "clusters" in {f.name for f in find(name).fields()} else {}), **settings}
    return find(name).from_settings(given)


@pytest.fixture(params=[*REGISTRY, *HOSTS])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


class TestEveryMethod:
    def test_embeds_every_node_without_nan(self, name: str) -> None:
        data = tiny_graph()
        z = make(name).fit(data).transform(data)
        assert z.shape == (80, 4 if name == "raw-features" else 8)
        assert torch.isfinite(z).all()

    def test_improves_its_own_loss_if_it_has_one(self, name: str) -> None:
        model = make(name, epochs=30, lr=1e-2)
        graph = model.prepare(tiny_graph(), seed=0)
        losses = [epoch.losses.get("loss") for epoch in train(model, graph, seed=0)]
        assert sum(losses[-5:]) < sum(losses[:5]) if name in LEARNED else set(losses) == {None}

    def test_same_seed_same_bits_and_another_seed_others(self, name: str) -> None:
        data = tiny_graph()
        state = torch.get_rng_state()
        first, again, other = (make(name).fit(data, seed=seed).transform(data) for seed in (1, 1, 2))
        assert torch.equal(first, again)
        assert name == "raw-features" or not torch.equal(first, other)
        assert torch.equal(state, torch.get_rng_state()), "fit must leave torch's default generator alone"

    def test_saved_and_loaded_it_embeds_the_same_bits(self, name: str, tmp_path) -> None:
        data = tiny_graph()
        model = make(name).fit(data)
        model.save(tmp_path / "model.safetensors")
        loaded = mario.load(tmp_path / "model.safetensors")
        assert type(loaded) is type(model)
        assert loaded.get_params() == model.get_params()
        assert torch.equal(model.transform(data), loaded.transform(data))

    def test_resumes_with_the_same_bits(self, name: str, tmp_path) -> None:
        data = tiny_graph()
        whole = make(name).fit(data, seed=3).transform(data)
        stopped = make(name)
        for epoch in train(stopped, stopped.prepare(data, seed=3), seed=3, folder=tmp_path, checkpoints=3):
            if epoch.number == 2:
                break
        resumed = make(name).fit(data, seed=3, folder=tmp_path).transform(data)
        assert torch.equal(whole, resumed)

    def test_a_folder_of_another_training_is_refused(self, name: str, tmp_path) -> None:
        data = tiny_graph()
        make(name).fit(data, seed=3, folder=tmp_path)
        with pytest.raises(MarioError, match="seed is 3 there and 4 here"):
            make(name).fit(data, seed=4, folder=tmp_path)
        with pytest.raises(MarioError, match="epochs is 3 there and 5 here"):
            make(name, epochs=5).fit(data, seed=3, folder=tmp_path)

    def test_embedding_permutes_with_the_nodes(self, name: str) -> None:
        data = tiny_graph()
        model = make(name).fit(data)
        order = torch.randperm(80, generator=torch.Generator().manual_seed(0))
        place = torch.empty(80, dtype=torch.long).scatter_(0, order, torch.arange(80))
        moved = Data(x=data.x[order], edge_index=coalesce(place[data.edge_index]))
        torch.testing.assert_close(model.transform(moved), model.transform(data)[order], atol=1e-5, rtol=1e-4)

    def test_runs_inductively_on_training_nodes_only(self, name: str) -> None:
        data = tiny_graph()
        data.setting = "inductive"
        changed = copy.copy(data)
        changed.x = torch.where(data.train_mask.unsqueeze(1), data.x, torch.rand(80, 4))
        model, other = make(name).fit(data), make(name).fit(changed)
        for (key, a), (_, b) in zip(model.state_dict().items(), other.state_dict().items(), strict=True):
            assert torch.equal(a, b), f"{key} depends on nodes that are not for training"
        assert model.transform(data).shape[0] == 80

    @pytest.mark.parametrize("labels", ["shuffled", "absent"])
    def test_labels_outside_training_change_nothing(self, name: str, labels: str) -> None:
        data = tiny_graph()
        poisoned = copy.copy(data)
        if labels == "absent" and not find(name).supervised:
            del poisoned.y
        else:
            poisoned.y = torch.where(data.train_mask, data.y, 1 - data.y)
        first, second = make(name).fit(data).state_dict(), make(name).fit(poisoned).state_dict()
        assert all(torch.equal(first[key], second[key]) for key in first)

    @pytest.mark.parametrize("case", ["isolated node", "no edges", "constant features", "disconnected"])
    def test_odd_graphs_work(self, name: str, case: str) -> None:
        data = tiny_graph()
        if case == "isolated node":
            data.edge_index = data.edge_index[:, (data.edge_index != 0).all(0)]
        elif case == "no edges":
            data.edge_index = data.edge_index[:, :0]
        elif case == "constant features":
            data.x = torch.ones_like(data.x)
        else:
            data.edge_index = data.edge_index[:, (data.edge_index[0] < 40) == (data.edge_index[1] < 40)]
        assert torch.isfinite(make(name).fit(data).transform(data)).all()

    def test_one_node_works_or_says_why_not(self, name: str) -> None:
        data = tiny_graph()
        one = Data(x=data.x[:1], edge_index=data.edge_index[:, :0], y=data.y[:1], train_mask=torch.tensor([True]))
        if isinstance(make(name), TwoView) or name == "erm":
            with pytest.raises(MarioError, match=r"one node|one row"):
                make(name).fit(one)
        else:
            assert torch.isfinite(make(name).fit(one).transform(one)).all()

    def test_sparse_features_are_taken(self, name: str) -> None:
        data, sparse = tiny_graph(), tiny_graph()
        data.x = data.x * (data.x > 0.5)
        sparse.x = data.x.to_sparse_csr()
        # Adam's first step is the sign of a gradient, which rounding may flip: keep the step itself small.
        first, second = (make(name, lr=1e-5).fit(graph).transform(graph) for graph in (sparse, data))
        torch.testing.assert_close(first, second, atol=1e-3, rtol=1e-3)

    def test_a_bare_graph_without_labels_and_masks_is_enough(self, name: str) -> None:
        data = tiny_graph()
        bare = Data(x=data.x, edge_index=data.edge_index)
        if find(name).supervised:
            with pytest.raises(MarioError, match="needs y and train_mask"):
                make(name).fit(bare)
        else:
            assert torch.equal(make(name).fit(bare).transform(bare), make(name).fit(data).transform(data))

    def test_double_precision_features_are_taken(self, name: str) -> None:
        data, double = tiny_graph(), tiny_graph()
        double.x = double.x.double()
        assert torch.equal(make(name).fit(double).transform(double), make(name).fit(data).transform(data))

    @pytest.mark.parametrize("encoder", ["sage", "gat", "gin"])
    def test_every_encoder(self, name: str, encoder: str) -> None:
        data = tiny_graph()
        assert torch.isfinite(make(name, encoder=encoder, epochs=1).fit(data).transform(data)).all()

    @pytest.mark.parametrize("sampling", ["full", "neighbours", "clusters"])
    @pytest.mark.parametrize("roots", [20, 1000])
    def test_every_sampler(self, name: str, sampling: str, roots: int) -> None:
        data = tiny_graph()
        model = make(name, sampling=sampling, epochs=1, roots=roots)
        assert torch.isfinite(model.fit(data).transform(data)).all()

    def test_bad_input_is_one_clear_error(self, name: str) -> None:
        data = tiny_graph()
        model = make(name).fit(data)
        with pytest.raises(MarioError, match="the graph has 5"):
            model.transform(Data(x=torch.ones(3, 5), edge_index=torch.zeros(2, 0, dtype=torch.long)))
        data.x[0, 0] = float("nan")
        with pytest.raises(MarioError, match=r"(?i)nan"):
            make(name).fit(data)
        with pytest.raises(MarioError, match="not fitted"):
            make(name).transform(data)
        with pytest.raises(MarioError, match="has no setting 'nonsense'"):
            find(name).from_settings({"nonsense": 1})

    def test_diagnostics_are_logged_by_every_method_with_views(self, name: str) -> None:
        model = make(name)
        graph = model.prepare(tiny_graph())
        figures = model.diagnostics(graph, torch.Generator().manual_seed(0))
        if isinstance(model, TwoView):
            assert figures["alignment"] <= figures["worst_case_alignment"]
            assert figures["uniformity"] <= 0


def test_above_the_random_init_control_on_a_graph_that_shifts() -> None:
    """Every method that learns beats the control out of distribution, on average over five tiny graphs."""
    means = {}
    for name in ["random-init", *LEARNED]:
        scores = []
        for seed in range(5):
            data = tiny_graph(seed, nodes=120)
            model = make(name, hidden=16, epochs=20, steps_per_epoch=5, lr=1e-2).fit(data, seed=seed)
            scores.append(mario.evaluate(model, data)["ood_test"])
        means[name] = sum(scores) / len(scores)
    for name in LEARNED:
        assert means[name] > means["random-init"], means
