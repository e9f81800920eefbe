"""Settings files: complete, known to their methods, and taken in the right order."""

import tomllib
from importlib.resources import files

import pytest

from mario.errors import MarioError
from mario.experiments.settings import complete_settings, file_settings
from mario.graphs import CATALOGUE
from mario.methods import REGISTRY

CELLS = [
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
]


@pytest.mark.parametrize("method", REGISTRY)
def test_every_method_has_a_cell_for_every_dataset_domain_and_shift(method: str) -> None:
    for dataset, domain, shift in CELLS:
        assert dataset in CATALOGUE
        cell = file_settings(method, dataset, domain, shift)
        assert {"epochs", "probe_epochs", "probe_lr"} <= cell.keys(), (dataset, domain, shift)
        complete_settings(method, dataset, domain, shift)  # an unknown key would be an error


def test_every_settings_file_belongs_to_a_method() -> None:
    for entry in (files("mario.experiments") / "settings").iterdir():
        if entry.name.endswith(".toml"):
            assert entry.name.removesuffix(".toml") in REGISTRY
            assert set(tomllib.loads(entry.read_text(encoding="utf-8"))) <= set(CATALOGUE)


def test_the_papers_table_for_mario_on_cbas_concept() -> None:
    settings = complete_settings("mario", "good-cbas", "color", "concept")
    expected = {
        "layers": 3,
        "hidden": 300,
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
