"""MVGRL: its loss written out, where its diffusion comes from and how often, and the recipe over it."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from mario.encoders import GCN, propagation_matrix
from mario.methods import MVGRL, Recipe, load, mvgrl
from mario.views import diffusion_matrix

from .tiny import tiny_graph

SMALL = {"hidden_channels": 8, "num_layers": 2, "epochs": 3, "steps_per_epoch": 2, "roots": 20}


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of nodes of every diffusion that is computed from now on."""
    sizes: list[int] = []

    def matrix(edge_index: Tensor, num_nodes: int, *args: object, **settings: object) -> Tensor:
        sizes.append(num_nodes)
        return diffusion_matrix(edge_index, num_nodes, *args, **settings)

    monkeypatch.setattr(mvgrl, "diffusion_matrix", matrix)
    return sizes


@pytest.mark.parametrize(("diffusion", "rate"), [("ppr", {"teleport": 0.3}), ("heat", {"heat_time": 2.0})])
def test_loss_of_a_step_written_out(diffusion: str, rate: dict[str, float]) -> None:
    """Nodes of each view against the summary of the other, with encoders of one layer."""
    model = MVGRL(hidden_channels=4, num_layers=1, diffusion=diffusion, **rate)
    graph = model.prepare(tiny_graph(), seed=1, device="cpu")
    torch.nn.init.constant_(model.discriminator_.bias, 0.4)
    loss = model.step(graph, torch.Generator().manual_seed(5))["loss"]
    order = torch.randperm(80, generator=torch.Generator().manual_seed(5))

    settings = {"teleport": 0.3} if diffusion == "ppr" else {"time": 2.0}
    routes = (
        propagation_matrix(graph.edge_index, 80).to_dense(),
        diffusion_matrix(graph.edge_index, 80, diffusion, **settings).to_dense(),
    )
    h, corrupted = [], []
    for route, encoder in zip(routes, (model.encoder_, model.diffusion_encoder_), strict=True):
        conv = encoder.convs[0]
        h.append(F.relu(route @ graph.x @ conv.lin.weight.t() + conv.bias))
        corrupted.append(F.relu(route @ graph.x[order] @ conv.lin.weight.t() + conv.bias))
    total = torch.zeros(())
    for view in (0, 1):
        s = h[1 - view].mean(0).sigmoid()
        real, fake = (torch.einsum("na,ab,b->n", z[view], model.discriminator_.weight, s) + 0.4 for z in (h, corrupted))
        total = total - real.sigmoid().log().sum() - (1 - fake.sigmoid()).log().sum()
    assert loss == pytest.approx(total.item() / 320, abs=1e-6)


def test_the_embedding_is_the_sum_of_two_encoders_that_share_nothing() -> None:
    data = tiny_graph()
    model = MVGRL(**SMALL).fit(data)
    first = {id(p) for p in model.encoder_.parameters()}
    assert not first & {id(p) for p in model.diffusion_encoder_.parameters()}
    with torch.no_grad():
        h = model.encoder_(data.x, data.edge_index)
        h = h + model.diffusion_encoder_(data.x, diffusion_matrix(data.edge_index, 80))
    assert torch.equal(model.transform(data), h)


@pytest.mark.parametrize("encoder", ["gat", "sage", "gin"])
def test_the_diffusion_is_always_multiplied_with(encoder: str) -> None:
    model = MVGRL(**SMALL, encoder=encoder)
    model.place(4, 0)
    assert type(model.diffusion_encoder_) is GCN
    assert type(model.encoder_) is not GCN


@pytest.mark.parametrize("sampling", ["full", "random_walk", "neighbors", "clusters"])
@pytest.mark.parametrize("setting", ["transductive", "inductive"])
def test_a_batch_sees_its_block_of_the_training_graphs_diffusion(sampling: str, setting: str) -> None:
    data = tiny_graph()
    data.setting = setting
    model = MVGRL(**SMALL, sampling=sampling)
    graph = model.prepare(data, device="cpu")
    batch = model.sampler(graph).sample(torch.Generator().manual_seed(0))
    whole = diffusion_matrix(graph.edge_index, graph.num_nodes).to_dense()
    rows = batch.diffusion_row
    assert torch.equal(batch.x, graph.x[rows])
    assert torch.equal(batch.diffusion.to_dense(), whole[rows][:, rows])
    alpha, beta = model.make_views(batch, torch.Generator().manual_seed(0))
    assert "diffusion" not in alpha
    assert torch.equal(beta.diffusion.to_dense(), batch.diffusion.to_dense())
    assert torch.equal(alpha.shuffle, beta.shuffle)
    seeds = int(batch.seed_mask.sum()) if "seed_mask" in batch else batch.num_nodes
    assert [z.shape for z in model.encode(beta)] == [(seeds, 8)] * 2


