import pytest
import torch
from torch_geometric.data import Batch, Data

from mario.errors import MarioError
from mario.graphs.subgraph import subgraph
from mario.views import DropNodes


def path(nodes: int, y: int = 0) -> Data:
    ends = torch.arange(nodes - 1)
    return Data(x=torch.full((nodes, 2), float(y)), edge_index=torch.stack([ends, ends + 1]), y=torch.tensor([y]))


def test_drops_nothing_at_zero(generator: torch.Generator) -> None:
    view = DropNodes(0.0)(path(4), generator)
    assert view.n_id.tolist() == [0, 1, 2, 3]
    assert view.edge_index.tolist() == [[0, 1, 2], [1, 2, 3]]


def test_is_the_induced_subgraph(generator: torch.Generator) -> None:
    data = Data(x=torch.rand(30, 2), edge_index=torch.randint(30, (2, 200), generator=generator))
    view = DropNodes(0.3)(data, generator)
    expected = subgraph(data, view.n_id)
    assert 0 < view.num_nodes < 30
    assert torch.equal(view.edge_index, expected.edge_index)
    assert torch.equal(view.x, expected.x)


def test_rate_is_p(generator: torch.Generator) -> None:
    data = Data(x=torch.ones(50_000, 1), edge_index=torch.empty(2, 0, dtype=torch.int64))
    # Standard error 0.0018
    assert DropNodes(0.2)(data, generator).num_nodes / 50_000 == pytest.approx(0.8, abs=0.008)


def test_one_node_of_every_graph_stays(generator: torch.Generator) -> None:
    batch = Batch.from_data_list([path(5, 0), path(1, 1), path(9, 2)])
    view = DropNodes(1.0)(batch, generator)
    assert view.batch.tolist() == [0, 1, 2]
    assert view.ptr.tolist() == [0, 1, 2, 3]
    assert view.x[:, 0].tolist() == [0.0, 1.0, 2.0]
    assert view.num_edges == 0


def test_the_node_that_stays_is_uniform() -> None:
    generator = torch.Generator().manual_seed(0)
    counts = torch.zeros(4)
    for _ in range(800):
        counts[DropNodes(1.0)(path(4), generator).n_id] += 1
    # Expected 200 each, standard deviation 12
    assert counts.sum() == 800
    assert counts.min() > 150


def test_a_batch_stays_a_batch_that_cannot_be_taken_apart_wrongly(generator: torch.Generator) -> None:
    batch = Batch.from_data_list([path(50, 3), path(50, 4)])
    view = DropNodes(0.4)(batch, generator)
    assert isinstance(view, Batch)
    assert view.num_graphs == 2
    assert view.y.tolist() == [3, 4]
    assert torch.equal(view.ptr, torch.tensor([0, int((view.batch == 0).sum()), view.num_nodes]))
    assert torch.equal(batch.batch[view.n_id], view.batch)
    with pytest.raises(RuntimeError, match="Cannot reconstruct"):
        view.get_example(0)
    assert batch.get_example(1).num_nodes == 50


def test_labels_of_graphs_are_kept_where_there_are_as_many_graphs_as_edges(generator: torch.Generator) -> None:
    batch = Batch.from_data_list([path(3, 7), path(1, 8)])
    assert batch.num_graphs == batch.num_edges == 2
    assert DropNodes(1.0)(batch, generator).y.tolist() == [7, 8]


def test_keep_ids_are_never_dropped(generator: torch.Generator) -> None:
    assert DropNodes(1.0, keep_ids=torch.tensor([3, 1]))(path(5), generator).n_id.tolist() == [1, 3]


def test_ids_of_an_earlier_cut_are_carried_on(generator: torch.Generator) -> None:
    cut = subgraph(path(6), torch.tensor([2, 4, 5]))
    assert DropNodes(1.0, keep_ids=torch.tensor([1, 2]))(cut, generator).n_id.tolist() == [4, 5]


@pytest.mark.parametrize("keep_ids", [torch.tensor([1.0]), torch.tensor([[1]]), torch.tensor([True])])
def test_keep_ids_that_are_no_ids_are_an_error(keep_ids: torch.Tensor) -> None:
    with pytest.raises(MarioError, match="keep_ids must be int64"):
        DropNodes(0.5, keep_ids=keep_ids)


def test_keep_ids_outside_the_graph_are_an_error() -> None:
    with pytest.raises(MarioError, match=r"keep_ids must lie in 0\.\.4, got 5\.\.5"):
        DropNodes(0.5, keep_ids=torch.tensor([5]))(path(5))
