"""``mario tune`` and ``mario run --preset``, in this process but for the worker."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mario.cli import app
from mario.errors import MarioError, RunFailedError
from mario.lab.case import Case
from mario.lab.spec import RunSpec
from mario.lab.tune.plan import Tuning
from mario.lab.tune.study import open_study
from mario.untrusted import read_json

TINY = ["hidden_channels=8", "num_layers=1", "epochs=2", "steps_per_epoch=1", "probe_epochs=2", "checkpoints=2"]
FIXED = [word for text in TINY for word in ("--set", text)]
TUNE = ["tune", "good-cbas", "--method", "random-init", "--shift", "concept", *FIXED, "--only", "probe_lr,dropout"]


@pytest.fixture
def mario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def call(*words: str) -> str:
        done = CliRunner().invoke(app, words, catch_exceptions=True)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.output

    return call


def test_the_best_settings_go_to_mario_run(tmp_path: Path, mario: Any) -> None:
    shown = mario(*TUNE, "--trials", "3", "--workers", "1", "--sampler", "random", "--pruner", "none")
    assert "probe_lr: 0.1, 0.01, 0.001, 0.0001" in shown
    assert "best of 3 trials" in shown
    name = "good-cbas-color-concept-random-init"
    assert f"mario run good-cbas --preset runs/tune/{name}.toml" in shown
    # The method, the shift and all settings are in the file: it is the run of the best trial, which is done.
    again = mario("run", "good-cbas", "--preset", f"runs/tune/{name}.toml")
    assert "random-init on good-cbas, color, concept" in again
    assert "was done already" in again
    # What is said beside the file wins over it.
    mario(
        "run",
        "good-cbas",
        "--preset",
        f"runs/tune/{name}.toml",
        "--set",
        "hidden_channels=9",
        "--seed",
        "4",
        "--out",
        "x",
    )
    result = read_json(tmp_path / "x" / "result.json")
    assert (result["settings"]["hidden_channels"], result["seed"], result["settings"]["num_layers"]) == (9, 4, 1)
    # Nothing is left to do, and another worker is not begun for it.
    before = sorted((tmp_path / "runs").iterdir())
    resumed = mario(*TUNE, "--trials", "3", "--workers", "1", "-o", "best.json")
    assert "best of 3 trials" in resumed
    assert read_json(tmp_path / "best.json")["settings"]["hidden_channels"] == 8
    assert sorted((tmp_path / "runs").iterdir()) == before


def test_settings_of_another_dataset_bring_no_shift(
    tmp_path: Path, mario: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.toml").write_text("dataset = 'good-webkb'\ndomain = 'university'\nmethod = 'grace'\n[settings]\n")
    said: list[Any] = []

    def plan(*args: Any, **kwargs: Any) -> None:
        said.append(args)
        raise MarioError("enough")

    monkeypatch.setattr(RunSpec, "plan", plan)
    with pytest.raises(MarioError, match="enough"):
        mario("run", "good-cbas", "--preset", "a.toml")
    assert said == [(Case.find("good-cbas"), "grace")], "the domain of the preset is of another dataset"
    (tmp_path / "b.toml").write_text("method = 'grace'\n[settings]\ngamma = 0.1\n")
    with pytest.raises(MarioError, match=r"b.toml: grace has no setting 'gamma'"):
        mario("run", "good-cbas", "--preset", "b.toml")


def test_all_failed(mario: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(tuning: Tuning, **_: Any) -> Any:
        study = open_study(tuning)
        study.optimize(_fail, n_trials=1, catch=(ValueError,))
        return iter(())

    monkeypatch.setattr("mario.lab.tune.work.tune", broken)
    with pytest.raises(RunFailedError, match="all of 1 trials failed, the last: the disk is round"):
        mario(*TUNE, "--trials", "1")


def _fail(trial: Any) -> float:
    trial.set_user_attr("worker", "me")
    trial.set_user_attr("error", "the disk is round")
    raise ValueError


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--search", "gama=1,2"], "random-init has no setting 'gama'"),
        (["--search", "lr"], "--search takes NAME=RANGE such as lr=0.001:0.1:log, got 'lr'"),
        (["-o", "best.yaml"], r"a preset is written to .toml or .json, got best.yaml"),
        (["--storage", "nosuch://x"], "is neither a file nor a database URL"),
    ],
)
def test_wrong_input_is_named(mario: Any, words: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(MarioError, match=message):
        mario(*TUNE, *words)
    assert not list(tmp_path.iterdir())


def test_without_the_extra_it_says_what_to_install() -> None:
    words = "import sys; sys.modules['optuna'] = None; sys.argv = ['mario', 'tune', 'good-cbas']"
    code = f"{words}; import mario.cli as cli; cli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "mario: error: tuning needs Optuna, which is not installed: pip install 'mario-gcl[tune]'\n"
