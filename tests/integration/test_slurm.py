"""Runs by a real Slurm of one node: claimed once, resumed after kills, and never repeated."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mario.errors import RunFailedError
from mario.lab.case import Case
from mario.lab.launch import launch, slurm
from mario.lab.runs import lock, store
from mario.lab.runs.job import Job
from mario.lab.spec import RunSpec

pytestmark = pytest.mark.timeout(1200)  # on a busy machine it takes minutes to import torch eight times
SCRIPT = Path(__file__).parent / "slurm.sh"
WATCH = """
import sys
from pathlib import Path
from mario.lab.runs.job import Job
from mario.lab.launch import launch
import json
jobs = [Job.from_dict(job) for job in json.loads(sys.argv[1])]
for now in launch(jobs, Path(sys.argv[2]), launcher="slurm", workers=2):
    print(now.done_runs, flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def _slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    pytest.importorskip("submitit", reason="submitit is not installed: make integration does")
    if os.geteuid() != 0:
        pytest.skip("a Slurm of one's own can be started by root only")
    if any(shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None for tool in ("slurmctld", "munged")):
        pytest.skip("Slurm is not installed: tests/integration/install.sh does")
    folder = tmp_path_factory.mktemp("slurm")
    started = subprocess.run([SCRIPT, "start", folder], capture_output=True, text=True, timeout=300)
    if started.returncode:
        pytest.fail(f"Slurm did not start: {started.stderr}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", started.stdout.strip())
        patch.setattr(slurm, "ASK_EVERY", 1.0)
        patch.setattr(slurm, "LOOK_EVERY", 0.2)
        yield
    subprocess.run([SCRIPT, "stop", folder], check=True, timeout=60)


def job(seed: int, epochs: int) -> Job:
    given = {
        "hidden_channels": 16,
        "num_layers": 1,
        "epochs": epochs,
        "steps_per_epoch": 5,
        "probe_epochs": 2,
        "roots": 50,
    }
    given["checkpoints"] = max(1, epochs // 10)
    spec = RunSpec.plan(Case.find("good-cbas", shift="concept"), "grace", seed=seed, given=given)
    return Job(spec=spec, label="grace")


def in_queue() -> list[str]:
    listed = subprocess.run(
        ["squeue", "--noheader", "--array", "--format=%i %T"], capture_output=True, text=True, check=True
    )
    return listed.stdout.splitlines()


def until(true: Any, seconds: float = 200.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.1)


def at_work(folder: Path) -> int | None:
    holder = lock.holder(folder)
    return int(holder.split()[1]) if holder else None


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("PPid:")[1].split()[0])


def bits(folder: Path) -> tuple[bytes, dict]:
    result = json.loads((folder / "result.json").read_text())
    return (folder / "model.safetensors").read_bytes(), result["scores"]


def test_two_workers_killed_interrupted_and_launched_twice(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    jobs = [job(0, 400), job(1, 400), *(job(seed, 10) for seed in range(2, 6))]
    runs = tmp_path / "runs"
    folders = [runs / each.spec.digest for each in jobs]
    described = json.dumps([each.to_dict() for each in jobs])
    first = subprocess.Popen(
        [sys.executable, "-c", WATCH, described, runs],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored, where tests run in the background
    )
    request.addfinalizer(first.kill)
    until(lambda: all((folder / "checkpoint").exists() for folder in folders[:2]))
    assert len(in_queue()) == 2

    second = launch(jobs, runs, launcher="slurm", workers=2)
    now = next(second)
    assert sorted(now.running) == ["grace good-cbas 0/0", "grace good-cbas 0/1"], "it sees what the first has submitted"
    assert len(in_queue()) == 2, "and submits no more"

    first.send_signal(signal.SIGINT)
    said = first.communicate(timeout=60)[1]
    assert "Slurm continues with" in said
    assert "scancel --name=mario-" in said
    assert len(in_queue()) == 2

    run = at_work(folders[0])
    assert run is not None
    os.kill(run, signal.SIGKILL)
    until(lambda: at_work(folders[0]) not in (None, run))
    other = at_work(folders[1])
    assert other is not None
    worker = parent(parent(other))  # above the server that forks the runs
    os.kill(worker, signal.SIGKILL)

    *_, last = second
    assert (last.done_runs, last.failed_runs, last.running) == (6, 0, [])
    until(lambda: not in_queue())

    changing = (".lock", ".holder", "jobs.json")
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    submitted = len(list((runs / ".submitit").rglob("*submitted.pkl")))
    assert list(launch(jobs, runs, launcher="slurm", workers=2))[-1].done_runs == 6
    assert list(launch(jobs, runs, workers=2))[-1].done_runs == 6
    assert len(list((runs / ".submitit").rglob("*submitted.pkl"))) == submitted, "nothing is left to submit"
    after = {path: path.stat().st_mtime_ns for path in runs.rglob("*") if path.name not in changing}
    assert all(before[path] == time for path, time in after.items() if path.is_file()), "nothing was run again"

    list(launch(jobs[:2], tmp_path / "undisturbed", workers=2))
    for folder in folders[:2]:
        assert bits(folder) == bits(tmp_path / "undisturbed" / folder.name)


def test_canceled_it_stops_and_goes_on_when_asked_again(tmp_path: Path) -> None:
    jobs = [job(0, 200)]
    folder = tmp_path / jobs[0].spec.digest
    watched = launch(jobs, tmp_path, launcher="slurm", workers=2, options={"time": "5", "cpus": "2", "memory": "500M"})
    next(watched)
    until(lambda: (folder / "checkpoint").exists())
    next(watched)
    (name,) = (path.name for path in (tmp_path / ".submitit").iterdir())
    subprocess.run(["scancel", f"--name={name}"], check=True)
    with pytest.raises(RunFailedError, match="canceled; repeat the command to continue"):
        list(watched)
    until(lambda: not in_queue())
    assert store.state(folder) == "waiting"
    assert not (folder / "attempt.json").exists(), "no fault of the run"
    assert list(launch(jobs, tmp_path, launcher="slurm"))[-1].done_runs == 1


def test_what_sbatch_does_not_take_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match=r"sbatch refused the jobs: .*partition") as raised:
        list(launch([job(0, 10)], tmp_path, launcher="slurm", options={"partition": "gpu"}))
    assert "\n" not in str(raised.value)
