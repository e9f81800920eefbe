"""Presets: complete, known to their methods, and applied in the right order."""

import dataclasses
import json
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from mario import datasets
from mario.datasets import CATALOG
from mario.errors import MarioError
from mario.lab.presets import RECIPE_SETTINGS, complete_settings, dataset_settings, file_settings, settings_of
from mario.lab.studies import paper
from mario.methods import REGISTRY, Method, find, register

NODE_CELLS = [
    (name, domain, shift)
    for name, domain in (
        ("good-cbas", "color"),
        ("good-webkb", "university"),
        ("good-twitch", "language"),
        ("good-cora", "word"),
        ("good-cora", "degree"),
        ("webkb", "university"),
        ("coauthor-cs", "word"),
        ("coauthor-cs", "degree"),
        ("coauthor-physics", "word"),
        ("coauthor-physics", "degree"),
        ("citation-dblp", "word"),
        ("citation-dblp", "degree"),
    )
    for shift in ("concept", "covariate")
] + [("amazon-photo", "environment", "concept"), ("elliptic", "time", "label")]
OUR_CELLS = [(name, "domain", "concept") for name in ("shifting-10k", "shifting-100k", "shifting-1m")]
GRAPH_CELLS = [(name, "size", "covariate") for name in ("proteins-25", "dd-200", "dd-300")]
HOSTS = [name for name, cls in REGISTRY.items() if getattr(cls, "host", False)]
PAPER = sorted({cell.method.partition(" w/o")[0] for cell in paper.cells()} | {"random-init", "raw-features", *HOSTS})
FOLDER = files("mario.lab") / "presets"
DATASETS = tomllib.loads((FOLDER / "datasets.toml").read_text(encoding="utf-8"))
TABLES = {
    entry.name.removesuffix(".toml"): tomllib.loads(entry.read_text(encoding="utf-8"))
    for entry in (FOLDER / "methods").iterdir()
}
CELLS = [json.loads(line) for line in (Path(__file__).parent / "cells.jsonl").read_text().splitlines()]
"""Method, dataset, domain, shift and settings of every cell, as they were when each had a table of its own."""


def cells_of(method: str) -> list[tuple[str, str, str]]:
    levels = find(method).levels
    return (NODE_CELLS if "node" in levels else []) + (GRAPH_CELLS if "graph" in levels else [])


def test_the_cells_are_all_datasets_of_the_catalog_with_all_their_domains_and_shifts() -> None:
    listed = {
        (card.name, domain, shift)
        for card in CATALOG.values()
        for domain in (card.domains if card.name != "webkb" else ("university",))  # or one that is held out
        for shift in card.shifts
        if shift != "no_shift"
    }
    assert listed == {*NODE_CELLS, *OUR_CELLS, *GRAPH_CELLS}


def test_there_are_336_cells() -> None:
    assert len(CELLS) == len({tuple(cell[:4]) for cell in CELLS}) == 336


@pytest.mark.parametrize("method", sorted({cell[0] for cell in CELLS}))
def test_every_cell_resolves_to_the_values_it_had_when_it_was_written_out(method: str) -> None:
    for name, *place, expected in CELLS:
        if name == method:
            found = dataset_settings(*place) if name == "default" else file_settings(name, *place)
            # As text, in which 1, 1.0 and true differ.
            assert json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True), place


def test_every_file_says_where_its_values_come_from() -> None:
    for name, tables in {"datasets": DATASETS, **TABLES}.items():
        assert len(tables["source"]) > 20, name


def test_every_section_of_a_method_is_one_of_the_datasets_file() -> None:
    groups = {"paper", "good", "graph-sets", "shifting"}
    assert DATASETS.keys() - {"source"} == {*CATALOG, *groups}
    for name, tables in TABLES.items():
        assert tables.keys() - {"source", "like"} <= DATASETS.keys(), name


