"""Steady over a method: channels, the gate, centers and what it says."""

import copy
import pickle

import pytest
import torch
from sklearn.base import clone
from torch import Tensor
from torch_geometric.data import Data

import mario
from mario.errors import MarioError
from mario.graphs import Block, load_mapped, save_mapped
from mario.graphs.paging import mapping_of
from mario.graphs.scratch import Scratch
from mario.methods import find
from mario.methods.readability import readability
from mario.methods.registry import systems

SMALL = {"hidden_channels": 6, "num_layers": 2, "epochs": 1, "steps_per_epoch": 2, "sampling": "full"}


def graph(seed: int = 0, nodes: int = 240, domains: int = 3, apart: float = 5.0) -> Data:
    """A random graph whose features are ``apart`` by domain in their first column."""
    draws = torch.Generator().manual_seed(seed)
    domain = torch.arange(nodes) % domains
    x = torch.randn(nodes, 4, generator=draws)
    x[:, 0] += apart * domain
    same = domain.unsqueeze(0) == domain.unsqueeze(1)
    linked = (torch.rand(nodes, nodes, generator=draws) < 0.05) & same
    edge_index = (linked | linked.t()).nonzero().t().contiguous()
    return Data(x=x, edge_index=edge_index, domain_id=domain)


def steady(host: mario.methods.Method | None = None, **settings: object) -> mario.methods.Method:
    return mario.Steady(host or mario.GRACE(**SMALL), **settings)


def slow(values: Tensor, domain: Tensor, centered: bool) -> Tensor:
    """The channel from its definition: rows minus the mean of their domain, at a mean squared length of 1."""
    values = values.double()
    whole = values - values.mean(0)
    if centered:
        values = whole = torch.stack([row - values[domain == d].mean(0) for row, d in zip(values, domain, strict=True)])
    return values / whole.square().sum(1).mean().sqrt()


