"""The recipe against Algorithm 1 written out, and each of its switches."""

import copy
import dataclasses

import pytest
import torch
from torch_geometric.data import Data

import mario
from mario.contrast import conditional_mi, info_nce
from mario.errors import MarioError
from mario.graphs.features import Features, Perturbed
from mario.methods import RELEASED, STRONG, TwoView, find
from mario.methods.recipe import WithRecipe, with_recipe
from mario.views import AdversarialFeatures, DropEdges

from .tiny import tiny_graph

SMALL = {"hidden_channels": 8, "num_layers": 2, "epochs": 3, "steps_per_epoch": 2, "roots": 60}


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def built(**settings: object) -> tuple[mario.MARIO, object]:
    model = mario.MARIO(**{**SMALL, "clusters": 4, **settings})
    graph = model.prepare(tiny_graph(), seed=0)
    model.double()
    graph.x = graph.x.double()
    model.train()
    return model, graph


def test_without_both_parts_it_is_grace_to_the_bit() -> None:
    data = tiny_graph()
    grace = mario.GRACE(**SMALL).fit(data, seed=4)
    bare = mario.MARIO(**SMALL, adversarial=False, conditional=False).fit(data, seed=4)
    assert grace.state_dict().keys() == bare.state_dict().keys()
    assert all(torch.equal(a, b) for a, b in zip(grace.state_dict().values(), bare.state_dict().values(), strict=True))


@pytest.mark.parametrize("ascent", ["frobenius", "sign"])
def test_one_step_is_algorithm_1(ascent: str) -> None:
    """All M passes of both views written out: the same gradients as ours, which passes β through the encoder once.

    The running statistics of batch norm are the same as well.
    """
    model, graph = built(ascent=ascent, gamma=0.3, epsilon=0.05, prototype_lr=0.1)
    before = copy.deepcopy(dict(model.named_buffers()))
    model.step(graph, torch.Generator().manual_seed(7))
    ours, statistics = gradients(model), copy.deepcopy(dict(model.named_buffers()))
    assert statistics

    model.zero_grad()
    model.load_state_dict(before, strict=False)
    generator = torch.Generator().manual_seed(7)
    alpha, beta = model.make_views(graph, generator)
    clean_u, clean_v = model.encode(alpha).detach(), model.encode(beta).detach()
    prototypes = model.prototypes_.weight.detach()  # step() moved them before it used them
    assert clean_u.shape == clean_v.shape

    def label(z: torch.Tensor) -> torch.Tensor:
        return (torch.nn.functional.normalize(z) @ prototypes.t()).argmax(1)

    delta = torch.empty_like(alpha.x).uniform_(-0.05, 0.05, generator=generator)
    for _ in range(3):
        delta = delta.detach().requires_grad_()
        z_alpha = model.projector_(model.encoder_(alpha.x + delta, alpha.edge_index))
        z_beta = model.projector_(model.encoder_(beta.x, beta.edge_index))
        mi = info_nce(z_alpha, z_beta, model.tau)
        cmi = conditional_mi(z_alpha, z_beta, label(z_alpha), label(z_beta), 1.0)
        ((mi - 0.3 * cmi) / 3).backward()
        move = delta.grad / delta.grad.norm() if ascent == "frobenius" else delta.grad.sign()
        delta = delta + 0.05 * move
    slow = gradients(model)
    for name in slow:
        torch.testing.assert_close(ours[name], slow[name], atol=1e-10, rtol=1e-8, msg=name)
    for name, buffer in model.named_buffers():
        torch.testing.assert_close(statistics[name], buffer, atol=1e-12, rtol=1e-12, msg=name)


