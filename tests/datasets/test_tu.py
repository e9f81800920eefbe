"""Sets of protein graphs, on the real files."""

from pathlib import Path

import pytest
import torch
from torch_geometric.io import read_tu_data

from mario.datasets import load_dataset
from mario.graphs import training_graph

SETS = {"proteins-25": (1113, 500, (4, 25)), "dd-200": (1178, 462, (30, 200)), "dd-300": (1178, 500, (30, 300))}


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
