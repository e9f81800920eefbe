import torch
from torch_geometric.data import Data

from mario.graphs.samplers import FullGraph


def test_is_the_graph_without_a_copy() -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0, 1, 2]))
    batches = list(FullGraph(data).epoch())
    assert len(batches) == 1
    assert batches[0].x is data.x
    assert batches[0].edge_index is data.edge_index
    assert batches[0].n_id.tolist() == [0, 1, 2]
    assert "n_id" not in data
