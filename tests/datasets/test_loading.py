"""The facts of GOOD's splits, on the real data."""

import random
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from mario.datasets import CATALOG, REGISTRY, load_dataset
from mario.errors import MarioError
from mario.graphs import training_graph
from mario.graphs.rules import PARTS, SHIFTS

REAL = [
    ("good-cbas", "color"),
    ("good-webkb", "university"),
    ("good-twitch", "language"),
    ("webkb", "university"),
    ("coauthor-cs", "word"),
    ("coauthor-cs", "degree"),
    ("coauthor-physics", "word"),
    ("coauthor-physics", "degree"),
    ("citation-dblp", "word"),
    ("citation-dblp", "degree"),
]
NOT_HAD = ("good-cora", "elliptic")  # offline
LARGE = ("shifting-100k", "shifting-1m")  # would be generated
SPLITS = [(name, domain, shift) for name, domain in REAL for shift in SHIFTS]


def load(name: str, root: Path, **arguments: object) -> Data:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="GOOD-WebKB is faulty")
        return load_dataset(name, root=root, download=False, **arguments)  # type: ignore[arg-type]


def sizes(data: Data) -> list[int]:
    return [int(data[f"{part}_mask"].sum()) for part in PARTS]


def domains(data: Data, part: str) -> set[int]:
    return set(data.domain_id[data[f"{part}_mask"]].tolist())


def correlation(data: Data, part: str) -> float:
    mask = data[f"{part}_mask"]
    return float(np.corrcoef(data.y[mask], data.domain_id[mask])[0, 1])


@pytest.mark.parametrize("name", [name for name in CATALOG if name not in (*NOT_HAD, *LARGE)])
def test_counts_are_the_catalogs(name: str, mario_data: Path) -> None:
    card, data = CATALOG[name], load(name, mario_data)
    assert (data.num_nodes, data.num_edges) == (card.nodes, card.edges)
    assert (data.x.size(1), data.num_classes) == (card.features, card.classes)
    if name != "amazon-photo":  # whose labels a random network gives, not all ten of them
        assert data.y.unique().tolist() == list(range(card.classes))
    assert (data.metric, data.shift, data.setting) == (card.metric, card.default_shift, card.setting)


def test_counts_of_the_papers_table() -> None:
    table = {name: (c.nodes, c.edges, c.features, c.classes) for name, c in CATALOG.items()}
    assert table["amazon-photo"] == (10 * 7650, 10 * 2 * 119081, 755, 10)  # each edge once, in one of the ten graphs
    assert table["elliptic"] == (203769, 234355, 165, 2)
    assert table["citation-dblp"] == (17716, 105734, 1639, 4)  # as PyG's documentation has them
    assert table["coauthor-physics"] == (34493, 495924, 8415, 5)
    assert table["good-cora"] == (19793, 126842, 8710, 70)
    assert table["good-cbas"] == (700, 3962, 4, 4)
    assert table["good-webkb"] == (617, 1138, 1703, 5)
    assert table["good-twitch"] == (34120 - 2, 892346 - 2, 128, 2)  # two duplicate rows of FR are gone from our files


@pytest.mark.parametrize(("name", "domain", "shift"), SPLITS)
def test_every_node_is_in_one_part_and_environments_are_of_training(
    name: str, domain: str, shift: str, mario_data: Path
) -> None:
    data = load(name, mario_data, domain=domain, shift=shift)
    masks = torch.stack([data[f"{part}_mask"] for part in PARTS])
    assert masks.dtype == torch.bool
    assert (masks.sum(dim=0) == 1).all()
    assert torch.equal(data.env_id >= 0, data.train_mask)
    assert data.env_id.unique().tolist() == list(range(-1, int(data.env_id.max()) + 1))
    assert (data.name, data.domain, data.shift, data.setting, data.split_seed) == (
        name, domain, shift, "transductive", 0,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "domain", "shift"), SPLITS)
def test_a_split_is_a_function_of_its_seed(name: str, domain: str, shift: str, mario_data: Path) -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    one, two, other = (load(name, mario_data, domain=domain, shift=shift, split_seed=seed) for seed in (3, 3, 4))
    for key in (*(f"{part}_mask" for part in PARTS), "domain_id", "env_id"):
        assert torch.equal(one[key], two[key])
    assert not torch.equal(one.train_mask, other.train_mask)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])
    assert random.getstate() == states[2]


