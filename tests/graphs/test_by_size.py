from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.io import read_tu_data

from mario.errors import MarioError
from mario.graphs import load_dataset, training_graph
from mario.graphs.by_size import size_split
from mario.graphs.graph_sets import stack_graphs

SETS = {"proteins-25": (1113, 500, (4, 25)), "dd-200": (1178, 462, (30, 200)), "dd-300": (1178, 500, (30, 300))}


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
    with pytest.raises(MarioError, match="train=3 graphs of 1 to 5 nodes were asked for, there are 2"):
        size_split(sized(1, 2, 9), (1, 5), 3)


@pytest.mark.parametrize("name", SETS)
def test_published_sizes(name: str, mario_data: Path) -> None:
    graphs, train, (low, high) = SETS[name]
    data = load_dataset(name, root=mario_data, download=False)
    assert data.num_graphs == graphs
    assert (int(data.train_mask.sum()), int(data.ood_test_mask.sum())) == (train, graphs - train)
    assert torch.equal(data.train_mask, ~data.ood_test_mask)
    sizes = data.ptr.diff()
    assert torch.equal(data.domain_id, sizes)
    assert low <= int(sizes[data.train_mask].min())
    assert int(sizes[data.train_mask].max()) <= high
    assert int(sizes.max()) == (620 if name == "proteins-25" else 5748)
    if name == "dd-200":
        assert (int(sizes[data.train_mask].min()), int(sizes[data.ood_test_mask].min())) == (30, 201)
    assert torch.equal(data.env_id == 0, data.train_mask)
    seen = training_graph(data)
    assert seen.num_graphs == train
    assert torch.equal(seen.y, data.y[data.train_mask])
    assert "ood_test_mask" not in seen
    other = load_dataset(name, root=mario_data, download=False, split_seed=1)
    assert torch.equal(other.train_mask, data.train_mask) == (name == "dd-200")


def test_graphs_are_those_that_pyg_reads(mario_data: Path) -> None:
    data = load_dataset("proteins-25", root=mario_data, download=False)
    theirs, slices, _ = read_tu_data(str(mario_data / "TUDataset/PROTEINS/raw"), "PROTEINS")
    assert torch.equal(data.x, theirs.x)
    assert torch.equal(data.y, theirs.y)
    assert torch.equal(data.ptr, slices["x"])
    start = torch.repeat_interleave(slices["x"][:-1], slices["edge_index"].diff())
    assert torch.equal(data.edge_index, theirs.edge_index + start)