class TestSteady:
    @pytest.mark.parametrize("center", ["always", "never"])
    def test_is_what_the_definition_says(self, center: str) -> None:
        data = graph()
        host = mario.GRACE(**SMALL)
        z = steady(host, center=center).fit(data).transform(data)
        g = host.fit(data).transform(data)
        due = torch.cat([slow(part, data.domain_id, center == "always") for part in (data.x, g)], 1)
        torch.testing.assert_close(z.double(), due, atol=1e-5, rtol=1e-4)

    def test_trains_the_host_to_the_bit(self) -> None:
        data, host = graph(), mario.GRACE(**SMALL)
        made, due = steady(host).fit(data).state_dict(), host.fit(data).state_dict()
        assert made.keys() == due.keys()
        assert all(torch.equal(made[key], due[key]) for key in due)

    def test_the_gate_centers_where_the_domain_can_be_read(self) -> None:
        apart, alike = graph(apart=5.0), graph(apart=0.0)
        assert [d.centered for d in steady(channels=("x",)).fit(apart).decisions_] == [True]
        assert [d.centered for d in steady(channels=("x",)).fit(alike).decisions_] == [False]

    def test_x_follows_another_channel(self) -> None:
        data = graph(apart=0.0)
        data.x[:, 0] += 3.0  # of the neighbors' mean, which the first domain lacks
        data.edge_index = data.edge_index[:, (data.domain_id != 0)[data.edge_index[0]]]
        model = steady(mario.Hops(hops=1, epochs=1), threshold=0.2).fit(data)
        x, hop = model.decisions_
        assert x.readability <= 0.2 < hop.readability
        assert (x.centered, hop.centered) == (True, True)
        assert "hop1" in x.why

    def test_the_threshold_decides(self) -> None:
        data = graph(apart=1.0)
        (found,) = steady(channels=("x",)).fit(data).decisions_
        assert 0 < found.readability < 1
        for threshold, centered in ((found.readability - 0.01, True), (found.readability + 0.01, False)):
            assert steady(channels=("x",), threshold=threshold).fit(data).decisions_[0].centered is centered

    def test_no_label_is_read(self) -> None:
        data = mario.load_dataset("good-cbas", shift="covariate")
        other = copy.copy(data)
        other.y = data.y.roll(1)
        made = [steady().fit(given).transform(given) for given in (data, other)]
        assert torch.equal(*made)

    def test_sparse_features_stay_sparse_and_are_the_same(self) -> None:
        data = graph()
        data.x = data.x * (data.x > 0)
        wide = copy.copy(data)
        wide.x = data.x.to_sparse_csr()
        for center in ("always", "never"):
            model = steady(channels=("x",), center=center).fit(wide)
            block = model.blocks(wide)["x"]
            assert block.is_sparse
            torch.testing.assert_close(block.dense(), steady(channels=("x",), center=center).fit(data).transform(data))

    def test_a_graph_on_disk_stays_there(self, tmp_path) -> None:
        data = graph()
        save_mapped(data, tmp_path / "graph")
        mapped = load_mapped(tmp_path / "graph")
        model = steady(center="always").fit(mapped)
        block = model.blocks(mapped)["x"]
        assert block.values.data_ptr() == mapped.x.data_ptr()
        torch.testing.assert_close(model.transform(mapped), steady(center="always").fit(data).transform(data))

    @pytest.mark.parametrize("host", [mario.GRACE(**SMALL), mario.Hops(epochs=1)], ids=["grace", "hops"])
    def test_without_memory_all_channels_are_on_disk_and_the_same(self, host: mario.methods.Method, tmp_path) -> None:
        data = graph()
        save_mapped(data, tmp_path / "graph")
        model = steady(host, center="always").fit(data)
        new = load_mapped(tmp_path / "graph")
        new.domain_id = new.domain_id + 2  # some known, some not
        with Scratch(memory=1):
            found = model.blocks(new)
        assert all(mapping_of(block.values) is not None for block in found.values())
        torch.testing.assert_close(found.dense(), model.transform(new))

    def test_saved_and_loaded_says_and_does_the_same(self, tmp_path) -> None:
        data = graph()
        model = steady(center="always").fit(data)
        model.save(tmp_path / "model.safetensors")
        loaded = mario.load(tmp_path / "model.safetensors")
        assert loaded.decisions_ == model.decisions_
        assert loaded.blocks_ == model.blocks_
        assert torch.equal(loaded.transform(data), model.transform(data))
        again = pickle.loads(pickle.dumps(model))
        assert torch.equal(again.transform(data), model.transform(data))
        assert clone(model).get_params() == model.get_params()


