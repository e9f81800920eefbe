"""Encoders, projectors and views that a user brings, under every method that has such a part."""

import copy
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, PNA, GraphSAGE
from torch_geometric.transforms import BaseTransform, Compose, ToUndirected

import mario
from mario.errors import MarioError
from mario.methods import Projecting, TwoView, find
from mario.methods.registry import systems
from mario.views import Chain, DropEdges, MaskFeatures

from .test_every_method import SMALL, SMALLER, Trial
from .tiny import tiny_graph

NO_ENCODER = ("raw-features", "hops")
TRIALS = [Trial(name, level) for level in ("node", "graph") for name in systems(level) if name not in NO_ENCODER]
HISTOGRAM = torch.tensor([0, 10, 20, 30, 20])
ENCODERS = {
    "GCN": lambda: GCN(4, 8, num_layers=2),
    "GraphSAGE": lambda: GraphSAGE(4, 8, num_layers=2, out_channels=6),
    "GAT": lambda: GAT(-1, 8, num_layers=2, heads=2, dropout=0.2),
    "PNA": lambda: PNA(4, 8, 2, aggregators=["mean", "max"], scalers=["identity"], deg=HISTOGRAM, norm="batch_norm"),
}


def trial_name(trial: Trial) -> str:
    return f"{trial.name}-{trial.level}"


class Mine(nn.Module):
    """An encoder that knows nothing of PyG or mario, with weights that nobody can reset."""

    def __init__(self, in_channels: int = 4, width: int = 5) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, width)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return torch.zeros(x.size(0), x.size(1)).index_add(0, edge_index[1], x[edge_index[0]]) @ self.linear.weight.t()


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("trial", TRIALS, ids=trial_name)
def test_every_method_takes_the_encoders_of_pyg(trial: Trial, encoder: str, tmp_path) -> None:
    data = trial.data()
    made = ENCODERS[encoder]()
    before = copy.deepcopy(made).state_dict()
    model = trial.make(epochs=1, encoder=made)
    z = model.fit(data).transform(data)
    assert z.shape[1] == (6 if encoder == "GraphSAGE" else 8)
    assert torch.isfinite(z).all()
    assert type(model.encoder_) is type(made)
    if encoder != "GAT":  # which has no weights yet
        assert all(torch.equal(value, before[key]) for key, value in made.state_dict().items()), "trained in place"
    model.save(tmp_path / "model.safetensors")
    loaded = mario.load(tmp_path / "model.safetensors", encoder=ENCODERS[encoder]())
    assert torch.equal(loaded.transform(data), z)


@pytest.mark.parametrize(
    "name", ["mario", "bgrl", "costa", "grace", "dgi+mario", "mvgrl+mario", "rosa", "eerm", "vgae", "graphmae"]
)
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_wide_features_reach_an_encoder_of_pyg(name: str, kind: str) -> None:
    data = tiny_graph()
    x = torch.rand(80, 600, generator=torch.Generator().manual_seed(0))
    x = x * (x > 0.9)
    data.x = x.to_sparse_csr() if kind == "sparse" else x
    model = Trial(name, "node").make(epochs=1, encoder=GraphSAGE(600, 8, num_layers=2)).fit(data)
    assert torch.isfinite(model.transform(data)).all()
    other = copy.copy(data)
    other.x = x
    torch.testing.assert_close(model.transform(other), model.transform(data))


class TestWeights:
    def test_the_seed_draws_them_if_the_module_can_reset_them(self) -> None:
        data = tiny_graph()
        first, second = (mario.RandomInit(encoder=GCN(4, 8, num_layers=1), epochs=1) for _ in range(2))
        assert torch.equal(first.fit(data, seed=3).transform(data), second.fit(data, seed=3).transform(data))
        assert not torch.equal(first.fit(data, seed=3).transform(data), first.fit(data, seed=4).transform(data))

    def test_else_training_starts_from_them(self) -> None:
        data, mine = tiny_graph(), Mine()
        for seed in (0, 1):
            model = mario.RandomInit(encoder=mine, epochs=1).fit(data, seed=seed)
            assert torch.equal(model.transform(data), mine(data.x, data.edge_index))
        trained = mario.GRACE(encoder=mine, epochs=1, steps_per_epoch=1).fit(data)
        assert not torch.equal(trained.encoder_.linear.weight, mine.linear.weight)

    def test_fit_starts_again_each_time(self) -> None:
        data, model = tiny_graph(), mario.GRACE(encoder=Mine(), epochs=1, steps_per_epoch=2)
        first = model.fit(data).transform(data)
        assert torch.equal(model.fit(data).transform(data), first)

    def test_the_module_is_a_setting_and_no_part_of_the_model(self) -> None:
        mine = Mine()
        model = mario.GRACE(encoder=mine)
        assert model.get_params()["encoder"] is mine
        assert not list(model.parameters())
        model.fit(tiny_graph())
        assert not any(key.startswith("encoder.") for key in model.state_dict())


