import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import stochastic_blockmodel_graph, subgraph

from mario.errors import MarioError
from mario.graphs.samplers import Clusters
from mario.graphs.samplers import clusters as clusters_module


def grid(side: int) -> Data:
    nodes = torch.arange(side * side).view(side, side)
    edges = torch.cat(
        [
            torch.stack([nodes[:, :-1].reshape(-1), nodes[:, 1:].reshape(-1)]),
            torch.stack([nodes[:-1].reshape(-1), nodes[1:].reshape(-1)]),
        ],
        dim=1,
    )
    return Data(x=torch.rand(side * side, 2), edge_index=edges)


def cut(data: Data, partition: torch.Tensor) -> float:
    source, target = partition[data.edge_index]
    return float((source != target).float().mean())


@pytest.mark.parametrize("method", ["metis", "bfs"])
def test_clusters_are_balanced_and_cut_few_edges(method: str, generator: torch.Generator) -> None:
    data = grid(30)
    sampler = Clusters(data, clusters=9, method=method)
    sizes = torch.bincount(sampler.partition)
    assert sizes.numel() == 9
    assert int(sizes.max()) <= 1.1 * 100
    assert int(sizes.min()) >= 0.8 * 100
    at_random = sampler.partition[torch.randperm(900, generator=generator)]
    assert cut(data, sampler.partition) < 0.4 * cut(data, at_random)


def test_sizes_differ_by_at_most_one_without_metis() -> None:
    sizes = torch.bincount(Clusters(grid(10), clusters=7, method="bfs").partition)
    assert sorted(sizes.tolist()) == [14, 14, 14, 14, 14, 15, 15]


def test_metis_finds_planted_blocks() -> None:
    torch.manual_seed(0)
    edges = stochastic_blockmodel_graph([40, 40, 40], torch.eye(3) * 0.4 + 0.005)
    partition = Clusters(Data(x=torch.ones(120, 1), edge_index=edges), clusters=3, method="metis").partition
    assert [block.unique().numel() for block in partition.split(40)] == [1, 1, 1]


@pytest.mark.parametrize("method", ["metis", "bfs"])
def test_a_batch_is_the_union_with_the_edges_between(method: str, generator: torch.Generator) -> None:
    data = grid(12)
    sampler = Clusters(data, clusters=6, per_batch=2, method=method)
    batch = sampler.sample(generator)
    chosen = sampler.partition[batch.n_id].unique()
    assert chosen.numel() == 2
    assert torch.equal(batch.n_id, torch.isin(sampler.partition, chosen).nonzero().view(-1))
    expected, _ = subgraph(batch.n_id, data.edge_index, relabel_nodes=True, num_nodes=144)
    assert torch.equal(batch.edge_index, expected)


def test_an_epoch_has_every_node_once(generator: torch.Generator) -> None:
    batches = list(Clusters(grid(10), clusters=5, per_batch=2, method="bfs").epoch(generator))
    assert [int(batch.num_nodes or 0) for batch in batches] == [40, 40, 20]
    assert torch.equal(torch.cat([batch.n_id for batch in batches]).sort().values, torch.arange(100))


def test_all_clusters_are_the_graph(generator: torch.Generator) -> None:
    data = grid(6)
    batch = Clusters(data, clusters=4, per_batch=4, method="bfs").sample(generator)
    assert torch.equal(batch.edge_index, data.edge_index)


@pytest.mark.parametrize("method", ["metis", "bfs"])
def test_as_many_clusters_as_nodes(method: str, generator: torch.Generator) -> None:
    sampler = Clusters(grid(3), clusters=9, method=method)
    assert torch.bincount(sampler.partition).min() >= 1
    assert sum(int(batch.num_nodes or 0) for batch in sampler.epoch(generator)) == 9


def test_auto_is_metis_where_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Clusters(grid(4), clusters=2).method == "metis"
    monkeypatch.setattr(clusters_module.importlib.util, "find_spec", lambda name: None)
    assert Clusters(grid(4), clusters=2).method == "bfs"
    with pytest.raises(MarioError, match=r"needs pymetis, which is not installed: pip install .*method='bfs'"):
        Clusters(grid(4), clusters=2, method="metis")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"clusters": 0}, "clusters must be a whole number of at least 1, got 0"),
        ({"clusters": 17}, "clusters=17 is more than the graph's 16 nodes"),
        ({"clusters": 4, "per_batch": 0}, "per_batch must be a whole number of at least 1, got 0"),
        ({"clusters": 4, "per_batch": 5}, "per_batch=5 is more than clusters=4"),
        ({"clusters": 4, "method": "louvain"}, "method must be one of auto, metis, bfs, got 'louvain'"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(MarioError, match=match):
        Clusters(grid(4), **arguments)  # type: ignore[arg-type]