class TestDomains:
    def test_a_new_domain_is_centered_by_its_own_nodes(self) -> None:
        data = graph()
        model = steady(channels=("x",), center="always").fit(data)
        new = copy.copy(data)
        new.domain_id = data.domain_id + 10 * (data.domain_id == 2)
        new.x = data.x + 100.0 * (data.domain_id == 2).unsqueeze(1)
        z = model.transform(new)
        assert z[new.domain_id == 12].mean(0).abs().max() < 1e-4
        assert model.notes_ == ["x: domain 12 is new; centered by its own 80 nodes"]
        assert torch.equal(z[new.domain_id == 0], model.transform(data)[data.domain_id == 0])

    def test_few_nodes_are_drawn_toward_the_training_mean_without_a_cliff(self) -> None:
        data = graph()
        model = steady(channels=("x",), center="always", min_nodes=20).fit(data)
        shift = []
        for count in (1, 5, 10, 19, 20, 40):
            few = Data(x=torch.ones(count, 4), edge_index=data.edge_index[:, :0])
            z = model.transform(few, domain=torch.full((count,), 7))
            shift.append(float(z[0, 1]))
            assert ("training mean" in model.notes_[0]) == (count < 20)
        scale, mean = model.blocks(data)["x"].scale, data.x[:, 1].mean()
        due = [float((1 - mean) * scale * (1 - min(1, count / 20))) for count in (1, 5, 10, 19, 20, 40)]
        assert shift == pytest.approx(due, abs=1e-5)

    def test_domains_may_be_an_argument(self) -> None:
        data = graph()
        bare = Data(x=data.x, edge_index=data.edge_index)
        given = steady(center="always").fit(bare, domain=data.domain_id)
        assert torch.equal(
            given.transform(bare, domain=data.domain_id), steady(center="always").fit(data).transform(data)
        )
        assert "domain_id" not in bare

    def test_without_domains_it_has_channels_alone_and_says_so(self) -> None:
        data = graph()
        bare = Data(x=data.x, edge_index=data.edge_index)
        model = steady().fit(bare)
        assert {str(d) for d in model.decisions_} == {
            "x: no domain ids: not centered",
            "graph: no domain ids: not centered",
        }
        assert torch.equal(model.transform(bare), model.transform(data))

    def test_a_graph_without_domains_is_centered_by_the_training_mean_with_a_warning(self) -> None:
        data = graph()
        model = steady(channels=("x",), center="always").fit(data)
        bare = Data(x=data.x, edge_index=data.edge_index)
        with pytest.warns(UserWarning, match="no domain_id"):
            z = model.transform(bare)
        torch.testing.assert_close(z, (data.x - data.x.mean(0)) * model.blocks(data)["x"].scale)

    def test_inductively_only_what_training_sees_is_measured(self) -> None:
        data = mario.load_dataset("good-cbas", shift="concept", setting="inductive")
        changed = copy.copy(data)
        changed.x = torch.where(data.train_mask.unsqueeze(1), data.x, data.x + 3.0)
        first, second = (steady(center="always").fit(given) for given in (data, changed))
        assert first.decisions_ == second.decisions_
        assert torch.equal(first.transform(data), second.transform(data))


class TestBrokenCases:
    def test_one_domain_only(self) -> None:
        data = graph(domains=1)
        model = steady(center="always").fit(data)
        assert {d.why for d in model.decisions_} == {"one domain only: not centered"}
        assert torch.isfinite(model.transform(data)).all()

    def test_a_domain_of_one_node(self) -> None:
        data = graph()
        data.domain_id[7] = 9
        model = steady(channels=("x",), center="always").fit(data)
        due = (data.x[7] - (data.x[7] + 19 * data.x.mean(0)) / 20) * model.blocks(data)["x"].scale
        torch.testing.assert_close(model.transform(data)[7], due, atol=1e-5, rtol=1e-4)

    def test_a_constant_channel_is_dropped(self) -> None:
        data = graph()
        data.x = torch.full_like(data.x, 3.0)
        model = steady().fit(data)
        assert "the same for all nodes: dropped" in model.decisions_[0].why
        assert not model.transform(data)[:, model.blocks_["x"]].any()

    def test_a_channel_that_is_the_domain_is_dropped_not_blown_up(self) -> None:
        data = mario.load_dataset("good-cbas", shift="covariate")
        model = steady().fit(data)
        assert "nothing is left of it: dropped" in model.decisions_[0].why
        assert not model.transform(data)[:, model.blocks_["x"]].any()

    def test_domain_equal_to_label_is_warned_about_when_labels_are_read(self) -> None:
        data = graph(domains=2)
        data.y, data.train_mask = data.domain_id.clone(), torch.arange(240) < 120
        data.id_val_mask = ~data.train_mask
        model = steady(center="always").fit(data)
        with pytest.warns(UserWarning, match="of one class.*center='never'"):
            mario.evaluate(model, data)

    def test_more_domains_than_nodes_in_the_sample(self) -> None:
        data = graph()
        data.domain_id = torch.arange(240)
        model = steady(center="always").fit(data)
        assert torch.isfinite(model.transform(data)).all()
        assert all(0 <= d.readability <= 1 for d in model.decisions_)

    def test_unknown_domains_are_centered_by_the_training_mean(self) -> None:
        data = graph()
        data.domain_id[:30] = -1
        model = steady(channels=("x",), center="always").fit(data)
        due = (data.x[:30] - data.x.mean(0)) * model.blocks(data)["x"].scale
        torch.testing.assert_close(model.transform(data)[:30], due, atol=1e-5, rtol=1e-4)

    @pytest.mark.parametrize(
        ("domain", "message"),
        [
            (torch.zeros(3, dtype=torch.long), "domain_id"),
            (torch.zeros(240), "domain_id"),
            (torch.zeros(240, 2, dtype=torch.long), "domain_id"),
        ],
    )
    def test_domains_that_do_not_fit_are_refused(self, domain: Tensor, message: str) -> None:
        with pytest.raises(MarioError, match=message):
            steady().fit(graph(), domain=domain)
        with pytest.raises(MarioError, match=message):
            steady(center="always").fit(graph()).transform(graph(), domain=domain)

    def test_nan_in_a_channel_is_one_error(self) -> None:
        data = graph()
        model = steady().fit(data)
        with torch.no_grad():
            next(model.parameters()).fill_(float("nan"))
        with pytest.raises(MarioError, match="not finite"):
            model.transform(data)

    def test_what_it_cannot_be_laid_over(self) -> None:
        for name, message in (("erm+steady", "without labels"), ("grace+steady+steady", "steady already")):
            with pytest.raises(MarioError, match=message):
                find(name)
        with pytest.raises(MarioError, match="contrasts two views"):
            find("grace+steady+mario")
        with pytest.raises(MarioError, match="use GRACE"):
            mario.Steady(mario.GRACE)
        with pytest.raises(MarioError, match="takes a method"):
            mario.Steady("grace")

    @pytest.mark.parametrize("channels", [(), ("x", "x"), ("y",)])
    def test_bad_channels_are_refused(self, channels: tuple[str, ...]) -> None:
        with pytest.raises(MarioError, match="channels must"):
            steady(channels=channels)

    def test_names_compose(self) -> None:
        assert find("grace+mario+steady") is find("mario+steady")
        assert find("costa+mario+steady").name == "costa+mario+steady"