class TestMethodsWithMoreThanOneEncoder:
    def test_the_target_of_bgrl_is_another_copy(self) -> None:
        model = mario.BGRL(encoder=GCN(4, 8, num_layers=1))
        model.place(4, 0)
        assert type(model.target_) is GCN
        assert not torch.equal(model.target_.convs[0].lin.weight, model.encoder_.convs[0].lin.weight)

    def test_the_diffusion_is_edges_with_weights(self) -> None:
        data = tiny_graph()
        model = mario.MVGRL(encoder=GCN(4, 8, num_layers=1), epochs=1).fit(data)
        assert type(model.diffusion_encoder_) is GCN
        matrix = model.diffuse(data)
        entries = matrix.to_sparse_coo()
        target, source = entries.indices()
        with torch.no_grad():
            h = model.diffusion_encoder_(data.x, torch.stack([source, target]), edge_weight=entries.values())
            h = h + model.encoder_(data.x, data.edge_index)
        torch.testing.assert_close(model.transform(data), h)

    def test_without_edge_weights_a_gcn_of_its_width_encodes_the_diffusion(self) -> None:
        model = mario.MVGRL(encoder=Mine(), epochs=1).fit(tiny_graph())
        assert type(model.diffusion_encoder_) is mario.encoders.GCN
        assert model.transform(tiny_graph()).shape == (80, 5)

    def test_vgae_has_linear_heads(self) -> None:
        data = tiny_graph()
        model = mario.VGAE(encoder=Mine(), epochs=1).fit(data)
        assert type(model.mean_) is type(model.log_std_) is nn.Linear
        with torch.no_grad():
            assert torch.equal(model.transform(data), model.mean_(model.encoder_(data.x, data.edge_index)))


def test_a_large_view_is_not_computed_twice_for_an_encoder_with_state(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 8)
            self.register_buffer("passes", torch.zeros(()))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            self.passes += 1
            return self.linear(x)

    monkeypatch.setattr("mario.methods.two_view._LARGE", 0)
    model = mario.GRACE(encoder=Counting(), epochs=1, steps_per_epoch=3).fit(tiny_graph())
    assert model.encoder_.passes == 6  # two views per step; transform has not been called


