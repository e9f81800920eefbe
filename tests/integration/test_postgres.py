"""One study of `mario tune` in a real PostgreSQL, shared by two commands as if on two machines."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from optuna.trial import FrozenTrial, TrialState

from mario.errors import RunFailedError
from mario.lab.case import Case
from mario.lab.tune.plan import Tuning
from mario.lab.tune.study import counted, open_study
from postgres import PASSWORD, USER, Postgres, initdb, running

pytestmark = pytest.mark.timeout(900)  # seconds where nothing else runs, and many times that where much does

GIVEN = {
    "hidden_channels": 16,
    "num_layers": 1,
    "epochs": 30,
    "steps_per_epoch": 5,
    "probe_epochs": 5,
    "checkpoints": 3,
    "roots": 100,
}
TRIALS = 10


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: make integration does")
    if initdb() is None:
        pytest.skip("PostgreSQL is not installed: tests/integration/install.sh does, as root")
    with running() as server:
        yield server


@pytest.fixture
def server(postgres: Postgres) -> str:
    return postgres.address


def plan(url: str, folder: Path) -> Tuning:
    """What the commands below ask for."""
    return Tuning.plan(
        Case.find("good-cbas", shift="concept"),
        "grace",
        given=GIVEN,
        only=["lr", "tau"],
        search={"lr": "0.0001:0.1:log"},
        trials=TRIALS,
        storage=url,
        folder=folder,
    )


def test_two_commands_share_a_study(server: str, tmp_path: Path) -> None:
    url = f"postgresql://{USER}:{PASSWORD}@{server}"
    words = ["tune", "good-cbas", "--method", "grace", "--shift", "concept", "--only", "lr,tau"]
    words += ["--search", "lr=0.0001:0.1:log", "--trials", str(TRIALS), "--workers", "1", "--storage", url]
    words += [word for name, value in GIVEN.items() for word in ("--set", f"{name}={value}")]
    commands = []
    for machine in ("one", "two"):  # at once, on a database without a table, each with a folder of its own
        (tmp_path / machine).mkdir()
        commands.append(
            subprocess.Popen(
                [sys.executable, "-m", "mario", *words, "-o", "best.toml"],
                cwd=tmp_path / machine,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        told = [command.communicate(timeout=600)[0] for command in commands]
    finally:
        for command in commands:
            command.kill()  # if it was too slow
    assert [command.returncode for command in commands] == [0, 0], "\n".join(told)
    assert not any(PASSWORD in text for text in told)
    best = [(tmp_path / machine / "best.toml").read_text() for machine in ("one", "two")]
    assert best[0] == best[1]

    every = open_study(plan(url, tmp_path)).get_trials()
    trials = counted(every)
    assert [trial.number for trial in every] == list(range(len(every))), "every number once"
    assert len(trials) == TRIALS
    assert {trial.state for trial in trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
    assert len({trial.user_attrs["worker"] for trial in trials}) == 2, "both took a part"
    for trial in trials:
        folders = [tmp_path / machine / "runs" / run for machine in ("one", "two") for run in trial.user_attrs["runs"]]
        assert any(folder.is_dir() for folder in folders)
    top = max((t for t in trials if t.state == TrialState.COMPLETE), key=_value)
    assert f"trial {top.number}, mean ood_val {_value(top):.4f}" in best[0]


def _value(trial: FrozenTrial) -> float:
    return trial.value or 0.0


def test_a_database_that_is_killed_loses_no_trial(postgres: Postgres, tmp_path: Path) -> None:
    words = ["tune", "good-cbas", "--method", "grace", "--shift", "concept", "--only", "lr", "--trials", "4"]
    words += ["--workers", "1", "--storage", postgres.url, "--study-name", "killed"]
    words += [word for name, value in GIVEN.items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "mario", *words]
    tuning = Tuning.plan(
        Case.find("good-cbas", shift="concept"),
        "grace",
        given=GIVEN,
        only=["lr"],
        trials=4,
        name="killed",
        storage=postgres.url,
        folder=tmp_path / "runs",
    )
    study = open_study(tuning)
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not (before := {t.number: t.value for t in study.get_trials() if t.state == TrialState.COMPLETE}):
            assert first.poll() is None, first.communicate()
            time.sleep(0.1)
        postgres.kill()
        said = first.communicate(timeout=300)[1]
    finally:
        first.kill()
        with suppress(AssertionError):  # it is running already
            postgres.start()
    assert first.returncode == 1, said
    errors = [line for line in said.splitlines() if line.startswith("mario: error: ")]
    assert len(errors) == 1, said
    assert "storage postgresql" in errors[0]
    assert PASSWORD not in said
    assert "Traceback" not in said

    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert again.returncode == 0, again.stderr
    trials = counted(study.get_trials())
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 4
    assert before.items() <= {trial.number: trial.value for trial in trials}.items()


def test_a_wrong_password_and_a_silent_port_are_told_without_the_password(server: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailedError) as told:
        open_study(plan(f"postgresql://{USER}:hunter2@{server}", tmp_path))
    assert f"cannot reach the storage postgresql+psycopg://{USER}@{server}: " in str(told.value)
    assert "password authentication failed" in str(told.value)
    assert "hunter2" not in str(told.value)
    with pytest.raises(RunFailedError, match=r"cannot reach the storage .*: connection failed"):
        open_study(plan(f"postgresql://{USER}:hunter2@127.0.0.1:1/postgres", tmp_path))
