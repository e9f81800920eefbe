import pytest
import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.graph_sets import stack_graphs
from mario.views import Chain, DropEdges, DropNodes, MaskNodes, OneOf


def rings(graphs: int) -> Data:
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    one = [Data(x=torch.full((3, 1), float(i)), edge_index=edges, y=torch.tensor([i])) for i in range(graphs)]
    return stack_graphs(one)


def test_each_graph_draws_for_itself_and_keeps_its_place(generator: torch.Generator) -> None:
    data = rings(2000)
    view = OneOf(DropEdges(1.0), Chain())(data, generator)
    assert torch.equal(view.x, data.x)
    assert torch.equal(view.batch, data.batch)
    assert torch.equal(view.y, data.y)
    left = torch.bincount(view.batch[view.edge_index[0]], minlength=2000)
    assert left.unique().tolist() == [0, 3]
    assert (left == 0).float().mean().item() == pytest.approx(0.5, abs=0.04)
    assert data.edge_index.size(1) == 6000


def test_views_that_drop_nodes_say_which_are_left(generator: torch.Generator) -> None:
    data = rings(50)
    view = OneOf(DropNodes(0.5), MaskNodes(1.0))(data, generator)
    assert torch.equal(data.batch[view.n_id], view.batch)
    assert torch.equal(data.x[view.n_id], view.x)  # all nodes of a ring look alike, so masking by the mean is no change
    assert torch.equal(view.ptr.diff(), torch.bincount(view.batch, minlength=50))
    assert view.num_graphs == 50


def test_a_single_graph_and_wrong_input(generator: torch.Generator) -> None:
    single = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    assert OneOf(DropEdges(1.0))(single, generator).num_edges == 0
    with pytest.raises(MarioError, match="views must be one or more views"):
        OneOf()