@pytest.mark.parametrize("lean", [0, 2**40])
@pytest.mark.parametrize("name", ["mario", "bgrl+mario", "rosa"])
def test_batch_norm_and_dropout_of_a_foreign_encoder(name: str, lean: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With recomputation forced and forbidden: the same weights and the same statistics."""
    monkeypatch.setattr("mario.methods.two_view._LARGE", lean)
    data = tiny_graph()
    model = Trial(name, "node").make(encoder=GCN(4, 8, num_layers=2, dropout=0.3, norm="batch_norm")).fit(data)
    monkeypatch.setattr("mario.methods.two_view._LARGE", 2**20)
    plain = Trial(name, "node").make(encoder=GCN(4, 8, num_layers=2, dropout=0.3, norm="batch_norm")).fit(data)
    for (key, a), b in zip(model.state_dict().items(), plain.state_dict().values(), strict=True):
        assert torch.equal(a, b), key


class TestEdgeData:
    def data(self) -> Data:
        data = tiny_graph()
        data.edge_weight = torch.rand(data.edge_index.size(1), generator=torch.Generator().manual_seed(0))
        return data

    @pytest.mark.parametrize("kind", ["gcn", "gat", "PyG's GCN", "PyG's GAT"])
    @pytest.mark.parametrize("trial", [t for t in TRIALS if find(t.name).uses_edge_data], ids=trial_name)
    def test_it_reaches_the_encoder_under_every_method(self, trial: Trial, kind: str, tmp_path) -> None:
        data, generator = trial.data(), torch.Generator().manual_seed(0)
        edges, attributes = data.edge_index.size(1), kind.lower().endswith("gat")
        if attributes:
            data.edge_attr = torch.rand(edges, 3, generator=generator)
            encoder = "gat" if kind == "gat" else GAT(4, 8, 2, edge_dim=3)
        else:
            data.edge_weight = torch.rand(edges, generator=generator)
            encoder = "gcn" if kind == "gcn" else GCN(4, 8, 2)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*will not be used")
            model = trial.make(epochs=1, encoder=encoder).fit(data)
        z = model.transform(data)
        model.save(tmp_path / "model.safetensors")
        given = None if isinstance(encoder, str) else encoder
        assert torch.equal(mario.load(tmp_path / "model.safetensors", encoder=given).transform(data), z)
        other = copy.copy(data)
        key = "edge_attr" if attributes else "edge_weight"
        other[key] = data[key].flip(0)
        assert not torch.equal(model.transform(other), z)
        again = trial.make(epochs=1, encoder=encoder).fit(other)
        assert trial.name == "random-init" or not torch.equal(again.transform(data), z), "training saw it too"

    def test_a_graph_without_attributes_is_refused_by_a_model_that_needs_them(self) -> None:
        data = tiny_graph()
        data.edge_attr = torch.rand(data.edge_index.size(1), 1)
        model = mario.GRACE(encoder="gat", epochs=1, steps_per_epoch=1).fit(data)
        with pytest.raises(MarioError, match="fitted on 1 edge attributes, the graph has 0"):
            model.transform(tiny_graph())

    def test_one_warning_if_nobody_takes_it(self) -> None:
        data = self.data()
        data.edge_attr = torch.rand(data.edge_index.size(1), 3)
        with pytest.warns(UserWarning, match="will not be used") as caught:
            model = mario.GRACE(encoder=Mine(), epochs=2).fit(data)
        assert [str(w.message) for w in caught if "will not be used" in str(w.message)] == [
            "edge_weight and edge_attr of the graph will not be used: grace with the encoder Mine does not take them"
        ]
        bare = Data(x=data.x, edge_index=data.edge_index)
        assert torch.equal(model.transform(data), model.transform(bare))

    @pytest.mark.parametrize("name", ["grace", "erm"])
    def test_the_warning_names_the_line_that_called_fit(self, name: str) -> None:
        with pytest.warns(UserWarning, match="will not be used") as caught:
            Trial(name, "node").make(encoder="gat").fit(self.data())
        assert [warning.filename for warning in caught if "will not be used" in str(warning.message)] == [__file__]

    @pytest.mark.parametrize("name", ["eerm", "rosa"])
    def test_one_warning_if_the_method_makes_edges_of_its_own(self, name: str) -> None:
        with pytest.warns(UserWarning, match=f"edge_weight of the graph will not be used: {name} with the encoder gcn"):
            Trial(name, "node").make(epochs=1).fit(self.data())

    def test_an_encoder_may_require_it(self) -> None:
        class Weighing(Mine):
            def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:  # type: ignore[override]
                return super().forward(x, edge_index) * edge_weight.mean()

        model = mario.GRACE(encoder=Weighing(), epochs=1, steps_per_epoch=1)
        assert model.fit(self.data()).transform(self.data()).shape == (80, 5)
        with pytest.raises(MarioError, match="the encoder Weighing needs edge_weight, which the graph lacks"):
            model.transform(tiny_graph())
        with pytest.raises(MarioError, match="the encoder Weighing needs edge_weight, which the graph lacks"):
            model.fit(tiny_graph())

    def test_none_if_it_is_taken_and_it_has_an_effect(self) -> None:
        data = self.data()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = mario.RandomInit(encoder=GCN(4, 8, num_layers=1), epochs=1).fit(data)
        assert not torch.equal(model.transform(data), model.transform(Data(x=data.x, edge_index=data.edge_index)))


class Jitter(BaseTransform):
    """A transform that draws from torch's default generator, as those of PyG do."""

    def forward(self, data: Data) -> Data:
        data.x = data.x + torch.randn(data.x.shape)
        return data


def reversed_edges(data: Data) -> Data:
    data.edge_index = data.edge_index.flip(0)
    return data


TWO_VIEWS = [t for t in TRIALS if issubclass(find(t.name), TwoView) and "mvgrl" not in t.name]


class TestViews:
    @pytest.mark.parametrize("trial", TWO_VIEWS, ids=trial_name)
    def test_any_two_transforms(self, trial: Trial, tmp_path) -> None:
        data, views = trial.data(), (Compose([ToUndirected(), Jitter()]), reversed_edges)
        models = [trial.make(epochs=1, views=views) for _ in range(2)]
        state, edges = torch.get_rng_state(), data.edge_index.clone()
        first, again = (model.fit(data).transform(data) for model in models)
        assert torch.isfinite(first).all()
        assert torch.equal(first, again)
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(data.edge_index, edges)
        assert not torch.equal(first, trial.make(epochs=1).fit(data).transform(data))
        models[0].save(tmp_path / "model.safetensors")
        loaded = mario.load(tmp_path / "model.safetensors", views=views)
        assert loaded.get_params()["views"] == views
        assert torch.equal(loaded.transform(data), first)

    def test_ours_are_given_the_generator(self) -> None:
        data = tiny_graph()
        model = mario.MARIO(views=(Chain(DropEdges(0.2), MaskFeatures(0.3)), DropEdges(0.4)), clusters=3, epochs=1)
        assert torch.equal(model.fit(data, seed=2).transform(data), model.fit(data, seed=2).transform(data))

    def test_the_views_of_a_method_by_hand_are_those_of_the_method(self) -> None:
        data, model = tiny_graph(), mario.GRACE(epochs=1)
        views = [Chain(MaskFeatures(p), DropEdges(p)) for p in (model.mask_features_1, model.mask_features_2)]
        by_hand = mario.GRACE(epochs=1, views=views)
        assert torch.equal(by_hand.fit(data).transform(data), model.fit(data).transform(data))

    def test_a_method_may_use_transforms_of_pyg_itself(self) -> None:
        class OfPyG(mario.GRACE):
            def own_views(self, batch: Data) -> tuple[BaseTransform, BaseTransform]:
                return Jitter(), ToUndirected()

        data, state = tiny_graph(), torch.get_rng_state()
        first, again = (OfPyG(epochs=1).fit(data).transform(data) for _ in range(2))
        assert torch.equal(first, again)
        assert torch.equal(torch.get_rng_state(), state)

    @pytest.mark.parametrize("views", [DropEdges(0.2), (DropEdges(0.2),), (DropEdges, DropEdges), "drop", (1, 2)])
    def test_other_values_are_refused(self, views: object) -> None:
        with pytest.raises(MarioError, match=r"views must be None or two transforms, Data in and Data out"):
            mario.GRACE(views=views)

    def test_a_view_must_keep_the_nodes(self) -> None:
        def half(data: Data) -> Data:
            return Data(x=data.x[:40], edge_index=data.edge_index[:, :0])

        with pytest.raises(MarioError, match=r"a view must keep all nodes.*half returned 40 of 80"):
            mario.GRACE(views=(half, half)).fit(tiny_graph())

    def test_a_view_must_be_a_graph(self) -> None:
        with pytest.raises(MarioError, match=r"a view must be a Data; .* returned Tensor"):
            mario.GRACE(views=(lambda data: data.x, reversed_edges)).fit(tiny_graph())

    def test_mvgrl_has_no_others(self) -> None:
        with pytest.raises(MarioError, match="leave views=None"):
            mario.MVGRL(views=(DropEdges(0.2), DropEdges(0.2)))


PROJECTING = [t for t in TRIALS if issubclass(find(t.name), Projecting)]


class TestProjectors:
    @pytest.mark.parametrize("trial", PROJECTING, ids=trial_name)
    def test_any_module(self, trial: Trial, tmp_path) -> None:
        data = trial.data()
        made = nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.Dropout(0.2), nn.Linear(12, 3))
        models = [trial.make(epochs=1, projector=made) for _ in range(2)]
        first, again = (model.fit(data).transform(data) for model in models)
        assert torch.equal(first, again)
        assert models[0].contrast_width == 3
        if trial.name.endswith("mario"):
            assert models[0].prototypes_.weight.size(1) == 3
        models[0].save(tmp_path / "model.safetensors")
        loaded = mario.load(tmp_path / "model.safetensors", projector=made)
        assert torch.equal(loaded.transform(data), first)

    @pytest.mark.parametrize(("name", "kind"), [("identity", nn.Identity), ("linear", nn.Linear)])
    def test_by_name(self, name: str, kind: type[nn.Module]) -> None:
        model = mario.MARIO(projector=name, clusters=3, epochs=1).fit(tiny_graph())
        assert type(model.projector_) is kind
        assert model.settings()["projector"] == name

    def test_one_of_another_width_is_named(self) -> None:
        with pytest.raises(MarioError, match="Linear cannot be applied to rows of 16 numbers: mat1 and mat2"):
            mario.GRACE(hidden_channels=16, projector=nn.Linear(8, 8)).fit(tiny_graph())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("gnc", "encoder must be one of gcn, sage, gat, gin or a torch.nn.Module, got 'gnc'"),
        (GCN, "encoder must be .* or a torch.nn.Module, got the class GCN; pass an instance"),
        (3, "encoder must be .* or a torch.nn.Module, got 3"),
        (None, "encoder must be .* or a torch.nn.Module, got None"),
    ],
)
def test_what_is_no_encoder_is_refused(value: object, message: str) -> None:
    with pytest.raises(MarioError, match=message):
        mario.GRACE(encoder=value)


