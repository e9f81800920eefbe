import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import RandomJitter, ToUndirected

from mario.errors import MarioError
from mario.views import Chain, DropEdges, MaskFeatures


def graph() -> Data:
    return Data(x=torch.ones(6, 30), edge_index=torch.randint(6, (2, 40), generator=torch.Generator().manual_seed(1)))


def test_is_its_views_one_after_another_on_one_generator() -> None:
    chained = Chain(DropEdges(0.5), MaskFeatures(0.5))(graph(), torch.Generator().manual_seed(2))
    generator = torch.Generator().manual_seed(2)
    by_hand = MaskFeatures(0.5)(DropEdges(0.5)(graph(), generator), generator)
    assert torch.equal(chained.edge_index, by_hand.edge_index)
    assert torch.equal(chained.x, by_hand.x)


def test_no_views_is_the_identity() -> None:
    data = graph()
    assert Chain()(data).x is data.x


def test_takes_transforms_of_pyg() -> None:
    data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]))
    assert Chain(ToUndirected(), MaskFeatures(0.0))(data).edge_index.tolist() == [[0, 1], [1, 0]]


def test_transforms_of_pyg_draw_from_the_generator() -> None:
    state = torch.get_rng_state()
    chain = Chain(RandomJitter(1.0), DropEdges(0.5))
    data = Data(pos=torch.zeros(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    first, again, other = (chain(data, torch.Generator().manual_seed(seed)).pos for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


def test_anything_else_is_an_error() -> None:
    with pytest.raises(MarioError, match=r"views must be views or PyG transforms, got 0\.5"):
        Chain(0.5)  # type: ignore[arg-type]