@pytest.mark.parametrize("method", [name for name in PAPER if "+" not in name])
def test_every_system_of_the_paper_has_a_file_and_settings_for_every_dataset_domain_and_shift(method: str) -> None:
    assert method in TABLES
    for dataset, domain, shift in cells_of(method):
        cell = file_settings(method, dataset, domain, shift)
        needed = {"epochs"} | ({"probe"} if CATALOG[dataset].level == "graph" else {"probe_epochs", "probe_lr"})
        if method != "raw-features":
            needed |= {"num_layers", "hidden_channels", "dropout", "batch_norm", "last_activation"}
        if find(method).trains:
            needed |= {"lr"}
        assert needed <= cell.keys(), (dataset, domain, shift)


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_has_the_recipes_settings_on_every_dataset(host: str) -> None:
    method = find(f"{host}+mario").name
    for place in cells_of(host):
        chosen = file_settings(method, *place)
        assert {"clusters", "gamma", "prototype_lr"} <= chosen.keys(), place
        complete_settings(method, *place)
        if host != "grace":
            own = {k: v for k, v in chosen.items() if k not in RECIPE_SETTINGS}
            assert own == file_settings(host, *place), place


def test_every_cell_of_the_papers_tables_has_settings() -> None:
    for cell in paper.cells():
        method = find(cell.method.partition(" w/o")[0]).name
        assert (cell.dataset, cell.domain, cell.shift or "covariate") in cells_of(method)


@pytest.mark.parametrize("method", REGISTRY)
def test_every_method_has_settings_that_it_knows(method: str) -> None:
    for place in (*cells_of(method), *(OUR_CELLS if "node" in find(method).levels else ())):
        complete_settings(method, *place)  # an unknown key would be an error


