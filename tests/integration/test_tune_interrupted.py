"""A tuning that is interrupted and killed in every way: no trial is lost, none is counted twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState

from mario.lab.case import Case
from mario.lab.tune.plan import Tuning
from mario.lab.tune.study import counted, open_study, orphaned
from mario.lab.tune.work import work

pytestmark = pytest.mark.timeout(900)  # half a minute where nothing else runs, and many times that where much does

GIVEN = {
    "hidden_channels": 16,
    "num_layers": 1,
    "epochs": 200,  # seconds: a trial of half a second may end before it is seen and killed
    "steps_per_epoch": 5,
    "probe_epochs": 5,
    "checkpoints": 6,
    "roots": 100,
}
CBAS = Case.find("good-cbas", shift="concept")
ASKED: dict[str, Any] = {"given": GIVEN, "only": ["lr", "tau"], "pruner": "none", "trials": 6}
TUNE = """
import json, sys
from pathlib import Path
from mario.lab.tune.work import tune
from mario.lab.case import Case
from mario.lab.tune.plan import Tuning
if __name__ == "__main__":
    case, asked = Case.find("good-cbas", shift="concept"), json.loads(sys.argv[1])
    tuning = Tuning.plan(case, "grace", folder=Path(sys.argv[2]), heartbeat=1, **asked)
    for now in tune(tuning, workers=2):
        print(now.done, flush=True)
"""
Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begin a command in a session of its own, whose processes end with the test at the latest."""
    begun = []

    def call(*words: Any, **options: Any) -> "subprocess.Popen[str]":
        # A shell starts what runs in its background with SIGINT ignored, and its children inherit that.
        heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        process = subprocess.Popen(words, start_new_session=True, text=True, preexec_fn=heard, **options)
        begun.append(process)
        return process

    yield call
    for process in begun:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if answer := found():
            return answer
        time.sleep(0.3)
    raise AssertionError("it did not come to pass in five minutes")


def running(study: optuna.Study) -> list[FrozenTrial]:
    states = [TrialState.RUNNING]
    return [
        trial
        for trial in study.get_trials(deepcopy=False, states=states)
        if trial.user_attrs.keys() >= {"runs", "worker"}
    ]


def done(study: optuna.Study) -> dict[int, float | None]:
    trials = counted(study.get_trials(deepcopy=False))
    return {trial.number: trial.value for trial in trials if trial.state == TrialState.COMPLETE}


def worker_of(trial: FrozenTrial) -> int:
    return int(trial.user_attrs["worker"].split()[1])


def dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def unclaimed(study: optuna.Study) -> set[int]:
    """Trials that a worker has asked for and not yet said that it has."""
    trials = study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
    return {trial.number for trial in trials if "worker" not in trial.user_attrs}


def kill_a_worker(study: optuna.Study) -> tuple[FrozenTrial, set[int]]:
    """The trial that died with it, and those that may have died unclaimed.

    Of a worker that ended its trial in the last moment and began none, another dies.
    """
    orphans: set[int] = set()
    while True:
        worker = worker_of(wait_for(lambda: running(study))[0])
        os.kill(worker, signal.SIGKILL)
        wait_for(partial(dead, worker))
        orphans |= unclaimed(study)
        if lost := [trial for trial in running(study) if worker_of(trial) == worker]:
            return lost[0], orphans


def test_a_study_survives_ctrl_c_and_the_deaths_of_parent_and_worker(tmp_path: Path, begin: Begin) -> None:
    folder, script = tmp_path / "runs", tmp_path / "tuning.py"
    script.write_text(TUNE)
    study = open_study(Tuning.plan(CBAS, "grace", folder=folder, **ASKED))

    words = [sys.executable, "-m", "mario", "tune", "good-cbas", "--method", "grace", "--shift", "concept"]
    words += ["--only", "lr,tau", "--pruner", "none", "--trials", "6", "--workers", "1"]
    words += [word for name, value in GIVEN.items() for word in ("--set", f"{name}={value}")]
    command = begin(*words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_for(lambda: done(study) and running(study))
    os.killpg(command.pid, signal.SIGINT)
    told = command.communicate(timeout=300)[1]
    assert command.returncode == 130, told
    assert "repeat the same command" in told
    # What was at work is given back, unless it came to its end before the signal.
    every = study.get_trials()
    states = Counter(trial.state for trial in every)
    assert states[TrialState.RUNNING] == 0
    assert states[TrialState.WAITING] == states[TrialState.FAIL] <= 1
    assert not orphaned(every)
    first = done(study)
    assert len(first) == states[TrialState.COMPLETE] >= 1

    # The same study from a script, so that a worker is taken for dead after six seconds and not after sixty.
    tuning = begin(sys.executable, script, json.dumps(ASKED), folder, stdout=subprocess.DEVNULL)
    lost, orphans = kill_a_worker(study)
    instead = wait_for(lambda: [t for t in study.get_trials() if lost.number in t.user_attrs.get("instead_of", ())])[0]
    assert instead.params == lost.params
    assert instead.user_attrs["lost"] == 1, "to be interrupted is no fault of a trial, to be killed may be"
    assert study.get_trials()[lost.number].state == TrialState.FAIL
    workers = {worker_of(trial) for trial in running(study)}
    tuning.kill()
    wait_for(lambda: all(map(dead, workers)))
    # Workers give back what they have when the parent dies; only what a killed one never claimed has nobody to do so.
    wait_for(lambda: {t.number for t in study.get_trials(states=[TrialState.RUNNING])} <= orphans)

    # That is taken over after a minute of silence.
    work(Tuning.plan(CBAS, "grace", folder=folder, heartbeat=1, **ASKED))
    assert len(done(study)) == len(counted(study.get_trials())) == 6
    assert first.items() <= done(study).items()
