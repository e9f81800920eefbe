import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from mario.errors import MarioError
from mario.graphs.partition import partition
from mario.graphs.samplers import Clusters

both = pytest.mark.parametrize("method", ["metis", "bfs"])


def ring(nodes: int) -> Data:
    ends = torch.arange(nodes)
    return Data(x=torch.rand(nodes, 2), edge_index=torch.stack([ends, (ends + 1) % nodes]))


@both
def test_the_partition_is_that_of_the_method(method: str) -> None:
    sampler = Clusters(ring(40), clusters=4, method=method)
    assert torch.equal(sampler.partition, partition(ring(40).edge_index, 40, 4, method))
    assert sampler.method == method


@both
def test_a_batch_is_the_union_with_the_edges_between(method: str, generator: torch.Generator) -> None:
    data = ring(144)
    sampler = Clusters(data, clusters=6, per_batch=2, method=method)
    for _ in range(5):
        batch = sampler.sample(generator)
        chosen = sampler.partition[batch.n_id].unique()
        assert chosen.numel() == 2
        assert torch.equal(batch.n_id, torch.isin(sampler.partition, chosen).nonzero().view(-1))
        expected, _ = subgraph(batch.n_id, data.edge_index, relabel_nodes=True, num_nodes=144)
        assert torch.equal(batch.edge_index, expected)


def test_clusters_are_drawn_uniformly(generator: torch.Generator) -> None:
    sampler = Clusters(ring(50), clusters=5, per_batch=2, method="bfs")
    counts = torch.zeros(5)
    for _ in range(500):
        counts[sampler.partition[sampler.sample(generator).n_id].unique()] += 1
    # Expected 200 each, standard deviation 11
    assert counts.sum() == 1000
    assert counts.min() > 150


def test_an_epoch_has_every_node_once(generator: torch.Generator) -> None:
    batches = list(Clusters(ring(100), clusters=5, per_batch=2, method="bfs").epoch(generator))
    assert len(batches) == 3
    assert torch.equal(torch.cat([batch.n_id for batch in batches]).sort().values, torch.arange(100))


def test_all_clusters_are_the_graph(generator: torch.Generator) -> None:
    batch = Clusters(ring(36), clusters=4, per_batch=4, method="bfs").sample(generator)
    assert torch.equal(batch.edge_index, ring(36).edge_index)


@both
def test_as_many_clusters_as_nodes(method: str, generator: torch.Generator) -> None:
    sampler = Clusters(ring(9), clusters=9, method=method)
    assert torch.bincount(sampler.partition).numel() == sampler.clusters
    sizes = [int(batch.num_nodes or 0) for batch in sampler.epoch(generator)]
    assert min(sizes) >= 1
    assert sum(sizes) == 9


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"clusters": 0}, "clusters must be an integer of at least 1, got 0"),
        ({"clusters": 17}, "clusters=17 is more than the graph's 16 nodes"),
        ({"clusters": 4, "per_batch": 0}, "per_batch must be an integer of at least 1, got 0"),
        ({"clusters": 4, "per_batch": 5}, "per_batch=5 is more than clusters=4"),
        ({"clusters": 4, "method": "louvain"}, "method must be one of auto, metis, bfs, got 'louvain'"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(MarioError, match=match):
        Clusters(ring(16), **arguments)  # type: ignore[arg-type]
