"""What an experiment survives: kills of it and of its workers, a full disk, broken folders, another one beside it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lab.launch.tiny import endless, job, launching, long, until
from mario.errors import RunFailedError
from mario.lab.launch import launch
from mario.lab.runs import lock, store
from mario.lab.runs.job import Job


def steps(folder: Path) -> int:
    log = folder / "log.jsonl"
    return log.read_bytes().count(b'"loss"') if log.exists() else 0


def pid_at_work_in(folder: Path) -> int:
    return int(lock.holder(folder).split()[1])


def bits(folder: Path) -> tuple[bytes, dict]:
    """The model, and all of the result that is not a measurement of time."""
    result = json.loads((folder / "result.json").read_text())
    return (folder / "model.safetensors").read_bytes(), {k: v for k, v in result.items() if "seconds" not in k}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    list(launch([long(0), long(1)], folder))
    return folder


def where(folder: Path, job: Job) -> Path:
    return folder / job.spec.digest


def test_kill_9_of_the_experiment(tmp_path: Path, undisturbed: Path) -> None:
    jobs = [long(0), long(1)]
    first = launching(jobs, tmp_path)
    until(lambda: all((where(tmp_path, job) / "checkpoint").exists() for job in jobs))
    assert first.pid is not None
    workers = [pid_at_work_in(where(tmp_path, job)) for job in jobs]
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), 10)
    assert [store.state(where(tmp_path, job)) for job in jobs] == ["waiting", "waiting"], "interrupted, not failed"
    assert not list(tmp_path.glob("*/attempt.json")), "and no fault of theirs"
    assert list(launch(jobs, tmp_path))[-1].done_runs == 2
    for each in jobs:
        assert bits(where(tmp_path, each)) == bits(where(undisturbed, each))


def test_kill_9_of_a_worker(tmp_path: Path, undisturbed: Path) -> None:
    """Its run goes on from the checkpoint in the same launch, and the other one is not disturbed."""
    jobs, killed = [long(0), long(1)], []
    for _ in launch(jobs, tmp_path):
        if not killed and (where(tmp_path, jobs[0]) / "checkpoint").exists():
            killed.append(pid_at_work_in(where(tmp_path, jobs[0])))
            os.kill(killed[0], signal.SIGKILL)
    assert killed
    for each in jobs:
        assert bits(where(tmp_path, each)) == bits(where(undisturbed, each))
        assert not (where(tmp_path, each) / "error.txt").exists()


def test_a_run_that_is_killed_again_and_again_fails_and_stops_no_other(tmp_path: Path) -> None:
    doomed, good = endless(), job(seed=1)
    killed: list[int] = []

    def kill_whenever_it_works() -> None:
        for _ in launch([doomed, good], tmp_path, workers=1):
            if steps(where(tmp_path, doomed)) and (holder := lock.holder(where(tmp_path, doomed))):
                pid = int(holder.split()[1])
                if pid not in killed:
                    killed.append(pid)
                    os.kill(pid, signal.SIGKILL)

    with pytest.raises(
        RunFailedError, match=r"1 of 2 runs failed, the first grace on good-cbas.*killed twice.*signal 9"
    ):
        kill_whenever_it_works()
    assert len(killed) == 2
    assert store.state(where(tmp_path, good)) == "done"
    with pytest.raises(RunFailedError, match="1 of 2 runs failed"):
        list(launch([doomed, good], tmp_path))


def test_two_experiments_at_once_share_the_work(tmp_path: Path) -> None:
    jobs = [job("grace", seed, epochs=20, checkpoints=4) for seed in range(6)]
    other = launching(jobs, tmp_path, workers=1)
    told = list(launch(jobs, tmp_path, workers=1))
    other.join(30)
    assert other.exitcode == 0
    assert (told[-1].done_runs, told[-1].failed_runs) == (6, 0)
    for each in jobs:
        logged = [json.loads(line)["step"] for line in (where(tmp_path, each) / "log.jsonl").read_text().splitlines()]
        assert sorted(set(logged)) == list(range(1, 21))
        assert sum(b'"loss"' in line for line in (where(tmp_path, each) / "log.jsonl").read_bytes().splitlines()) == 20


def test_a_run_that_is_done_elsewhere_is_waited_for_and_taken_over_if_it_is_left(tmp_path: Path) -> None:
    mine, theirs = job(seed=1), endless()
    other = launching([theirs], tmp_path, workers=1)
    until(lambda: steps(where(tmp_path, theirs)))
    holders = []
    for now in launch([theirs, mine], tmp_path):
        holder = lock.holder(where(tmp_path, theirs))
        if holder and holder not in holders:
            holders.append(holder)
        if now.done_runs == 1 and len(holders) == 1 and other.is_alive():
            assert now.running == ["grace good-cbas 0/0"]
            assert other.pid is not None
            os.kill(other.pid, signal.SIGKILL)
        if len(holders) == 2:
            break
    other.join()
    assert len(holders) == 2, "the second is ours"
    until(lambda: not lock.holder(where(tmp_path, theirs)), 10)


def test_broken_folders_are_told_and_mended_on_demand(tmp_path: Path, undisturbed: Path) -> None:
    jobs = [long(0), long(1), job(seed=2)]
    for each in jobs[:2]:
        whole, copy = where(undisturbed, each), where(tmp_path, each)
        copy.mkdir()
        (copy / "checkpoint").mkdir()
        for name in ("settings.json", "result.json", "log.jsonl"):
            (copy / name).write_bytes((whole / name).read_bytes())
        for file in (whole / "checkpoint").iterdir():
            (copy / "checkpoint" / file.name).write_bytes(file.read_bytes())
    (where(tmp_path, jobs[0]) / "result.json").write_text('{"scores"')
    (where(tmp_path, jobs[1]) / "settings.json").write_text("")
    (where(tmp_path, jobs[1]) / "result.json").unlink()
    with pytest.raises(RunFailedError, match=r"2 of 3 runs failed.*result.json is not valid JSON"):
        list(launch(jobs, tmp_path))
    assert store.state(where(tmp_path, jobs[2])) == "done", "the others are run"
    # A checkpoint and a log of which only rubbish is left.
    newest = max((where(tmp_path, jobs[0]) / "checkpoint").iterdir())
    newest.write_bytes(newest.read_bytes()[:100])
    with (where(tmp_path, jobs[0]) / "log.jsonl").open("ab") as file:
        file.write(b'\xff\xfe\x00\n7\n{"step"')
    assert list(launch(jobs, tmp_path, retry_failed=True))[-1].done_runs == 3
    for each in jobs[:2]:
        assert bits(where(tmp_path, each)) == bits(where(undisturbed, each))
    kept = sorted(path.name for path in tmp_path.rglob("*.broken-1"))
    assert kept == sorted([f"{newest.name}.broken-1", "result.json.broken-1", f"{jobs[1].spec.digest}.broken-1"])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can be mounted by root only")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk(small_disk: Path, undisturbed: Path) -> None:
    jobs = [long(0), long(1), job(seed=2)]
    ballast = small_disk / "ballast"

    def fill_when_it_works() -> None:
        for _ in launch(jobs, small_disk / "runs", workers=1):
            if not ballast.exists() and (where(small_disk / "runs", jobs[0]) / "checkpoint").exists():
                with suppress(OSError), ballast.open("wb", buffering=0) as file:
                    while True:
                        file.write(bytes(4096))

    with pytest.raises(RunFailedError, match=r"the disk of .* is full: .*repeat the same command") as raised:
        fill_when_it_works()
    assert "\n" not in str(raised.value)
    assert not where(small_disk / "runs", jobs[1]).exists(), "no other is begun on a full disk"
    assert [store.state(where(small_disk / "runs", each)) for each in jobs] == ["waiting"] * 3
    ballast.unlink()
    time.sleep(0.1)
    assert list(launch(jobs, small_disk / "runs", workers=2))[-1].done_runs == 3
    for each in jobs[:2]:
        assert bits(where(small_disk / "runs", each)) == bits(where(undisturbed, each))
