"""The generator: what its arguments say is what is in the folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, degree, is_undirected

from mario.datasets import CATALOG, load_dataset
from mario.datasets.generators import shifting
from mario.datasets.generators.shifting import write_shifting
from mario.errors import MarioError
from mario.graphs import check_graph, load_mapped, training_graph
from mario.graphs.paging import mapping_of

Make = Callable[..., Data]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def write(**arguments: Any) -> Data:
        folder = tmp_path / f"graph-{len(list(tmp_path.iterdir()))}"
        write_shifting(folder, **{"nodes": 6000, "edges": 48_000, "features": 40, **arguments})
        return load_mapped(folder)

    return write


def test_the_graph_is_simple_and_symmetric_with_as_many_edges_as_asked(make: Make, tmp_path: Path) -> None:
    data = make()
    check_graph(data)
    assert (data.num_nodes, data.num_edges, data.x.shape) == (6000, 48_000, (6000, 40))
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)
    key = data.edge_index[0] * 6000 + data.edge_index[1]
    assert bool((key[1:] > key[:-1]).all())  # sorted, and no edge twice
    assert {path.suffix for path in (tmp_path / "graph-0").iterdir()} == {".npy", ".json"}  # no bucket is left


def test_many_buckets_make_as_sound_a_graph_as_one(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shifting, "_PAIRS", 1000)
    data = make()
    assert data.num_edges == 48_000
    assert is_undirected(data.edge_index)
    key = data.edge_index[0] * 6000 + data.edge_index[1]
    assert bool((key[1:] > key[:-1]).all())


def test_it_is_a_function_of_its_seed_alone(make: Make) -> None:
    torch.manual_seed(1)
    one = make(seed=3)
    state = torch.get_rng_state()
    two, other = make(seed=3), make(seed=4)
    assert torch.equal(torch.get_rng_state(), state)
    for key, value in one:
        assert torch.equal(value, two[key]) if isinstance(value, torch.Tensor) else value == two[key]
    assert not torch.equal(one.x, other.x)
    assert not torch.equal(one.train_mask, other.train_mask)


def test_links_seek_their_class_and_domain(make: Make) -> None:
    # Even degrees and few edges: where links repeat, those within a class do so most.
    data = make(homophily=0.5, within=0.9, skew=1.0, edges=12_000)
    source, target = data.edge_index
    assert (data.y[source] == data.y[target]).float().mean().item() == pytest.approx(0.5 + 0.5 / 10, abs=0.03)
    near = data.domain_id[source] == data.domain_id[target]
    assert near.float().mean().item() == pytest.approx(0.9 + 0.1 / 10, abs=0.03)


def test_skew_makes_hubs(make: Make) -> None:
    even, uneven = (degree(make(skew=skew).edge_index[0], 6000) for skew in (1.0, 2.0))
    assert uneven.max() > 2 * even.max()
    assert even.mean() == uneven.mean() == 8


def test_parts(make: Make) -> None:
    data = make(domains=(3, 1, 2), labels=7, judged=0.2)
    train, id_val, id_test = data.train_mask, data.id_val_mask, data.id_test_mask
    assert torch.bincount(data.y[train]).tolist() == [7] * 10
    seen = data.domain_id < 3
    assert torch.equal(data.visible_mask, seen)
    for mask in (id_val, id_test):
        assert bool(seen[mask].all())
        assert int(mask.sum()) == pytest.approx(0.2 * int(seen.sum()), rel=0.15)
    assert torch.equal(data.ood_val_mask, data.domain_id == 3)
    assert torch.equal(data.ood_test_mask, data.domain_id > 3)
    assert torch.equal(data.env_id, torch.where(train, data.domain_id, -1))


def nearest(x: torch.Tensor, y: torch.Tensor, fit: torch.Tensor, judge: torch.Tensor) -> float:
    """Accuracy of the nearest class mean of ``fit`` on ``judge``."""
    means = torch.stack([x[fit & (y == label)].mean(0) for label in range(int(y.max()) + 1)])
    return (torch.cdist(x[judge], means).argmin(1) == y[judge]).float().mean().item()


def test_the_cue_holds_where_it_should_and_the_signal_everywhere(make: Make) -> None:
    data = make(cue=2.0, signal=1.0, offset=0.0, cue_columns=16, agreement=(0.9, 0.4, 0.0))
    cue, signal = data.x[:, :16], data.x[:, 16:]
    fit = data.id_val_mask
    due = {"id_test": 0.9 + 0.1 / 10, "ood_val": 0.4 + 0.6 / 10, "ood_test": 1 / 10}
    for part, rate in due.items():
        assert nearest(cue, data.y, fit, data[f"{part}_mask"]) == pytest.approx(rate, abs=0.05)
        assert nearest(signal, data.y, fit, data[f"{part}_mask"]) > 0.9


def test_domains_are_set_off_from_one_another(make: Make) -> None:
    data = make(offset=2.0, signal=0.0, cue=0.0)
    means = torch.stack([data.x[data.domain_id == domain].mean(0) for domain in range(10)])
    assert means.std(0).mean().item() == pytest.approx(2.0, rel=0.15)
    assert nearest(data.x, data.domain_id, data.y < 5, data.y >= 5) > 0.99


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nodes": 1}, "nodes must be a whole number of at least 2"),
        ({"classes": 2.5}, "classes must be a whole number"),
        ({"labels": 0}, "labels must be"),
        ({"cue_columns": 40}, "cue_columns must leave columns"),
        ({"domains": (6, 2)}, "domains must be three numbers"),
        ({"homophily": 1.5}, "homophily must be from 0 to 1"),
        ({"agreement": (0.9, -0.1, 0)}, "agreement must be from 0 to 1"),
        ({"skew": 0.0}, "skew must be above 0, got 0.0"),
        ({"judged": 0.6}, "judged must be at most 0.5"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_arguments_are_one_error(make: Make, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        make(**wrong)


def test_the_dataset_is_made_once_and_read_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path))
    data = load_dataset("shifting-10k", split_seed=2)
    card = CATALOG["shifting-10k"]
    assert mapping_of(data.x) is not None
    assert (data.num_nodes, data.num_edges, data.num_features) == (card.nodes, card.edges, card.features)
    assert (data.name, data.domain, data.shift, data.setting, data.split_seed) == (
        "shifting-10k", "domain", "concept", "transductive", 2,
    )  # fmt: skip
    assert [path.name for path in (tmp_path / "graphs").iterdir()] == ["shifting-10k-2-v1"]
    monkeypatch.setattr(shifting, "write_shifting", lambda *_, **__: pytest.fail("made again"))
    assert torch.equal(load_dataset("shifting-10k", split_seed=2).x, data.x)
    seen = training_graph(data)
    assert seen.x is data.x
    assert set(seen.y[~seen.train_mask].tolist()) == {-1}
    assert "visible_mask" not in seen
    data.setting = "inductive"
    assert torch.equal(training_graph(data).n_id, data.visible_mask.nonzero().view(-1))


def test_a_making_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path))

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shifting, "finish_folder", fails)
    with pytest.raises(MarioError, match="No space left on device; set MARIO_CACHE"):
        load_dataset("shifting-10k")
    assert list((tmp_path / "graphs").iterdir()) == []
