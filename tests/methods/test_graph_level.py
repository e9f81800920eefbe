"""What methods do with a set of graphs."""

import copy

import pytest
import torch
from torch_geometric.data import Batch, Data

import mario
from mario.errors import MarioError
from mario.evaluation import LiblinearProbe, LinearProbe
from mario.graphs.graph_sets import select_graphs
from mario.graphs.samplers import Graphs
from mario.methods import find, graph_level as room

from .tiny import tiny_graph
from .tiny_graphs import tiny_graph_set

SMALL = {"hidden_channels": 8, "num_layers": 2, "epochs": 3, "steps_per_epoch": 2, "graphs": 12}
LEVELS = ["erm", "random-init", "raw-features", "graphcl"]


def bare(data: Data) -> Data:
    return Data(x=data.x, edge_index=data.edge_index, batch=data.batch)


@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize("kind", ["max", "mean", "sum"])
def test_an_embedding_is_the_readout_of_the_graph_by_itself(name: str, kind: str) -> None:
    data = tiny_graph_set()
    model = find(name).from_settings({**SMALL, "readout": kind}).fit(data)
    z = model.transform(data)
    assert z.shape == (40, 4 if name == "raw-features" else 8)
    for i in (0, 17, 39):
        alone = bare(select_graphs(data, torch.tensor([i])))
        torch.testing.assert_close(model.transform(alone)[0], z[i])
    part = data.x[data.batch == 3]
    expected = {"max": part.amax(0), "mean": part.mean(0), "sum": part.sum(0)}[kind]
    if name == "raw-features":
        torch.testing.assert_close(z[3], expected)


def test_a_large_set_is_embedded_part_by_part_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tiny_graph_set()
    model = find("erm").from_settings(SMALL).fit(data)
    whole = model.transform(data)
    seen = []
    nodes = model.embed_nodes
    monkeypatch.setattr(room, "_CHUNK", 50)
    monkeypatch.setattr(model, "embed_nodes", lambda part: seen.append(part.num_nodes) or nodes(part))
    torch.testing.assert_close(model.transform(data), whole)
    assert len(seen) > 5
    assert max(seen) <= 50


@pytest.mark.parametrize("name", LEVELS)
def test_a_pyg_batch_and_a_bare_set_are_taken(name: str) -> None:
    data = tiny_graph_set()
    batch = Batch.from_data_list(
        [
            Data(x=part.x, edge_index=part.edge_index)
            for part in (select_graphs(data, torch.tensor([i])) for i in range(40))
        ]
    )
    model = find(name).from_settings(SMALL).fit(data)
    torch.testing.assert_close(model.transform(batch), model.transform(data))
    if not model.supervised:
        assert find(name).from_settings(SMALL).fit(batch).transform(batch).shape[0] == 40


@pytest.mark.parametrize("name", [name for name in LEVELS if name != "graphcl"])
def test_on_a_single_graph_readout_and_graphs_change_nothing(name: str) -> None:
    data = tiny_graph()
    small = {"hidden_channels": 8, "num_layers": 2, "epochs": 2, "steps_per_epoch": 2}
    first, second = (
        find(name).from_settings({**small, **more}).fit(data).transform(data)
        for more in ({}, {"readout": "sum", "graphs": 3})
    )
    assert first.shape[0] == data.num_nodes
    assert torch.equal(first, second)


def test_training_batches_are_graphs_for_training(generator: torch.Generator) -> None:
    data = tiny_graph_set()
    model = find("erm").from_settings(SMALL)
    graph = model.prepare(data)
    assert graph.num_graphs == 20
    sampler = model.sampler(graph)
    assert isinstance(sampler, Graphs)
    batch = sampler.sample(generator)
    assert (batch.num_graphs, batch.y.shape) == (12, (12,))
    assert set(batch.n_id.tolist()) <= set(data.train_mask[data.batch].nonzero().view(-1).tolist())


def test_erm_by_hand_on_two_graphs() -> None:
    data = select_graphs(tiny_graph_set(), torch.tensor([0, 1]))
    data.train_mask, data.ood_test_mask = torch.ones(2, dtype=torch.bool), torch.zeros(2, dtype=torch.bool)
    del data.ood_test_mask
    model = find("erm").from_settings({**SMALL, "batch_norm": False, "readout": "mean"})
    graph = model.prepare(data)
    loss = model.step(model.sampler(graph).sample(), torch.Generator())["loss"]
    h = model.encoder_(data.x, data.edge_index)
    pooled = torch.stack([h[data.batch == 0].mean(0), h[data.batch == 1].mean(0)])
    log_p = model.head_(pooled).log_softmax(1)
    assert loss == pytest.approx(-(log_p[0, 0] + log_p[1, 1]).item() / 2, abs=1e-6)


def test_erm_learns_and_is_judged_by_its_head() -> None:
    data = tiny_graph_set(graphs=80, flips=False)
    model = find("erm").from_settings({**SMALL, "epochs": 10, "steps_per_epoch": 20, "readout": "mean"}).fit(data)
    assert model.predict(data).shape == (80, 2)
    scores = mario.evaluate(model, data)
    assert sorted(scores) == ["ood_test", "train"]
    assert scores["train"] > 0.9
    assert scores["ood_test"] > 0.7


@pytest.mark.parametrize("probe", [LinearProbe(), LiblinearProbe()])
def test_embeddings_of_graphs_are_probed(probe: LinearProbe | LiblinearProbe) -> None:
    data = tiny_graph_set(graphs=80, flips=False)
    scores = mario.evaluate(
        find("random-init").from_settings({**SMALL, "readout": "mean"}).fit(data), data, probe=probe
    )
    assert sorted(scores) == ["ood_test", "train"]
    assert scores["ood_test"] > 0.6


def test_labels_of_test_graphs_are_out_of_reach() -> None:
    data = tiny_graph_set()
    poisoned = copy.copy(data)
    poisoned.y = torch.where(data.train_mask, data.y, 1 - data.y)
    first, second = (find("erm").from_settings(SMALL).fit(graphs).state_dict() for graphs in (data, poisoned))
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_a_method_of_nodes_says_which_methods_embed_graphs() -> None:
    with pytest.raises(MarioError, match=r"grace embeds nodes; a set of graphs needs .*erm, graphcl, graphcl\+mario,"):
        find("grace").from_settings({"hidden_channels": 8}).fit(tiny_graph_set())
    with pytest.raises(MarioError, match=r"graphcl embeds graphs; data whose nodes .* needs one of .*grace"):
        find("graphcl").from_settings({"hidden_channels": 8}).fit(tiny_graph())
    model = find("graphcl").from_settings(SMALL).fit(tiny_graph_set())
    with pytest.raises(MarioError, match="graphcl embeds graphs"):
        model.transform(tiny_graph())
