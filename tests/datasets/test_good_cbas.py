import hashlib
import random
import warnings

import numpy as np
import pytest
import torch
from torch_geometric.utils import contains_self_loops, is_undirected

from mario.datasets import load_dataset
from mario.datasets.generators.ba_shapes import ba_shapes
from mario.datasets.good_cbas import RULES, colored_split
from mario.graphs.rules import PARTS


def sizes(data: object) -> list[int]:
    return [int(data[f"{part}_mask"].sum()) for part in PARTS]  # type: ignore[index]


def test_the_graph_has_the_papers_counts_and_is_always_the_same() -> None:
    for seed in (0, 1, 7):
        for shift in ("covariate", "concept", "no_shift"):
            data = load_dataset("good-cbas", shift=shift, split_seed=seed)
            assert (data.num_nodes, data.num_edges, data.num_features) == (700, 3962, 4)
            assert torch.bincount(data.y).tolist() == [300, 160, 160, 80]
            digest = hashlib.sha256(data.edge_index.numpy().tobytes()).hexdigest()
            assert digest[:16] == "bc019945f10fbd85"
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)


def test_ba_shapes_is_drawn_as_pyg_draws_it() -> None:
    """PyG reads NumPy's global stream for the attachments; fed the same stream it gives the same random graph."""
    from torch_geometric.utils import barabasi_albert_graph

    stream = np.random.RandomState(11)
    first = torch.from_numpy(stream.permutation(5))
    saved = np.random.get_state()
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "randperm", lambda count: first)
        np.random.set_state(stream.get_state())
        theirs = barabasi_albert_graph(300, 5)
    np.random.set_state(saved)
    ours = ba_shapes(11).edge_index
    assert torch.equal(ours[:, (ours < 300).all(dim=0)], theirs)


def test_houses_hang_on_the_random_graph() -> None:
    data = ba_shapes(3)
    row, col = data.edge_index
    inside = (row >= 300) & (col >= 300)
    assert torch.equal((row[inside] - 300) // 5, (col[inside] - 300) // 5)
    one = (row[inside] < 305) & (col[inside] < 305)
    edges = {(a, b) for a, b in (data.edge_index[:, inside][:, one] - 300).t().tolist() if a < b}
    assert edges == {(0, 1), (1, 2), (2, 3), (0, 3), (0, 4), (1, 4)}
    bridges = data.edge_index[:, (row < 300) & (col >= 300)]
    assert bridges.size(1) == 80
    assert len(set(bridges[0].tolist())) == 80
    assert ((bridges[1] - 300) % 5 == 0).all()


def test_edge_counts_of_other_draws_lie_around_the_published_one() -> None:
    counts = [ba_shapes(seed).num_edges for seed in range(30)]
    assert min(counts) > 3870
    assert max(counts) < 4020
    assert len(set(counts)) > 5


def test_covariate_colors() -> None:
    data = load_dataset("good-cbas", shift="covariate", split_seed=2)
    assert sizes(data) == [420, 70, 70, 70, 70]
    assert torch.bincount(data.domain_id).tolist() == [112] * 5 + [70, 70]
    assert torch.equal(data.env_id[data.train_mask], data.domain_id[data.train_mask])
    assert (data.env_id[~data.train_mask] == -1).all()
    rows = {tuple(round(value, 4) for value in row) for row in data.x[data.ood_test_mask].tolist()}
    assert rows == {(0.0, 0.0, 0.0, 0.1)}
    rows = {tuple(round(value, 4) for value in row) for row in data.x[data.ood_val_mask].tolist()}
    assert rows == {(1.0, 0.0, 1.0, 1.0)}
    rows = {tuple(round(value, 4) for value in row) for row in data.x[data.id_test_mask].tolist()}
    assert rows == {(1, 0, 0, 0.5), (0, 1, 0, 0.7), (0, 0, 1, 0.3), (1, 1, 0, 0.4), (0, 1, 1, 0.6)}


def test_concept_colors_follow_the_class_less_and_less() -> None:
    data = load_dataset("good-cbas", shift="concept", split_seed=2)
    assert sizes(data) == [140] * 5
    colors = torch.tensor([[1, 0, 0, 0.5], [0, 1, 0, 0.7], [0, 0, 1, 0.3], [1, 1, 0, 0.2]])
    assert torch.equal(data.x, colors[data.domain_id])

    # Many nodes, so that shares are sharp: p + (1 - p)/4 of a group have their class's color.
    y = torch.randint(4, (140_000,), generator=torch.Generator().manual_seed(0))
    split, color = colored_split(y, RULES["concept"], torch.Generator().manual_seed(1))
    for env, chance in enumerate((0.95, 0.9, 0.85, 0.8, 0.75)):
        share = (color == y)[split.env_id == env].float().mean()
        assert share == pytest.approx(chance + (1 - chance) / 4, abs=0.01)
    for part, chance in ((3, 0.3), (4, 0.0)):
        share = (color == y)[split.part == part].float().mean()
        assert share == pytest.approx(chance + (1 - chance) / 4, abs=0.01)


def test_no_shift_has_one_color() -> None:
    data = load_dataset("good-cbas", shift="no_shift", split_seed=0)
    assert sizes(data) == [420, 70, 70, 70, 70]
    assert (data.x == 1).all()
    assert (data.domain_id == 0).all()


def test_no_global_random_state_is_read_or_changed() -> None:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()
    first = load_dataset("good-cbas", shift="concept", split_seed=0)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert np.array_equal(np.random.get_state()[1], states[2][1])
    torch.manual_seed(9)
    np.random.seed(9)
    assert torch.equal(load_dataset("good-cbas", shift="concept", split_seed=0).x, first.x)
    assert not torch.equal(load_dataset("good-cbas", shift="concept", split_seed=1).x, first.x)