@pytest.mark.parametrize("conditional", [True, False])
@pytest.mark.parametrize("perturb", ["alpha", "both"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_one_step_with_the_strong_adversary_is_the_formula(sparse: bool, perturb: str, conditional: bool) -> None:
    """Both views in every pass, by plain autograd: one ascent step at δ₀, then the gradients at the moved δ."""
    model, graph = built(**STRONG, gamma=0.3, prototype_lr=0.1, perturb=perturb, conditional=conditional)
    graph.x[:, 3] = 2.0  # a constant column
    plain = graph.x
    if sparse:
        graph.x = graph.x.to_sparse_csr()
    before = copy.deepcopy(dict(model.named_buffers()))
    figures = model.step(graph, torch.Generator().manual_seed(7))
    ours, statistics = gradients(model), copy.deepcopy(dict(model.named_buffers()))

    model.zero_grad()
    model.load_state_dict(before, strict=False)
    generator = torch.Generator().manual_seed(7)
    alpha, beta = model.make_views(graph, generator)
    for view in (alpha, beta):
        x = view.x.matrix() if isinstance(view.x, Features) else view.x
        view.x = x.to_dense() if sparse else x
    bound = 0.3 * plain.std(0, correction=0)
    assert bound.tolist()[3] == 0
    if conditional:
        model.encode(alpha)
        model.encode(beta)

    def loss(deltas: list[torch.Tensor]) -> torch.Tensor:
        z_alpha = model.projector_(model.encoder_(alpha.x + deltas[0], alpha.edge_index))
        moved = beta.x + deltas[1] if perturb == "both" else beta.x
        z_beta = model.projector_(model.encoder_(moved, beta.edge_index))
        mi = info_nce(z_alpha, z_beta, model.tau)
        if not conditional:
            return mi
        label = [(torch.nn.functional.normalize(z) @ model.prototypes_.weight.t()).argmax(1) for z in (z_alpha, z_beta)]
        return mi - 0.3 * conditional_mi(z_alpha, z_beta, *label, 1.0)

    deltas = [
        (torch.empty_like(plain).uniform_(-1, 1, generator=generator) * bound).requires_grad_()
        for _ in range(2 if perturb == "both" else 1)
    ]
    slopes = torch.autograd.grad(loss(deltas), deltas)
    ends = [torch.clamp(d + bound * g.sign(), -bound, bound).detach() for d, g in zip(deltas, slopes, strict=True)]
    value = loss(ends)
    value.backward()
    assert figures["loss"] == pytest.approx(value.item(), abs=1e-10)
    slow = gradients(model)
    assert ours.keys() == slow.keys()
    for name in slow:
        torch.testing.assert_close(ours[name], slow[name], atol=1e-10, rtol=1e-8, msg=name)
    for name, buffer in model.named_buffers():
        torch.testing.assert_close(statistics[name], buffer, atol=1e-12, rtol=1e-12, msg=name)


@pytest.mark.parametrize("host", ["bgrl", "costa", "swav", "mvgrl", "dgi"])
def test_the_strong_adversary_works_over_any_host(host: str) -> None:
    data = tiny_graph()
    settings = {**SMALL, **({"centers": 4} if host == "swav" else {})}
    plain, strong = (
        mario.Recipe(find(host).from_settings(settings), **given).fit(data).transform(data) for given in ({}, STRONG)
    )
    assert torch.isfinite(strong).all()
    assert not torch.equal(plain, strong)


@pytest.mark.parametrize("encoder", ["gcn", "sage", "gat", "gin"])
@pytest.mark.parametrize("perturb", ["alpha", "both"])
@pytest.mark.parametrize("host", ["grace", "bgrl", "costa", "swav", "mvgrl", "dgi"])
def test_wide_features_in_parts_give_the_step_of_the_matrix(
    host: str, perturb: str, encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sparse features, masks on W and δ in factors: the loss and every gradient are those of X + δ written out."""
    data = tiny_graph()
    generator = torch.Generator().manual_seed(1)
    data.x = torch.rand(80, 12, generator=generator) * (torch.rand(80, 12, generator=generator) < 0.4)
    found = []
    for in_parts in (True, False):
        model = with_recipe(find(host)).from_settings(
            {**SMALL, "encoder": encoder, "epsilon": 0.05, "dropout": 0.0, "perturb": perturb}
            | ({"centers": 4} if host == "swav" else {})
        )
        graph = model.prepare(data, seed=0)
        graph.x = graph.x.double()
        model.double().train()
        if in_parts:
            graph.x = graph.x.to_sparse_csr()
            monkeypatch.setattr(AdversarialFeatures, "_written_out", lambda *_: pytest.fail("X is written out"))
        else:
            monkeypatch.setattr(AdversarialFeatures, "start", started_alike)
        figures = model.step(graph, torch.Generator().manual_seed(7))
        found.append((figures, gradients(model)))
    (ours, grads), (plain, slow) = found
    assert ours == pytest.approx(plain, abs=1e-10)
    assert grads.keys() == slow.keys()
    for name in slow:
        torch.testing.assert_close(grads[name], slow[name], atol=1e-10, rtol=1e-7, msg=name)


def started_alike(adversary: AdversarialFeatures, views: list[Data], generator: torch.Generator) -> list[Data]:
    """X + δ₀ written out, with the δ₀ that the factored form draws."""
    started = []
    for view in views:
        view = copy.copy(view)
        view.x = Perturbed(Features(view.x), adversary.epsilon, generator).matrix().requires_grad_()
        started.append(view)
    return started


def test_only_prototypes_move_in_the_inner_steps() -> None:
    model, graph = built(prototype_lr=0.1)
    before = {k: v.clone() for k, v in model.named_parameters()}
    with torch.no_grad():
        model.move_prototypes(
            *(model.encode(view) for view in model.make_views(graph, torch.Generator().manual_seed(0)))
        )
    moved = {k for k, v in model.named_parameters() if not torch.equal(v, before[k])}
    assert moved == {"prototypes_.weight"}
    assert not any(p is model.prototypes_.weight for p in model.trained())


def test_released_code_moves_the_projector_with_the_prototypes() -> None:
    model, graph = built(**RELEASED, prototype_lr=0.1)
    before = {k: v.clone() for k, v in model.named_parameters()}
    generator = torch.Generator().manual_seed(0)
    model.move_with_projector(*model.make_views(graph, generator), generator)
    moved = {k.split(".")[0] for k, v in model.named_parameters() if not torch.equal(v, before[k])}
    assert moved == {"prototypes_", "projector_"}
    assert all(p.grad is None for p in model.projector_.parameters()), "the encoder step must not add to these"
    trained = {id(p) for p in model.trained()}
    assert trained == {id(p) for p in model.encoder_.parameters()}


def test_inner_steps_lower_the_clustering_loss() -> None:
    model, graph = built(prototype_lr=0.05, prototype_steps=50, prototype_tau=0.1)
    generator = torch.Generator().manual_seed(0)
    u, v = (model.encode(view).detach() for view in model.make_views(graph, generator))
    model.prototype_steps = 1
    first, _ = model.move_prototypes(u, v)
    model.prototype_steps = 50
    assert model.move_prototypes(u, v)[0]["clustering"] < first["clustering"]


@pytest.mark.parametrize("pseudo_labels", ["argmax", "sinkhorn"])
def test_moved_prototypes_tell_the_clusters_of_the_second_view(pseudo_labels: str) -> None:
    model, graph = built(pseudo_labels=pseudo_labels)
    generator = torch.Generator().manual_seed(0)
    u, v = (model.encode(view).detach() for view in model.make_views(graph, generator))
    figures, clusters = model.move_prototypes(u, v)
    assert torch.equal(clusters, model.cluster_of(v))
    assert figures["clusters_used"] == model.cluster_of(u).unique().numel() / model.clusters


@pytest.mark.parametrize(
    "settings",
    [
        {"adversarial": False},
        {"conditional": False},
        {"perturb": "both"},
        {"ascent_steps": 1},
        {"ascent": "projected_sign"},
        {"ascent_gradients": "last"},
        STRONG,
        {**STRONG, "conditional": False},
        {**STRONG, "perturb": "both"},
        {"prototype_optimizer": "sgd"},
        {"projector_moves": "both"},
        {"cmi_estimator": "donsker_varadhan"},
        {"cmi_estimator": "jensen_shannon"},
        {"estimator": "donsker_varadhan"},
        {"estimator": "jensen_shannon"},
        {"estimator": "alignment_uniformity"},
        RELEASED,
    ],
    ids=lambda s: ",".join(f"{k}={v}" for k, v in s.items())[:60],
)
def test_every_switch_trains_and_matters(settings: dict[str, object]) -> None:
    data = tiny_graph()
    plain = mario.MARIO(**SMALL, clusters=4).fit(data).transform(data)
    other = mario.MARIO(**SMALL, clusters=4, **settings).fit(data).transform(data)
    assert torch.isfinite(other).all()
    assert not torch.equal(plain, other)


def test_recipe_over_a_host_is_a_class_of_both() -> None:
    model = mario.Recipe(mario.GRACE(hidden_channels=8, tau=0.3), gamma=0.7)
    assert isinstance(model, mario.MARIO)
    assert model.get_params()["tau"] == 0.3
    assert model.get_params()["gamma"] == 0.7
    with pytest.raises(MarioError, match="two views"):
        mario.Recipe(mario.ERM())
    with pytest.raises(MarioError, match="mario has the recipe already"):
        mario.Recipe(model)
    with pytest.raises(MarioError, match=r"got the class GRACE: use GRACE\(\)"):
        mario.Recipe(mario.GRACE)
    with pytest.raises(MarioError, match="no setting 'gama'"):
        mario.Recipe(mario.GRACE(), gama=1)


def test_the_recipe_over_another_host_needs_no_line_more() -> None:
    @dataclasses.dataclass(eq=False, repr=False, kw_only=True)
    class Bare(TwoView):
        """Two draws of dropped edges and no projector."""

        name = "bare"

        def make_views(self, batch, generator=None):
            return DropEdges(0.5)(batch, generator), DropEdges(0.5)(batch, generator)

        def contrast(self, alpha, beta, generator=None):
            return info_nce(alpha, beta)

    data = tiny_graph()
    model = mario.Recipe(Bare(**SMALL), clusters=4)
    assert type(model).name == "bare+mario"
    plain = Bare(**SMALL).fit(data).transform(data)
    robust = model.fit(data).transform(data)
    assert torch.isfinite(robust).all()
    assert not torch.equal(plain, robust)
    off = mario.Recipe(Bare(**SMALL), adversarial=False, conditional=False)
    assert torch.equal(off.fit(data).transform(data), plain)


def test_no_setting_of_the_recipe_hides_one_of_its_host() -> None:
    added = {f.name for f in dataclasses.fields(WithRecipe)} - {f.name for f in dataclasses.fields(TwoView)}
    assert not added & {f.name for f in dataclasses.fields(mario.GRACE)}
    assert with_recipe(mario.GRACE) is mario.MARIO


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tau": 0.0}, "tau must be at least"),
        ({"encoder": "transformer"}, "encoder must be one of"),
        ({"hidden_channels": 0}, "hidden_channels must be at least 1"),
        ({"gamma": "much"}, "gamma must be a number"),
        ({"epochs": 2.5}, "epochs must be a whole number"),
        ({"epsilon_unit": "std"}, "epsilon_unit='std' needs ascent='projected_sign' or 'sign', got 'frobenius'"),
        ({"ascent": "up"}, "ascent must be one of frobenius, sign, projected_sign"),
    ],
)
def test_settings_out_of_range_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        mario.MARIO(**settings)


def test_sides_of_several_tensors_give_the_same_gradients_as_one_graph_without_the_cut() -> None:
    """A host whose contrast takes a target and an index besides Z: β's pass is made once and nothing is lost."""

    @dataclasses.dataclass(eq=False, repr=False, kw_only=True)
    class Targets(TwoView):
        """Z, a second matrix that has a gradient, one that has none, and whole numbers."""

        name = "targets"

        def build(self, in_channels, num_classes):
            super().build(in_channels, num_classes)
            self.head_ = torch.nn.Linear(self.hidden_channels, self.hidden_channels)

        def make_views(self, batch, generator=None):
            return DropEdges(0.5)(batch, generator), DropEdges(0.5)(batch, generator)

        def encode(self, view, generator=None):
            h = self.represent(view, generator)
            return h, self.head_(h), h.detach(), torch.arange(len(h))

        def contrast(self, alpha, beta, generator=None):
            return info_nce(alpha[1], beta[2][beta[3]]) + info_nce(beta[1], alpha[2]) + info_nce(alpha[0], beta[0])

    data = tiny_graph()
    grads = []
    for perturb in ("alpha", "both"):  # with ε = 0 both views stand still, so that both ways are the same loss
        model = mario.Recipe(Targets(**SMALL), clusters=4, epsilon=0.0, perturb=perturb)
        graph = model.prepare(data, seed=0)
        # The start draws δ for one view or for two: views and dropout are drawn before it, from the same state.
        model.step(graph, torch.Generator().manual_seed(1))
        grads.append([p.grad.clone() for p in model.trained()])
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


def test_a_host_without_pairs_of_rows_has_the_adversary_only() -> None:
    @dataclasses.dataclass(eq=False, repr=False, kw_only=True)
    class Unpaired(TwoView):
        """Rows of one view against the mean of the other."""

        name = "unpaired"
        aligned = False

        def make_views(self, batch, generator=None):
            return DropEdges(0.5)(batch, generator), DropEdges(0.5)(batch, generator)

        def contrast(self, alpha, beta, generator=None):
            return (alpha - beta.mean(0)).square().mean()

    model = mario.Recipe(Unpaired(**SMALL))
    assert not model.conditional
    assert not hasattr(model.fit(tiny_graph()), "prototypes_")
    with pytest.raises(MarioError, match="nothing to condition on"):
        mario.Recipe(Unpaired(**SMALL), conditional=True)