def test_each_graph_is_diffused_once(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    sizes = counted(monkeypatch)
    data = tiny_graph()
    model = MVGRL(**SMALL).fit(data)
    for _ in range(10):
        model.transform(data)
        model.transform(copy.copy(data).clone())
    assert sizes == [80]
    inductive = tiny_graph()
    inductive.setting = "inductive"
    model = MVGRL(**SMALL).fit(inductive)
    for _ in range(10):
        model.transform(inductive)
    assert sizes == [80, int(inductive.train_mask.sum()), 80]
    model.save(tmp_path / "model.safetensors")
    load(tmp_path / "model.safetensors").transform(inductive)
    assert sizes[3:] == [80], "what was remembered is not saved"


def test_diffusions_are_kept_by_content() -> None:
    data = tiny_graph()
    model = MVGRL(**SMALL).fit(data)
    before = model.transform(data)
    data.edge_index[:, :20] = 0  # in place: the same tensor, another graph
    changed = model.transform(data)
    assert not torch.equal(before, changed)
    assert torch.equal(copy.deepcopy(model).transform(data), changed)  # which computes it again
    more = Data(x=torch.cat([data.x, data.x[:1]]), edge_index=data.edge_index)  # one node more, the same edges
    assert model.transform(more).shape == (81, 8)
    model.diffusion = "heat"
    assert not torch.equal(model.transform(data), changed)
    assert len(model._diffused) == 2
    assert not any("diffus" in name and "encoder" not in name for name in model.state_dict())


def test_close_to_the_exact_embedding_where_the_diffusion_is_sparse() -> None:
    data = tiny_graph()
    exact = MVGRL(**SMALL).fit(data)
    sparse = MVGRL(**SMALL, exact_nodes=0, tolerance=1e-4)
    sparse.place(4, 0)
    sparse.load_state_dict(exact.state_dict())
    coarse = MVGRL(**SMALL, exact_nodes=0, tolerance=1e-2)
    coarse.place(4, 0)
    coarse.load_state_dict(exact.state_dict())
    size = exact.transform(data).norm()
    near, far = ((model.transform(data) - exact.transform(data)).norm() / size for model in (sparse, coarse))
    assert 0 < near < 0.02
    assert near < far


def test_the_papers_discriminator_is_an_option_and_learns() -> None:
    data = tiny_graph()
    model = MVGRL(**SMALL, discriminator="projected_dot").fit(data)
    assert any(name.startswith("discriminator_.of_node") for name in model.state_dict())
    assert torch.isfinite(model.transform(data)).all()


def test_sparse_features_are_shuffled_as_dense_ones() -> None:
    data = tiny_graph()
    model = MVGRL(**SMALL)
    graph = model.prepare(data, device="cpu")
    dense = model.step(graph, torch.Generator().manual_seed(0))
    graph.x = graph.x.to_sparse_csr()
    assert model.step(graph, torch.Generator().manual_seed(0)) == pytest.approx(dense, abs=1e-5)


def test_recipe_perturbs_the_corrupted_nodes_of_the_first_view_too() -> None:
    """One ascent step written out: gradients of all parameters, of both encoders, are those of the slow version."""
    model = Recipe(MVGRL(**SMALL), clusters=4, epsilon=0.05, ascent_steps=2, conditional=False)
    graph = model.prepare(tiny_graph(), seed=0, device="cpu")
    model.double()
    graph.x = graph.x.double()
    model.step(graph, torch.Generator().manual_seed(7))
    ours = {name: p.grad.clone() for name, p in model.named_parameters()}

    model.zero_grad()
    generator = torch.Generator().manual_seed(7)
    alpha, beta = model.make_views(graph, generator)
    delta = torch.empty_like(alpha.x).uniform_(-0.05, 0.05, generator=generator)
    matrix = beta.diffusion.double()
    for _ in range(2):
        delta = delta.detach().requires_grad_()
        x = alpha.x + delta
        side = [model.encoder_(rows, alpha.edge_index) for rows in (x, x[alpha.shuffle])]
        other = [model.diffusion_encoder_(rows, matrix) for rows in (beta.x, beta.x[beta.shuffle])]
        (model.contrast(tuple(side), tuple(other)) / 2).backward()
        delta = delta + 0.05 * delta.grad / delta.grad.norm()
    for name, p in model.named_parameters():
        torch.testing.assert_close(ours[name], p.grad, atol=1e-10, rtol=1e-8, msg=name)


def test_recipe_clusters_both_encoders_embeddings() -> None:
    data = tiny_graph()
    model = Recipe(MVGRL(**SMALL), clusters=4).fit(data)
    assert model.prototypes_.weight.shape == (4, 8)
    assert torch.isfinite(model.transform(data)).all()
