"""Any graph is refused with one MarioError, or what is made of it is right."""

import copy
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, strategies as st
from torch import Tensor
from torch_geometric.data import Data

import mario
from fuzz.graphs import broken_graphs, generator, graph_sets, graphs, seeds
from fuzz.slow import dense, same, same_graph, sound
from fuzz.targets import attempt, fuzz
from mario.errors import MarioError
from mario.evaluation import LinearProbe, evaluate_many
from mario.graphs import check_graph, load_graph, load_mapped, save_graph, save_mapped, split_graph, training_graph
from mario.graphs.rules import PARTS
from mario.graphs.samplers import Clusters, FullGraph, Graphs, Neighbors, RandomWalk, Sampler
from mario.views import (
    AdversarialFeatures,
    Diffusion,
    DropEdges,
    DropNodes,
    MaskFeatures,
    MaskNodes,
    OneOf,
    PerturbEdges,
    RandomWalkSubgraph,
    ShuffleFeatures,
    View,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # edge data that a method does not use

ANY = st.one_of(graphs(), graph_sets(), broken_graphs())
SOUND = st.one_of(graphs(), graph_sets())


@fuzz(examples=200, data=ANY)
def test_a_graph_is_refused_if_and_only_if_a_rule_is_broken(data: Data) -> None:
    before = copy.copy(data)
    refused = attempt(lambda: check_graph(data))
    assert sound(data) == (refused is None), refused
    assert before.to_dict() == data.to_dict() or all(data[key] is before[key] for key in before.keys())  # noqa: SIM118


def few(data: Data) -> int:
    """A number of clusters, at most that of nodes."""
    x = data.get("x")
    return min(3, max(1, x.size(0))) if isinstance(x, Tensor) and not x.is_nested and x.dim() else 1


SAMPLERS: dict[str, Callable[[Data], Sampler]] = {
    "full": FullGraph,
    "walk": lambda data: RandomWalk(data, roots=3, length=2),
    "saint": lambda data: RandomWalk(data, roots=2, length=1, normalize=True, pre_samples=2),
    "neighbors": lambda data: Neighbors(data, seeds=2, fanouts=[2, 1]),
    "bfs": lambda data: Clusters(data, clusters=few(data), method="bfs"),
    "metis": lambda data: Clusters(data, clusters=few(data), method="metis"),
    "graphs": lambda data: Graphs(data, per_batch=2),
}


@fuzz(examples=70, data=ANY, name=st.sampled_from(sorted(SAMPLERS)), seed=seeds)
@example(data=Data(edge_index=torch.zeros(2, 0).long(), pos=torch.tensor(1.0)), name="full", seed=0)
@example(data=Data(edge_index=torch.zeros(2, 0).long(), num_nodes=2**40), name="full", seed=0)
def test_a_batch_is_a_part_of_the_graph(data: Data, name: str, seed: int) -> None:
    def draw() -> list[Data]:
        sampler = SAMPLERS[name](data)
        return [sampler.sample(generator(seed)), *sampler.epoch(generator(seed))]

    batches = attempt(draw)
    if isinstance(batches, MarioError):
        assert not sound(data) or (name == "graphs") != ("batch" in data), batches
        return
    for batch in batches:
        nodes = batch.n_id if "n_id" not in data else None
        assert batch.edge_index.numel() == 0 or int(batch.edge_index.max()) < batch.num_nodes
        if nodes is None:
            continue
        assert nodes.unique().numel() == nodes.numel() == batch.num_nodes
        if isinstance(data.get("x"), Tensor):
            assert same(dense(batch.x), dense(data.x)[nodes])
        edges = {tuple(edge) for edge in data.edge_index.t().tolist()}
        assert all(tuple(edge) in edges for edge in nodes[batch.edge_index].t().tolist())
        for key in ("y", "domain_id", "train_mask"):
            value = data.get(key)
            if "batch" not in data and isinstance(value, Tensor) and value.dim() and value.size(0) == data.num_nodes:
                assert same(dense(batch[key]), dense(value)[nodes])


VIEWS: dict[str, View] = {
    "edges": DropEdges(0.5),
    "nodes": DropNodes(0.5),
    "features": MaskFeatures(0.5),
    "rows": MaskNodes(0.5),
    "perturb": PerturbEdges(0.5),
    "walk": RandomWalkSubgraph(0.5),
    "shuffle": ShuffleFeatures(),
    "ppr": Diffusion(),
    "heat": Diffusion("heat"),
    "adversary": AdversarialFeatures(loss=lambda data: data.x.sum()),
    "either": OneOf(DropEdges(0.5), MaskFeatures(0.5)),
}
NOTHING: dict[str, View] = {"edges": DropEdges(0.0), "features": MaskFeatures(0.0), "perturb": PerturbEdges(0.0)}


@fuzz(examples=70, data=ANY, name=st.sampled_from(sorted(VIEWS)), seed=seeds)
@example(data=Data(edge_index=torch.zeros(2, 0).long(), num_nodes=2), name="adversary", seed=0)
@example(data=Data(x=torch.eye(2), edge_index=torch.zeros(2, 0).long(), edge_weight=False), name="ppr", seed=0)
def test_a_view_leaves_the_graph_alone_and_is_one(data: Data, name: str, seed: int) -> None:
    before = {key: value.clone() if isinstance(value, Tensor) else value for key, value in data.to_dict().items()}
    made = attempt(lambda: VIEWS[name](data, generator(seed)))
    assert all(
        same(data[key], value) for key, value in before.items() if isinstance(value, Tensor) and _readable(value)
    )
    if isinstance(made, MarioError):
        assert not sound(data), made
        return
    if not sound(data):
        return
    assert isinstance(made.x, Tensor)
    bare = Data(**{key: made[key] for key in ("x", "edge_index", "edge_weight", "edge_attr", "batch") if key in made})
    del bare.x
    bare.x = made.x.detach()
    if "batch" not in data or name not in ("nodes", "walk", "either"):  # there a graph may lose all nodes
        refused = attempt(lambda: check_graph(bare))
        assert refused is None, refused
    if name in NOTHING:
        assert same_graph(NOTHING[name](data, generator(seed)), data)


def _readable(value: Tensor) -> bool:
    return (
        value.device.type == "cpu" and not value.is_nested and not value.is_quantized and value.layout == torch.strided
    )


@fuzz(examples=40, data=ANY)
@example(data=Data(x=torch.eye(2), about={1: 2}))
@example(data=Data(x=torch.eye(2), about=2**70))
def test_a_graph_in_a_file_is_the_same(data: Data) -> None:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home, "a", "graph.safetensors")
        refused = attempt(lambda: save_graph(data, path))
        if isinstance(refused, MarioError):
            assert not path.exists()
            assert not sound(data) or not _plain(data), refused
            return
        assert [entry.name for entry in Path(home).rglob("*")] == ["a", "graph.safetensors"]
        assert same_graph(load_graph(path), data)