@pytest.mark.parametrize(("name", "domain"), REAL)
def test_covariate_shift_keeps_domains_apart(name: str, domain: str, mario_data: Path) -> None:
    data = load(name, mario_data, domain=domain, shift="covariate")
    inside = domains(data, "train") | domains(data, "id_val") | domains(data, "id_test")
    assert not inside & domains(data, "ood_test")
    assert not inside & domains(data, "ood_val")
    tenth = data.num_nodes // 10
    assert sizes(data)[1:3] == [tenth, tenth]


@pytest.mark.parametrize(("name", "domain"), [pair for pair in REAL if CATALOG[pair[0]].nodes > 10_000])
def test_covariate_cuts_stand_at_the_first_change_of_domain(name: str, domain: str, mario_data: Path) -> None:
    data = load(name, mario_data, domain=domain, shift="covariate")
    train, id_val, id_test, ood_val, ood_test = (count / data.num_nodes for count in sizes(data))
    in_distribution = train + id_val + id_test
    largest = float(torch.bincount(data.domain_id).max()) / data.num_nodes
    first, second = REGISTRY[name].rule.cuts
    assert first <= in_distribution + 1 / data.num_nodes < first + largest
    assert second <= in_distribution + ood_val + 1 / data.num_nodes < second + largest
    assert ood_test > 0.1


@pytest.mark.parametrize("name", ["coauthor-cs", "coauthor-physics", "citation-dblp"])
def test_covariate_trains_on_many_words_and_many_links(name: str, mario_data: Path) -> None:
    for domain in ("word", "degree"):
        data = load(name, mario_data, domain=domain, shift="covariate")
        lowest = {part: min(domains(data, part)) for part in PARTS}
        assert lowest["train"] > max(domains(data, "ood_val"))
        assert lowest["ood_val"] > max(domains(data, "ood_test"))


def test_published_sizes(mario_data: Path) -> None:
    assert sizes(load("good-webkb", mario_data, shift="covariate")) == [244, 61, 61, 125, 126]
    twitch = load("good-twitch", mario_data, shift="covariate")
    assert sizes(twitch) == [14450, 3411, 3411, 6549, 6297]
    assert [domains(twitch, part) for part in ("train", "ood_val", "ood_test")] == [{0, 1, 2}, {3}, {4, 5}]
    assert sizes(load("good-cbas", mario_data, shift="covariate")) == [420, 70, 70, 70, 70]
    assert sizes(load("good-cbas", mario_data, shift="concept")) == [140] * 5


@pytest.mark.parametrize("split_seed", range(3))
@pytest.mark.parametrize(("name", "domain"), [pair for pair in REAL if pair[0] != "good-cbas"])
def test_concept_shift_turns_the_correlation_of_label_and_domain(
    name: str, domain: str, split_seed: int, mario_data: Path
) -> None:
    data = load(name, mario_data, domain=domain, shift="concept", split_seed=split_seed)
    assert correlation(data, "train") < -0.3
    assert correlation(data, "id_test") < -0.3
    assert correlation(data, "ood_test") > 0.1
    train, id_val, id_test, _, _ = sizes(data)
    fifteen = int((train + id_val + id_test) * 0.15)
    assert (id_val, id_test) == (fifteen, fifteen)
    assert set(data.env_id.tolist()) == {-1, 0, 1, 2}


@pytest.mark.parametrize("domain", ["word", "degree"])
def test_concept_shares_are_near_good_coras(domain: str, mario_data: Path) -> None:
    """GOOD's table for Cora: 10,389 of 19,793 in distribution, 3,807 ood_val, 5,597 ood_test."""
    data = load("coauthor-cs", mario_data, domain=domain, shift="concept")
    train, id_val, id_test, ood_val, ood_test = (count / data.num_nodes for count in sizes(data))
    assert train + id_val + id_test == pytest.approx(0.525, abs=0.04)
    assert ood_val == pytest.approx(0.192, abs=0.03)
    assert ood_test == pytest.approx(0.283, abs=0.03)


@pytest.mark.parametrize(("name", "domain"), REAL)
def test_without_shift_parts_are_alike(name: str, domain: str, mario_data: Path) -> None:
    data = load(name, mario_data, domain=domain, shift="no_shift")
    train = 0.4 if name == "good-twitch" else 0.6
    rest = (1 - train) / 4
    for part, share in zip(PARTS, (train, rest, rest, rest, rest), strict=True):
        assert int(data[f"{part}_mask"].sum()) == pytest.approx(share * data.num_nodes, abs=1)
    if data.num_nodes > 10_000:
        labels = [torch.bincount(data.y[data[f"{part}_mask"]]) / int(data[f"{part}_mask"].sum()) for part in PARTS]
        assert max(float((share - labels[0]).abs().max()) for share in labels) < 0.04