def test_an_encoder_for_other_features_is_one_clear_error() -> None:
    with pytest.raises(MarioError, match="GCN cannot be applied to a graph with 4 features per node"):
        mario.GRACE(encoder=GCN(7, 8, num_layers=2)).fit(tiny_graph())


def test_run_settings_hold_names_only() -> None:
    assert mario.GRACE(encoder="gat").settings()["encoder"] == "gat"
    assert "views" not in mario.GRACE().settings()
    with pytest.raises(MarioError, match=r"encoder is torch_geometric.*GCN, an object of Python, .* use a name"):
        mario.GRACE(encoder=GCN(4, 8, 1)).settings()
    with pytest.raises(MarioError, match=r"views is .*DropEdges"):
        mario.GRACE(views=(DropEdges(0.1), DropEdges(0.1))).settings()


def test_a_checkpoint_of_another_encoder_is_refused(tmp_path) -> None:
    settings = {**{k: v for k, v in SMALL.items() if k != "num_layers"}, "roots": SMALLER["roots"]}
    mario.GRACE(encoder=GCN(4, 8, 2), **settings).fit(tiny_graph(), folder=tmp_path)
    with pytest.raises(MarioError, match=r"encoder is torch_geometric\S*GCN there and torch_geometric\S*GAT here"):
        mario.GRACE(encoder=GAT(4, 8, 2), **settings).fit(tiny_graph(), folder=tmp_path)


def test_sampling_reaches_as_far_as_a_module_is_deep() -> None:
    graph = tiny_graph()
    model = mario.GRACE(encoder=GCN(4, 8, 5), num_layers=1, roots=3)
    assert model.sampler(model.prepare(graph)).length == 5
    model = mario.GRACE(encoder=Mine(), num_layers=4, roots=3)
    assert model.sampler(model.prepare(graph)).length == 4


class Frozen(nn.Module):
    """A pretrained layer that is not to be trained, one that is, and one that is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.unused = nn.Linear(4, 6).requires_grad_(False), nn.Linear(6, 8), nn.Linear(2, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x))


@pytest.mark.parametrize("name", ["mario", "bgrl", "eerm", "vgae"])
def test_weights_that_are_frozen_stay_as_they_are(name: str) -> None:
    frozen = Frozen()
    model = Trial(name, "node").make(epochs=1, encoder=frozen).fit(tiny_graph())
    assert torch.equal(model.encoder_.first.weight, frozen.first.weight)
    assert not torch.equal(model.encoder_.second.weight, frozen.second.weight)
