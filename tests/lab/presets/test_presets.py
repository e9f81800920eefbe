"""Settings files: complete, known to their methods, and taken in the right order."""

import dataclasses
import tomllib
from importlib.resources import files
from typing import Any

import pytest

from mario.datasets import CATALOG
from mario.errors import MarioError
from mario.lab.presets import RECIPE_SETTINGS, Evaluation, complete_settings, file_settings
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
    )
    for shift in ("concept", "covariate")
] + [("amazon-photo", "environment", "concept"), ("elliptic", "time", "label")]
OUR_CELLS = [(name, "domain", "concept") for name in ("shifting-10k", "shifting-100k", "shifting-1m")]
GRAPH_CELLS = [(name, "size", "covariate") for name in ("proteins-25", "dd-200", "dd-300")]
HOSTS = [name for name, cls in REGISTRY.items() if getattr(cls, "host", False)]
PAPER = sorted({cell.method.partition(" w/o")[0] for cell in paper.cells()} | {"random-init", "raw-features", *HOSTS})
TABLES = {
    entry.name.removesuffix(".toml"): tomllib.loads(entry.read_text(encoding="utf-8"))
    for entry in (files("mario.lab") / "presets").iterdir()
    if entry.name.endswith(".toml")
}


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


@pytest.mark.parametrize("method", [name for name in PAPER if "+" not in name])
def test_every_system_of_the_paper_has_a_cell_of_its_own_for_every_dataset_domain_and_shift(method: str) -> None:
    for dataset, domain, shift in cells_of(method):
        cell = TABLES[method][dataset][domain][shift]
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


def test_every_file_is_read_by_a_method_that_knows_its_keys() -> None:
    evaluation = {field.name for field in dataclasses.fields(Evaluation)}
    for name, table in TABLES.items():
        known = {field.name for cls in REGISTRY.values() for field in cls.fields()}
        known = known if name == "default" else {field.name for field in find(name).fields()}
        for dataset, domains in table.items():
            for domain, shifts in domains.items():
                for shift, cell in shifts.items():
                    assert (dataset, domain, shift) in (*NODE_CELLS, *OUR_CELLS, *GRAPH_CELLS), name
                    assert cell.keys() <= known | evaluation, (name, dataset, domain, shift)


@pytest.mark.parametrize("method", [name for name in TABLES if "good-cbas" in TABLES[name]])
def test_datasets_that_stand_in_for_others_take_their_settings(method: str) -> None:
    table = TABLES[method]
    assert table["webkb"] == table["good-webkb"]
    for domain in ("word", "degree"):
        for shift in ("concept", "covariate"):
            cora, stands_in = table["good-cora"][domain][shift], table["coauthor-cs"][domain][shift]
            differ = {key for key in cora.keys() | stands_in.keys() if cora.get(key) != stands_in.get(key)}
            assert differ <= {"sampling", "steps_per_epoch", "warmup"}, (domain, shift)


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
            "probe": "logistic",
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
        {"num_layers": 2, "hidden_channels": 64, "readout": "max", "probe": "logistic"},
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


def test_a_method_without_a_file_runs_by_the_shared_protocol() -> None:
    @dataclasses.dataclass(eq=False, repr=False, kw_only=True)
    class Toy(Method):
        """A method that somebody adds."""

    register("toy")(Toy)
    try:
        settings = complete_settings("toy", "elliptic", "time", "label")
        assert (settings["encoder"], settings["num_layers"], settings["hidden_channels"]) == ("sage", 5, 32)
        assert complete_settings("toy", "good-cora", "word", "concept")["roots"] == 4096
        assert complete_settings("toy", "dd-200", "size", "covariate")["probe"] == "logistic"
    finally:
        del REGISTRY["toy"]


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