def test_each_university_can_be_held_out(mario_data: Path) -> None:
    places = {"cornell": (0, 97, 98), "texas": (1, 93, 94), "washington": (2, 115, 115), "wisconsin": (3, 132, 133)}
    for university, (place, val, test) in places.items():
        data = load("webkb", mario_data, domain=university, shift="covariate")
        assert domains(data, "ood_test") == domains(data, "ood_val") == {place}
        assert domains(data, "train") == {0, 1, 2, 3} - {place}
        assert sizes(data)[3:] == [val, test]
        assert set(data.env_id.tolist()) == {-1, 0, 1, 2}
    default = load("webkb", mario_data, shift="covariate")
    assert domains(default, "ood_test") == {3}
    with pytest.raises(MarioError, match="concept takes domain 'university'"):
        load("webkb", mario_data, domain="texas", shift="concept")


def test_the_sound_webkb_is_what_the_field_notes_say(mario_data: Path) -> None:
    data = load("webkb", mario_data)
    assert torch.bincount(data.domain_id).tolist() == [195, 187, 230, 265]
    assert torch.bincount(data.domain_id[data.edge_index[0]]).tolist() == [304, 328, 446, 530]
    assert torch.equal(data.domain_id[data.edge_index[0]], data.domain_id[data.edge_index[1]])
    assert torch.bincount(data.y).tolist() == [218, 125, 80, 39, 415]
    rows = [{tuple(row) for row in data.x[data.domain_id == k].int().tolist()} for k in range(4)]
    assert not any(rows[i] & rows[j] for i in range(4) for j in range(i))
    # The page that a third of the links lead to is a university's home page.
    into = torch.bincount(data.edge_index[1], minlength=877)
    assert into.max() > 0.25 * 446


def test_the_fault_of_good_webkb_is_there_and_said(mario_data: Path) -> None:
    with pytest.warns(UserWarning, match=r"faulty at its source.*data\.faults") as caught:
        data = load_dataset("good-webkb", shift="covariate", root=mario_data)
    assert len(caught) == 1
    assert "byte-identical" in data.faults[0]
    cornell, texas = (data.x[data.domain_id == k] for k in (0, 1))
    assert torch.equal(cornell, texas)
    assert training_graph(data).faults == data.faults


@pytest.mark.parametrize("name", [name for name in CATALOG if name not in ("good-webkb", *NOT_HAD, *LARGE)])
def test_sound_datasets_load_without_a_warning(name: str, mario_data: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_dataset(name, root=mario_data, download=False).faults == []


def test_wide_features_stay_sparse_also_in_the_inductive_setting(mario_data: Path) -> None:
    data = load("coauthor-cs", mario_data, shift="covariate", setting="inductive")
    assert data.x.layout == torch.sparse_csr
    assert data.x.values().numel() == 1_092_079
    assert (data.x.values() == 1).all()
    seen = training_graph(data)
    assert seen.x.layout == torch.sparse_csr
    assert seen.x.shape == (int(data.train_mask.sum()), 6805)
    assert data.train_mask[seen.n_id[seen.edge_index]].all()


@pytest.mark.parametrize(("name", "domain", "shift"), SPLITS)
def test_inductive_training_touches_no_other_node(name: str, domain: str, shift: str, mario_data: Path) -> None:
    data = load(name, mario_data, domain=domain, shift=shift, setting="inductive")
    seen = training_graph(data)
    assert torch.equal(seen.n_id, data.train_mask.nonzero().view(-1))
    assert seen.edge_index.size(1) == int(data.train_mask[data.edge_index].all(dim=0).sum())
    assert seen.num_nodes > int(seen.edge_index.max())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "good-cbsa"}, "did you mean 'good-cbas'"),
        (
            {"name": "imagenet"},
            "citation-dblp, coauthor-cs, coauthor-physics, elliptic, good-cbas, good-cora, good-twitch, good-webkb",
        ),
        ({"name": "good-cbas", "domain": "colour"}, "did you mean 'color'"),
        ({"name": "good-cora", "domain": "words"}, "use one of word, degree; did you mean 'word'"),
        ({"name": "good-cbas", "shift": "Concept"}, "did you mean 'concept'"),
        ({"name": "good-cbas", "shift": "sideways"}, "covariate, concept, no_shift"),
        ({"name": "good-cbas", "setting": "induct"}, "did you mean 'inductive'"),
        ({"name": "good-cbas", "split_seed": "0"}, "split_seed"),
    ],
)
def test_unknown_names_say_what_would_do(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        load_dataset(**arguments)  # type: ignore[arg-type]
