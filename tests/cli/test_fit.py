"""``mario fit`` as a person types it."""

import json
from pathlib import Path

import pytest

from forked import mario
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
