import pytest
import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.graph_sets import stack_graphs
from mario.graphs.samplers import Graphs


def rings(*sizes: int) -> Data:
    graphs = []
    for label, nodes in enumerate(sizes):
        ends = torch.arange(nodes)
        edge_index = torch.stack([ends, (ends + 1) % nodes])
        graphs.append(Data(x=torch.full((nodes, 1), float(label)), edge_index=edge_index, y=torch.tensor([label])))
    return stack_graphs(graphs)


def test_a_batch_is_whole_graphs_drawn_without_replacement(generator: torch.Generator) -> None:
    sampler = Graphs(rings(3, 5, 2, 4, 6), per_batch=3)
    drawn = torch.zeros(5)
    for _ in range(400):
        batch = sampler.sample(generator)
        assert batch.num_graphs == 3
        assert torch.equal(batch.x[:, 0].long(), batch.y[batch.batch])
        assert torch.equal(batch.ptr.diff(), torch.tensor([3, 5, 2, 4, 6])[batch.y])
        assert batch.edge_index.size(1) == batch.num_nodes
        assert torch.equal(batch.batch[batch.edge_index[0]], batch.batch[batch.edge_index[1]])
        drawn[batch.y] += 1
    torch.testing.assert_close(drawn / 400, torch.full((5,), 0.6), atol=0.1, rtol=0)


def test_an_epoch_holds_every_graph_once(generator: torch.Generator) -> None:
    batches = list(Graphs(rings(3, 5, 2, 4, 6), per_batch=2).epoch(generator))
    assert [batch.num_graphs for batch in batches] == [2, 2, 1]
    assert sorted(torch.cat([batch.y for batch in batches]).tolist()) == [0, 1, 2, 3, 4]
    assert sorted(torch.cat([batch.n_id for batch in batches]).tolist()) == list(range(20))


def test_few_graphs_are_a_batch_and_seeds_repeat() -> None:
    assert Graphs(rings(3, 5), per_batch=128).sample().y.tolist() == [0, 1]
    sampler = Graphs(rings(*[3] * 50), per_batch=10)
    first, again, other = (sampler.sample(torch.Generator().manual_seed(seed)).y for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_weights_and_attributes_stay_with_their_edges(generator: torch.Generator) -> None:
    # Three graphs of two nodes and one edge each: as many graphs as edges.
    data = Data(
        x=torch.arange(6.0).view(6, 1),
        edge_index=torch.tensor([[4, 0, 2], [5, 1, 3]]),
        edge_weight=torch.tensor([0.4, 0.0, 0.2]),
        edge_attr=torch.tensor([[4.0], [0.0], [2.0]]),
        batch=torch.tensor([0, 0, 1, 1, 2, 2]),
        y=torch.tensor([7, 8, 9]),
    )
    for batch in [*Graphs(data, per_batch=2).epoch(generator), Graphs(data, per_batch=2).sample(generator)]:
        sources = batch.n_id[batch.edge_index[0]].float()
        torch.testing.assert_close(batch.edge_weight, sources / 10)
        assert torch.equal(batch.edge_attr.view(-1), sources)
        assert torch.equal(batch.y, 7 + batch.n_id[::2] // 2)


def test_wrong_input_is_named() -> None:
    with pytest.raises(MarioError, match="per_batch must be an integer of at least 1"):
        Graphs(rings(3, 5), per_batch=0)
    with pytest.raises(MarioError, match="data has no batch"):
        Graphs(Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]])), per_batch=1)