class TestReadability:
    def test_is_high_where_the_domain_is_a_column_and_low_in_noise(self) -> None:
        draws = torch.Generator().manual_seed(0)
        domain = torch.arange(2000) % 4
        noise = torch.randn(2000, 5, generator=draws)
        assert readability(Block(noise), domain) < 0.05
        assert readability(Block(noise + 10 * domain.unsqueeze(1)), domain) > 0.9

    def test_sparse_is_dense(self) -> None:
        draws = torch.Generator().manual_seed(0)
        x = (torch.rand(600, 30, generator=draws) < 0.2).float()
        domain = (x[:, 0] + 2 * x[:, 1]).long()
        dense, sparse = readability(Block(x), domain), readability(Block(x.to_sparse_csr()), domain)
        assert dense == pytest.approx(sparse, abs=0.03)

    def test_does_not_draw_as_the_split_did(self) -> None:
        # GOOD-CBAS is split by the first permutation of its seed: with the same one, half of the domains would be
        # in one half of the nodes.
        data = mario.load_dataset("good-cbas", shift="covariate", split_seed=0)
        assert readability(Block(data.x), data.domain_id, seed=0) == 1.0


HOSTS = [name for name in systems("node") if not find(name).supervised]


@pytest.mark.parametrize("name", HOSTS)
def test_over_every_method(name: str, tmp_path) -> None:
    data = graph(nodes=60)
    known = {field.name for field in find(name).fields()}
    small = {key: value for key, value in {**SMALL, "clusters": 4, "centers": 4}.items() if key in known}
    model = find(f"{name}+steady").from_settings(small).fit(data)
    assert torch.isfinite(model.transform(data)).all()
    assert model.blocks(data).columns == model.blocks_
    model.save(tmp_path / "model.safetensors")
    assert torch.equal(mario.load(tmp_path / "model.safetensors").transform(data), model.transform(data))