@fuzz(examples=40, data=ANY)
def test_a_mapped_graph_is_the_same_with_its_edges_sorted(data: Data) -> None:
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "graph")
        refused = attempt(lambda: save_mapped(data, folder))
        if isinstance(refused, MarioError):
            sparse = isinstance(data.get("x"), Tensor) and data.x.layout != torch.strided
            assert sparse or not sound(data) or not _plain(data), refused
            assert not (folder / "graph.json").exists()
            return
        assert {path.parent for path in Path(home).rglob("*.*")} == {folder}
        order = torch.tensor(sorted(range(data.edge_index.size(1)), key=data.edge_index[0].tolist().__getitem__)).long()
        wanted = copy.copy(data)
        for key, value in data.to_dict().items():
            if isinstance(value, Tensor) and data.is_edge_attr(key):
                wanted[key] = value.index_select(data.__cat_dim__(key, value), order)
        assert same_graph(load_mapped(folder), wanted)


def _plain(data: Data) -> bool:
    """Whether all attributes that are no tensors keep their type in JSON."""
    kept = (str, bool, type(None))
    return all(isinstance(value, Tensor) or type(value) in kept for value in data.to_dict().values())


@fuzz(
    examples=50,
    data=st.one_of(graphs(labeled=True, most=30), ANY),
    domain=st.sampled_from(("word", "degree", "domain_id", "y", "other")),
    shift=st.sampled_from(("covariate", "concept", "no_shift")),
    seed=st.sampled_from((0, 1, 2**63, -1, 2**70)),
)
def test_a_split_has_each_node_once_and_a_seed_decides_it(data: Data, domain: str, shift: str, seed: int) -> None:
    made = attempt(lambda: split_graph(data, domain=domain, shift=shift, split_seed=seed))
    if isinstance(made, MarioError):
        return
    masks = [made[f"{part}_mask"] for part in PARTS]
    total = torch.stack(masks).sum(0)
    assert int(total.max()) <= 1
    assert shift == "concept" or bool((total == 1).all())
    if shift == "covariate":
        train, test = made.domain_id[made.train_mask], made.domain_id[made.ood_test_mask]
        assert not {*train.tolist()} & {*test.tolist()}
    again = split_graph(data, domain=domain, shift=shift, split_seed=seed)
    assert all(same(made[key], again[key]) for key in ("domain_id", "env_id", *(f"{part}_mask" for part in PARTS)))
    visible = attempt(lambda: training_graph(made))
    if not isinstance(visible, MarioError):
        assert set(made.n_id.tolist() if "n_id" in made else range(made.num_nodes)) >= set(visible.n_id.tolist())


