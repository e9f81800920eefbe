"""``mario fit`` as a person types it."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from embedder.graphs import shifting
from forked import mario, start
from mario.datasets import save_dataset
from mario.embedder import ModelFolder

QUICK = ["--set", "steps=3", "--set", "hidden_channels=8", "--set", "method=grace"]


def test_fits_a_dataset_and_says_what_was_picked(tmp_path: Path) -> None:
    words = ["fit", "good-cbas", "--shift", "covariate", "-o", "model", *QUICK]
    done = mario(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for said in ("hidden_channels", "given", "raw-features", "random-init", "chosen", "Expect", "memory", "to drop"):
        assert said in done.stdout, said
    folder = ModelFolder.read(tmp_path / "model")
    assert folder.about.graph.source == "good-cbas"
    assert folder.about.graph.case["shift"] == "covariate"
    assert not (tmp_path / "model" / "checkpoint").exists()
    again = mario(*words, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "was done already" in again.stdout
    other = mario(*words, "--seed", "1", cwd=tmp_path)
    assert other.returncode == 2
    assert "holds the model of another fit" in other.stderr


def test_json_is_the_model(tmp_path: Path) -> None:
    done = mario("fit", "good-cbas", "-o", "m", "--json", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["digest"] == ModelFolder.read(tmp_path / "m").digest
    assert told["rule"] == "ood_val"


def test_quiet_prints_nothing(tmp_path: Path) -> None:
    done = mario("fit", "good-cbas", "-o", "m", "--quiet", *QUICK, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing-like-it"], "unknown dataset 'nothing-like-it'"),
        (["good-cbas", "--budget", "soon"], "a budget is a time such as 90s, 5m or 1h30m, got 'soon'"),
        (["good-cbas", "--budget", "0"], "a budget must be from 1s"),
        (["good-cbas", "--set", "wings=2"], "there is no setting 'wings'"),
        (["good-cbas", "--set", "steps=many"], "steps must be a whole number above 0, got 'many'"),
        (["good-cbas", "--set", "method=erm"], "erm learns from labels"),
        (["good-cbas", "--set", "method=grace+steady"], "use method=grace"),
        (["good-cbas", "--set", "method=grace strong"], "the strong adversary is for mario"),
        (["good-cbas", "--set", "method=nobody"], "there is no method 'nobody'"),
        (["good-cbas", "--set", "channels=z"], "unknown channel 'z'"),
        (["good-cbas", "--set", "center=maybe"], "unknown center 'maybe'"),
        (["good-cbas", "--set", "rule=luck"], "unknown rule 'luck'"),
        (["good-cbas", "--set", "tau=-1"], "tau must be at least"),
        (["good-cbas", "--seed", "-1"], "seed must be"),
        (["good-cbas", "--device", "abacus"], "device must be auto, cpu or cuda"),
        (["good-cbas", "-o", "file"], "is there and is no model"),
        (["good-cbas", "-o", "full"], "is there and is no model"),
    ],
)
def test_wrong_input_is_one_clear_line(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    done = mario("fit", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "model").exists()


def test_a_graph_without_labels_is_fitted_and_said_to_have_no_score(tmp_path: Path) -> None:
    save_dataset(shifting(labels=False), tmp_path / "mine", domains=("region",))
    done = mario("fit", "./mine", "-o", "m", "--set", "steps=2", "--set", "hidden_channels=8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no labels" in done.stdout
    assert "There are no labels to tell how well they hold on other domains" in done.stdout
    folder = ModelFolder.read(tmp_path / "m")
    assert folder.about.rule == "gate"
    assert folder.head() is None
    assert folder.about.score is None


def test_a_budget_that_is_too_small_says_what_was_left_out(tmp_path: Path) -> None:
    began = time.monotonic()
    done = mario("fit", "good-cbas", "--budget", "2s", "-o", "m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 60
    about = ModelFolder.read(tmp_path / "m").about
    if not any(not one.control for one in about.candidates):
        assert "the budget left no time to train" in done.stdout
    assert "not scored, as the budget was used up" in done.stdout or any(not one.control for one in about.candidates)


def test_ctrl_c_and_the_same_command_give_the_model_of_one_that_was_not_stopped(tmp_path: Path) -> None:
    words = ["fit", "good-cbas", "-q", "--set", "method=grace", "--set", "hidden_channels=8", "--set", "steps=400"]
    assert mario(*words, "-o", "whole", cwd=tmp_path).returncode == 0
    process = start("mario.cli", *words, "-o", "stopped", said=tmp_path / "said", cwd=tmp_path)
    training = tmp_path / "stopped" / "checkpoint" / "grace"
    began = time.monotonic()
    while not training.exists() and process.is_alive() and time.monotonic() - began < 60:
        time.sleep(0.05)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)
    process.join()
    if process.exitcode == 0:
        pytest.skip("the fit was over before it could be stopped")
    assert process.exitcode == 130
    err = (tmp_path / "said" / "err").read_text()
    assert err == "mario: interrupted: repeat the same command to continue from the last checkpoint\n"
    assert not (tmp_path / "stopped" / "model.json").exists()
    unfinished = mario("embed", "stopped", "good-cbas", "-o", "z.npy", cwd=tmp_path)
    assert "is not finished: repeat its command to continue it" in unfinished.stderr
    assert mario(*words, "-o", "stopped", cwd=tmp_path).returncode == 0
    assert ModelFolder.read(tmp_path / "stopped").digest == ModelFolder.read(tmp_path / "whole").digest


@pytest.mark.parametrize("dataset", ["webkb"])
def test_real_data(mario_data: Path, tmp_path: Path, dataset: str) -> None:
    done = mario("fit", dataset, "-o", "m", "--root", str(mario_data), *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    about = ModelFolder.read(tmp_path / "m").about
    assert about.graph.domains == ("cornell", "texas", "washington", "wisconsin")
    assert about.score is not None
    assert about.baseline is not None
    assert about.score > about.baseline
    done = mario("embed", "m", dataset, "-o", "z.npy", "--root", str(mario_data), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
