import pytest
import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.by_size import size_split
from mario.graphs.graph_sets import stack_graphs


def sized(*nodes: int) -> Data:
    none = torch.empty(2, 0, dtype=torch.long)
    return stack_graphs([Data(x=torch.ones(n, 1), edge_index=none, y=torch.tensor([0])) for n in nodes])


def test_small_graphs_train_and_all_others_test() -> None:
    data = size_split(sized(5, 2, 9, 3), (2, 5), None)
    assert data.train_mask.tolist() == [True, True, False, True]
    assert data.ood_test_mask.tolist() == [False, False, True, False]
    assert data.domain_id.tolist() == [5, 2, 9, 3]
    assert data.env_id.tolist() == [0, 0, -1, 0]


def test_the_seed_draws_which_where_more_qualify() -> None:
    drawn = [size_split(sized(*[3] * 40, 9), (1, 5), 20, seed).train_mask for seed in (0, 0, 1)]
    assert [int(mask.sum()) for mask in drawn] == [20, 20, 20]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert not drawn[0][40]
    with pytest.raises(MarioError, match="train=3, but only 2 graphs have 1 to 5 nodes"):
        size_split(sized(1, 2, 9), (1, 5), 3)