def settings_in(table: dict[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from settings_in(value)
        elif key not in ("source", "like", "only"):
            yield key


def test_every_file_is_read_by_a_method_that_knows_its_keys() -> None:
    every = {name for method in REGISTRY for name in settings_of(method)}
    assert set(settings_in(DATASETS)) <= every
    for name, tables in TABLES.items():
        assert set(settings_in(tables)) <= settings_of(name).keys(), name


@pytest.mark.parametrize("method", [None, *(name for name in TABLES if "node" in find(name).levels)])
def test_datasets_that_replace_others_take_their_settings(method: str | None) -> None:
    def preset(*place: str) -> dict[str, Any]:
        return file_settings(method, *place) if method else dataset_settings(*place)

    for shift in ("concept", "covariate"):
        assert preset("webkb", "university", shift) == preset("good-webkb", "university", shift)
        for domain in ("word", "degree"):
            cora, replacement = preset("good-cora", domain, shift), preset("coauthor-cs", domain, shift)
            differ = {key for key in cora.keys() | replacement.keys() if cora.get(key) != replacement.get(key)}
            assert differ <= {"sampling", "steps_per_epoch", "warmup"}, (domain, shift)
            for name, roots in (("citation-dblp", 1000), ("coauthor-physics", 850)):
                assert preset(name, domain, shift) == cora | ({"roots": roots} if "roots" in cora else {})


# method, dataset, domain, shift and what the released code of MARIO has there: hyperparameters.csv of the reference.
RELEASED: list[tuple[str, str, str, str, dict[str, Any]]] = [
    ("erm", "good-cbas", "color", "concept", {"epochs": 200, "lr": 3e-3, "dropout": 0.5, "probe_epochs": 500}),
    ("irm", "good-cbas", "color", "covariate", {"epochs": 200, "lr": 3e-3, "penalty": 10.0, "probe_epochs": 50}),
    ("irm", "good-cora", "word", "concept", {"penalty": 0.1, "roots": 4096}),
    ("irm", "good-twitch", "language", "concept", {"penalty": 1.0, "roots": 2048}),
    (
        "eerm",
        "good-cbas",
        "color",
        "covariate",
        {"lr": 5e-3, "beta": 1.0, "generators": 10, "inner_steps": 1, "edits": 2, "generator_lr": 5e-3},
    ),
    ("eerm", "good-cora", "degree", "concept", {"epochs": 100, "beta": 3.0, "edits": 1, "generator_lr": 1e-3}),
    ("eerm", "good-webkb", "university", "covariate", {"beta": 3.0, "edits": 2, "generator_lr": 1e-3}),
    ("gae", "good-cora", "word", "covariate", {"lr": 1e-5, "dropout": 0.0, "last_activation": True}),
    ("gae", "good-cbas", "color", "concept", {"epochs": 100, "lr": 1e-3, "batch_norm": False, "probe_epochs": 2000}),
    ("vgae", "good-cbas", "color", "concept", {"epochs": 500, "lr": 1e-3}),
    ("vgae", "good-twitch", "language", "covariate", {"epochs": 100, "lr": 1e-4, "roots": 2048}),
    ("graphmae", "good-cbas", "color", "covariate", {"epochs": 1000, "lr": 1e-3, "mask_rate": 0.75, "exponent": 2.0}),
    ("graphmae", "good-webkb", "university", "covariate", {"epochs": 200, "lr": 1e-4, "probe_epochs": 100}),
    ("dgi", "good-webkb", "university", "covariate", {"epochs": 1000, "lr": 1e-3, "dropout": 0.5}),
    ("dgi", "good-cora", "word", "concept", {"probe_epochs": 100, "probe_lr": 1e-1}),
    ("mvgrl", "good-cbas", "color", "concept", {"epochs": 500, "lr": 1e-4}),
    ("mvgrl", "good-cora", "degree", "covariate", {"epochs": 200, "lr": 1e-2, "dropout": 0.5}),
    ("grace", "good-webkb", "university", "concept", {"epochs": 200, "lr": 1e-2, "tau": 0.5}),
    (
        "bgrl",
        "good-cora",
        "degree",
        "concept",
        {"epochs": 10000, "lr": 1e-5, "momentum": 0.99, "warmup": 100, "schedule": "cosine"},
    ),
    ("bgrl", "good-cora", "word", "covariate", {"epochs": 500, "lr": 1e-2, "momentum": 0.999, "warmup": 500}),
    ("costa", "good-webkb", "university", "covariate", {"epochs": 200, "tau": 0.5, "dropout": 0.5}),
    (
        "swav",
        "good-cora",
        "word",
        "covariate",
        {"tau": 0.4, "mask_features_1": 0.3, "mask_features_2": 0.4, "drop_edges_1": 0.2, "drop_edges_2": 0.4},
    ),
    ("swav", "good-twitch", "language", "concept", {"epochs": 600, "lr": 1e-2, "probe_lr": 1e-1}),
]
# The same from the paper's text on the other datasets, and from EERM's run.sh where it says that all else is EERM's.
TEXT: list[tuple[str, str, str, str, dict[str, Any]]] = [
    (
        "mario",
        "amazon-photo",
        "environment",
        "concept",
        {
            "encoder": "gcn",
            "num_layers": 2,
            "hidden_channels": 128,
            "lr": 1e-4,
            "tau": 0.2,
            "gamma": 0.1,
            "clusters": 100,
        },
    ),
    (
        "mario",
        "elliptic",
        "time",
        "label",
        {
            "encoder": "sage",
            "num_layers": 5,
            "hidden_channels": 32,
            "tau": 0.8,
            "gamma": 0.5,
            "clusters": 120,
            "epochs": 200,
        },
    ),
    (
        "erm",
        "amazon-photo",
        "environment",
        "concept",
        {"num_layers": 2, "hidden_channels": 128, "lr": 1e-3, "weight_decay": 1e-3},
    ),
    ("eerm", "amazon-photo", "environment", "concept", {"lr": 1e-2, "generators": 5, "edits": 1, "generator_lr": 5e-3}),
    ("eerm", "elliptic", "time", "label", {"encoder": "sage", "lr": 2e-4, "generators": 3, "edits": 5}),
    (
        "graphcl",
        "dd-200",
        "size",
        "covariate",
        {
            "num_layers": 2,
            "hidden_channels": 64,
            "readout": "max",
            "lr": 0.01,
            "tau": 0.5,
            "probe": "liblinear",
            "drop_edges_2": 0.3,
        },
    ),
    (
        "graphcl+mario",
        "proteins-25",
        "size",
        "covariate",
        {"hidden_channels": 64, "tau": 0.5, "gamma": 0.5, "clusters": 40},
    ),
    (
        "erm",
        "dd-300",
        "size",
        "covariate",
        {"num_layers": 2, "hidden_channels": 64, "readout": "max", "probe": "liblinear"},
    ),
]


@pytest.mark.parametrize(("method", "dataset", "domain", "shift", "expected"), RELEASED + TEXT)
def test_values_are_those_of_the_source(
    method: str, dataset: str, domain: str, shift: str, expected: dict[str, Any]
) -> None:
    settings = complete_settings(method, dataset, domain, shift)
    assert {key: settings[key] for key in expected} == expected


def test_the_papers_table_for_mario_on_cbas_concept() -> None:
    settings = complete_settings("mario", "good-cbas", "color", "concept")
    expected = {
        "num_layers": 3,
        "hidden_channels": 300,
        "epochs": 200,
        "lr": 0.1,
        "tau": 0.2,
        "mask_features_1": 0.2,
        "mask_features_2": 0.3,
        "drop_edges_1": 0.2,
        "drop_edges_2": 0.3,
        "clusters": 100,
        "gamma": 0.1,
        "prototype_lr": 1e-4,
        "probe_epochs": 100,
        "probe_steps_per_epoch": 10,
        "probe_lr": 1e-2,
        "ascent_steps": 3,
        "epsilon": 1e-3,
        "prototype_steps": 10,
    }
    assert {key: settings[key] for key in expected} == expected


def test_what_a_user_sets_wins_and_texts_are_read_as_the_type_of_the_setting() -> None:
    given = {"epochs": "7", "lr": "0.5", "batch_norm": "false", "milestones": "10,20", "probe_epochs": 3}
    settings = complete_settings("mario", "good-cbas", "color", "concept", given)
    assert (settings["epochs"], settings["lr"], settings["batch_norm"]) == (7, 0.5, False)
    assert (settings["milestones"], settings["probe_epochs"]) == ((10, 20), 3)


def test_grace_with_the_recipe_takes_the_file_of_mario() -> None:
    assert file_settings("grace+mario", "good-cbas", "color", "concept")["lr"] == 0.1


def test_another_host_with_the_recipe_keeps_its_own_and_takes_the_recipes_from_mario() -> None:
    host = file_settings("costa", "good-webkb", "university", "concept")
    both = file_settings("costa+mario", "good-webkb", "university", "concept")
    assert (both["lr"], both["mask_features_1"]) == (host["lr"], host["mask_features_1"]) == (1e-2, 0.2)
    assert (both["clusters"], both["gamma"], both["prototype_lr"]) == (100, 0.1, 1e-3)


@pytest.fixture
def toy() -> Iterator[type[Method]]:
    @dataclasses.dataclass(eq=False, repr=False, kw_only=True)
    class Toy(Method):
        """A plug-in method."""

    yield register("toy")(Toy)
    del REGISTRY["toy"]


def test_a_method_without_a_file_runs_by_the_shared_protocol(toy: type[Method]) -> None:
    settings = complete_settings("toy", "elliptic", "time", "label")
    assert (settings["encoder"], settings["num_layers"], settings["hidden_channels"]) == ("sage", 5, 32)
    assert complete_settings("toy", "good-cora", "word", "concept")["roots"] == 4096
    assert complete_settings("toy", "dd-200", "size", "covariate")["probe"] == "liblinear"


def test_a_plug_in_method_brings_its_presets(toy: type[Method], tmp_path: Path) -> None:
    toy.presets_file = tmp_path / "toy.toml"
    toy.presets_file.write_text(
        """
        source = "our paper, Table 2"
        like = "dgi"
        [good]
        lr = 0.5
        [good-cbas]
        color.covariate = { epochs = 7 }
        [graph-sets]
        only = ["epochs"]
        lr = 0.25
        [mine]
        epochs = 3
        a.b = { epochs = 4 }
        """
    )
    cbas = file_settings("toy", "good-cbas", "color", "covariate")
    assert cbas == {**file_settings("dgi", "good-cbas", "color", "covariate"), "lr": 0.5, "epochs": 7}
    assert file_settings("toy", "good-cbas", "color", "concept")["epochs"] == 500
    assert file_settings("toy", "dd-200", "size", "covariate") == {"epochs": 20, "lr": 0.25}
    assert file_settings("toy", "mine", "a", "no_shift") == {"epochs": 4}, "the nearest, as the dataset lists none"


def plug_in(presets_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a dataset ``mine`` that has this file, until the end of the test."""
    card = dataclasses.replace(CATALOG["good-cbas"], name="mine")
    mine = type("Mine", (datasets.Dataset,), {"card": card, "presets_file": presets_file})
    monkeypatch.setitem(datasets.REGISTRY, "mine", mine())


def test_a_plug_in_dataset_brings_its_presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        """
        source = "chosen on validation"
        [mine]
        like = "good-cora"
        roots = 77
        gamma = 0.7
        word.concept = { probe_epochs = 9 }
        methods.grace = { lr = 0.25, word.concept = { tau = 0.9 } }
        """
    )
    plug_in(path, monkeypatch)
    cora = file_settings("grace", "good-cora", "word", "concept")
    changed = {"roots": 77, "probe_epochs": 9, "lr": 0.25, "tau": 0.9}
    assert file_settings("grace", "mine", "word", "concept") == {**cora, **changed}
    assert file_settings("grace", "mine", "word", "covariate")["tau"] == 0.2
    assert "gamma" not in file_settings("dgi", "mine", "word", "concept")
    assert file_settings("costa", "mine", "word", "concept")["lr"] == 0.25, "it is like grace"
    mario = file_settings("mario", "mine", "word", "concept")
    assert (mario["roots"], mario["clusters"]) == (77, 100)
    assert mario["gamma"] == 0.2, "the method's own section for good-cora is more particular"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[good]\nlearning = 1", r"toy\.toml, section good: toy has no setting 'learning'"),
        ("[good]\nepoch = 1", r"did you mean 'epochs'\?"),
        ("lr = 1", r"toy\.toml has 'lr' outside a section"),
        ("like = 'toy'", "presets go in a circle: toy like toy"),
        ("like = 'nobody'", "nobody"),
        ("[good", "is not valid TOML"),
        ("like = 3", r"toy\.toml: like must be a text, got 3"),
        ("[good]\nonly = 'lr'", r"section good: only must be a list of names of settings, got 'lr'"),
    ],
)
def test_a_wrong_file_of_a_method_is_one_clear_error(
    toy: type[Method], tmp_path: Path, text: str, message: str
) -> None:
    toy.presets_file = tmp_path / "toy.toml"
    toy.presets_file.write_text(text)
    with pytest.raises(MarioError, match=message):
        file_settings("toy", "good-cbas", "color", "concept")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[mine]\nlearning = 1", r"mine\.toml, section mine: no method has a setting 'learning'"),
        ("[mine]\na.b = { learning = 1 }", "no method has a setting 'learning'"),
        ("[mine]\nlike = 'yours'", "the preset of mine is like 'yours', which has no section"),
        ("[mine]\nlike = 'mine'", "presets go in a circle: mine like mine"),
        ("[mine]\ncolor.concept = 5", r"section mine: color\.concept must be a table of settings, got 5"),
        ("[mine]\nmethods = 5", "section mine: methods must hold a table for each method, got 5"),
        ("[mine]\nmethods.grace.only = [5]", r"section mine, methods\.grace: only must be a list of names"),
    ],
)
def test_a_wrong_file_of_a_dataset_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    plug_in(path, monkeypatch)
    with pytest.raises(MarioError, match=message):
        file_settings("dgi", "mine", "a", "b")


def test_a_dataset_that_no_file_knows_leaves_the_defaults() -> None:
    assert file_settings("dgi", "mine", "color", "concept") == {}


def test_no_shift_and_a_held_out_university_take_the_nearest_cell() -> None:
    nearest = file_settings("dgi", "webkb", "university", "covariate")
    assert file_settings("dgi", "webkb", "texas", "covariate") == nearest
    assert file_settings("dgi", "webkb", "university", "no_shift") == nearest
    assert file_settings("dgi", "elliptic", "time", "no_shift")["num_layers"] == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epoch": "7"}, "did you mean 'epochs'"),
        ({"epochs": "seven"}, "epochs=seven: that is not a whole number"),
        ({"checkpoints": "0"}, "checkpoints must be at least 1"),
        ({"xyz": "1"}, "it has adversarial"),
    ],
)
def test_wrong_settings_are_one_clear_error(given: dict[str, str], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        complete_settings("mario", "good-cbas", "color", "concept", given)
