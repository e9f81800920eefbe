"""``mario graph split`` as a person types it, and a folder wherever a dataset's name is taken."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from forked import mario
from mario.cli import app
from mario.datasets import load_dataset
from mario.embedder import ModelFolder
from mario.errors import MarioError
from mario.lab.result import RunResult
from own_graph import own_folder

FIT = ["--set", "steps=2", "--set", "hidden_channels=8", "--set", "method=grace"]
QUICK = ["--set", "epochs=2", "--set", "hidden_channels=8"]


def split(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["graph", "split", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def declared(folder: Path) -> Any:
    return tomllib.loads((folder / "graph.toml").read_text()).get("split")


def sizes(found: dict[str, Any]) -> dict[str, int]:
    return {part["name"]: part["nodes"] for part in found["parts"]}


def test_shows_the_default_and_writes_nothing(tmp_path: Path) -> None:
    folder = own_folder(tmp_path / "mine")
    before = (folder / "graph.toml").read_bytes()
    found = split(str(folder))
    assert (found["by"], found["split"], found["written"]) == ("time", None, False)
    assert (sizes(found)["ood_val"], sizes(found)["ood_test"], sum(sizes(found).values())) == (48, 48, 240)
    assert (folder / "graph.toml").read_bytes() == before


def test_declares_times_and_keeps_the_rest_of_the_card(tmp_path: Path) -> None:
    folder = own_folder(tmp_path / "mine")
    words = ["--train-until", "2016", "--validation-until", "2017-06", "--gap", "30 days"]
    assert not split(str(folder), *words, "--dry-run")["written"]
    assert declared(folder) is None
    found = split(str(folder), *words)
    assert found["written"]
    assert declared(folder) == found["split"] == {
        "by": "time", "train_until": "2016", "validation_until": "2017-06", "gap": "30 days",
    }  # fmt: skip
    data = load_dataset(folder)
    assert {name: int(data[f"{name}_mask"].sum()) for name in sizes(found) if name != "none"} == {
        name: count for name, count in sizes(found).items() if name != "none"
    }
    assert data.split_note == ""
    assert data.class_names == ["cat", "dog", "owl"]
    assert split(str(folder), "--remove")["split"] is None
    assert declared(folder) is None


def test_names_imply_their_column(tmp_path: Path) -> None:
    folder = own_folder(tmp_path / "mine")
    assert split(str(folder), "--leave-out", "Rome")["split"] == {"by": "town", "leave_out": "Rome"}
    words = ["--train", "Bern,Oslo", "--validation", "Lima", "--test", "rest"]
    assert sizes(split(str(folder), *words, "--in-domain", "0"))["ood_test"] == 60
    assert declared(folder) == {
        "by": "town", "train": ["Bern", "Oslo"], "validation": ["Lima"], "test": "rest", "in_domain": 0.0,
    }  # fmt: skip
    found = split(str(folder), "--by", "degree", "--train", "0.5", "--validation", "0.2", "--descending")
    assert found["split"] == {"by": "degree", "train": 0.5, "validation": 0.2, "descending": True}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--leave-out", "Paris"], "no domain of the graph has Paris; say which column is meant with --by COLUMN"),
        (["--by", "town", "--leave-out", "Romee"], "town has no domain 'Romee'.*did you mean 'Rome'"),
        (["--descending"], "say what the graph is split by: --by time"),
        (["--by", "twon"], "'twon' is neither a column of the graph, which has time, town.*did you mean 'town'"),
        (["--train-until", "2031"], "the split by time leaves ood_test without nodes"),
        (["--train-until", "soon"], 'train_until = "soon" is no date'),
        (["--remove", "--by", "time"], "--remove takes no other option"),
    ],
)
def test_a_wrong_split_is_explained_and_not_written(tmp_path: Path, words: list[str], message: str) -> None:
    folder = own_folder(tmp_path / "mine")
    before = (folder / "graph.toml").read_bytes()
    with pytest.raises(MarioError, match=message):
        CliRunner().invoke(app, ["graph", "split", str(folder), *words], catch_exceptions=False)
    assert (folder / "graph.toml").read_bytes() == before


def test_facts_are_read_before_training(tmp_path: Path) -> None:
    folder = own_folder(tmp_path / "mine")
    shown = CliRunner().invoke(app, ["graph", "split", str(folder), "--by", "town", "--test", "Rome"]).stdout
    for said in ("split by town", "warning: there is no ood_val", "are between train and ood_test"):
        assert said in shown, said
    assert "in no part" not in shown
    shown = CliRunner().invoke(app, ["data", "show", str(folder)]).stdout
    for said in ("town    covariate", "split by town, covariate", "labeled", "warning: ood_test has "):
        assert said in shown, said
    none = own_folder(tmp_path / "none", labels=False)
    done = CliRunner().invoke(app, ["data", "show", str(none), "--json"])
    told = json.loads(done.stdout)
    assert "concept" not in {row["shift"] for row in told["splits"]}
    assert told["split"]["warnings"][0] == "no labels: embeddings can be trained, but not scored"
    assert told["note"].startswith("graph.toml has no [split], so the graph is split by time (the first 60 % train")


def test_a_folder_is_run_tuned_and_fitted_like_a_dataset(tmp_path: Path) -> None:
    own_folder(tmp_path / "few")
    done = mario("run", "few", "--method", "grace", *QUICK, "-q", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "split by time (the first 60 % train" in done.stderr
    assert "% of the edges of training nodes go to later ones" in done.stderr
    result = RunResult.read(tmp_path / "run")
    assert result.scores.ood_test is not None
    assert result.spec.case.dataset == (tmp_path / "few").as_posix()
    assert result.data is not None

    done = mario("tune", "few", "--method", "grace", "--trials", "1", "--seeds", "1", "--set", "epochs=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = mario("fit", "few", "-o", "model", *FIT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ModelFolder.read(tmp_path / "model").about.score is not None

    assert mario("graph", "split", "few", "--leave-out", "Oslo", cwd=tmp_path).returncode == 0
    again = mario("run", "few", "--method", "grace", *QUICK, "-q", "--domain", "time", "--out", "run", cwd=tmp_path)
    assert again.returncode == 0, again.stderr  # the split by time is as before
    other = mario("run", "few", "--method", "grace", *QUICK, "-q", "--out", "run2", cwd=tmp_path)
    assert other.returncode == 0, other.stderr
    assert mario("graph", "split", "few", "--leave-out", "Rome", cwd=tmp_path).returncode == 0
    changed = mario("run", "few", "--method", "grace", *QUICK, "-q", "--out", "run2", cwd=tmp_path)
    assert changed.returncode == 2
    assert "run2 holds a run on other data" in changed.stderr
    assert "The graph or its split was changed" in changed.stderr


def test_a_folder_without_labels_is_run_and_fitted(tmp_path: Path) -> None:
    own_folder(tmp_path / "none", labels=False)
    done = mario("run", "none", "--method", "grace", *QUICK, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "nothing was scored, as no label is in train" in done.stdout
    assert "warning: no labels: embeddings can be trained, but not scored" in done.stderr
    assert not RunResult.read(tmp_path / "run").scores.chosen_on
    page = mario("report", ".", "--out", "page.html", cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    done = mario("run", "none", "--method", "erm", *QUICK, cwd=tmp_path)
    assert done.returncode == 2
    assert "erm learns from labels" in done.stderr
    done = mario("fit", "none", "-o", "model", *FIT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ModelFolder.read(tmp_path / "model").about.score is None
    done = mario("tune", "none", "--method", "grace", "--trials", "1", cwd=tmp_path)
    assert done.returncode == 2
    assert "has no ood_val set to choose by" in done.stderr


def test_graphs_of_a_study_are_beside_its_file(tmp_path: Path) -> None:
    home = tmp_path / "study"
    own_folder(home / "few")
    own_folder(home / "none", labels=False)
    (home / "towns.toml").write_text(
        'rows = ["raw-features", "grace"]\nreference = "raw-features"\nsubject = "grace"\nshow = ["table"]\n'
        'seeds = 1\nepochs = 2\ncheckpoints = 1\n[[cases]]\ndataset = "few"\n[[cases]]\ndataset = "none"\n'
    )
    done = mario("reproduce", "study/towns.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "runs: 4 of 4 done" in done.stdout