TINY: dict[str, Any] = {"hidden_channels": 4, "num_layers": 2, "epochs": 1, "steps_per_epoch": 2, "roots": 4}
SMALL: dict[str, dict[str, Any]] = {
    "mario": {"clusters": 3, "prototype_steps": 1, "ascent_steps": 1},
    "swav": {"centers": 3},
    "eerm": {"generators": 2},
    "bgrl": {"predictor_hidden_channels": 4},
    "rosa": {"contrast_roots": 2, "walk_length": 3},
}
NODE_METHODS = sorted(name for name, method in mario.methods.REGISTRY.items() if "node" in method.levels)
GRAPH_METHODS = sorted(name for name, method in mario.methods.REGISTRY.items() if "graph" in method.levels)
BOTH = st.one_of(
    st.tuples(graphs(labeled=True), st.sampled_from(NODE_METHODS)),
    st.tuples(graph_sets(labeled=True), st.sampled_from(GRAPH_METHODS)),
    st.tuples(broken_graphs(), st.sampled_from(sorted({*NODE_METHODS, *GRAPH_METHODS}))),
)


@fuzz(
    examples=40,
    seconds=60,
    given=BOTH,
    encoder=st.sampled_from(("gcn", "gcn", "sage", "gat", "gin")),
    sampling=st.sampled_from(("full", "random_walk", "neighbors", "clusters")),
    seed=st.integers(0, 3),
)
def test_embeddings_are_finite_and_those_of_dense_features(
    given: tuple[Data, str], encoder: str, sampling: str, seed: int
) -> None:
    data, name = given
    before = {key: value.clone() for key, value in data if isinstance(value, Tensor) and _readable(value)}
    method = mario.methods.REGISTRY[name]

    model = method(**TINY, **SMALL.get(name, {}), encoder=encoder, sampling=sampling)
    z = attempt(lambda: model.fit(data, seed=seed).transform(data))
    assert all(same(data[key], value) for key, value in before.items())
    if isinstance(z, MarioError):
        return
    assert sound(data)
    assert z.size(0) == (int(data.batch[-1]) + 1 if "batch" in data else data.num_nodes)
    assert bool(torch.isfinite(z).all())
    scores = attempt(lambda: mario.evaluate(model, data, probe=LinearProbe(epochs=2)))
    if not isinstance(scores, MarioError):
        assert all(0 <= score <= 1 for score in scores.values()), scores
    if data.x.layout == torch.sparse_csr:
        plain = copy.copy(data)
        plain.x = dense(data.x)
        torch.testing.assert_close(z, model.transform(plain), rtol=1e-4, atol=1e-5 * max(1.0, float(z.abs().max())))


@fuzz(examples=15, data=st.one_of(graphs(labeled=True), graph_sets(labeled=True)), width=st.integers(1, 4), seed=seeds)
def test_scores_of_any_embeddings_are_shares(data: Data, width: int, seed: int) -> None:
    rows = data.y.numel()
    z = torch.randn(rows, width, generator=generator(seed)) * 10.0 ** (seed % 60 - 30)
    scores = attempt(lambda: evaluate_many([z], data))
    if not isinstance(scores, MarioError):
        assert all(0 <= value <= 1 for value in scores[0].values()), scores
