import pytest
import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.views import ShuffleFeatures


def test_rows_are_the_same_in_another_order_on_the_same_edges(generator: torch.Generator) -> None:
    data = Data(x=torch.arange(40.0).view(20, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.arange(20))
    before = data.x.clone()
    view = ShuffleFeatures()(data, generator)
    assert not torch.equal(view.x, data.x)
    assert torch.equal(view.x[view.x[:, 0].argsort()], data.x)
    assert torch.equal(view.edge_index, data.edge_index)
    assert torch.equal(view.y, data.y)
    assert torch.equal(data.x, before)


def test_every_order_is_as_likely(generator: torch.Generator) -> None:
    data = Data(x=torch.tensor([[0.0], [1.0], [2.0]]))
    seen = [tuple(ShuffleFeatures()(data, generator).x.view(-1).tolist()) for _ in range(3000)]
    # 500 expected of each of the six, with a standard deviation of 20
    assert sorted({seen.count(order) // 100 for order in set(seen)}) in ([4], [4, 5], [5])
    assert len(set(seen)) == 6


def test_sparse_and_dense_rows_move_alike() -> None:
    x = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [4.0, 5.0, 6.0]])
    sparse = ShuffleFeatures()(Data(x=x.to_sparse_csr()), torch.Generator().manual_seed(1)).x
    dense = ShuffleFeatures()(Data(x=x), torch.Generator().manual_seed(1)).x
    assert sparse.layout == torch.sparse_csr
    assert torch.equal(sparse.to_dense(), dense)
    assert not torch.equal(dense, x)


def test_gradients_reach_the_rows_they_came_from(generator: torch.Generator) -> None:
    x = torch.arange(5.0).view(5, 1).requires_grad_()
    view = ShuffleFeatures()(Data(x=x), generator).x
    (view * view.detach()).sum().backward()
    assert torch.equal(x.grad, x.detach())


def test_one_node_stays_as_it_is(generator: torch.Generator) -> None:
    assert ShuffleFeatures()(Data(x=torch.tensor([[3.0]])), generator).x.tolist() == [[3.0]]


@pytest.mark.parametrize(("data", "match"), [(Data(num_nodes=3), "no x"), (Data(x=torch.ones(3)), r"shape \(3,\)")])
def test_features_that_are_no_matrix_are_an_error(data: Data, match: str) -> None:
    with pytest.raises(MarioError, match=match):
        ShuffleFeatures()(data)
