"""Runs in processes of this machine: nothing twice, and what goes wrong in one stops no other."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from lab.launch.tiny import job
from mario.errors import MarioError, RunFailedError
from mario.lab.launch import launch
from mario.lab.runs import store


def test_runs_in_parallel_and_a_failure_stops_no_other(tmp_path: Path) -> None:
    good, bad = [job(seed=0), job(seed=1)], job("grace", lr=1e30, epochs=20)
    told = []
    with pytest.raises(
        RunFailedError, match=r"1 of 3 runs failed, the first grace on good-cbas .concept. with split seed 0 and seed 0"
    ) as raised:
        told.extend(launch([good[0], bad, good[1]], tmp_path, workers=2))
    assert "the loss is not finite" in str(raised.value)
    found = [store.read_result(tmp_path / each.spec.digest) for each in good]
    assert [result.spec.seed for result in found if result] == [0, 1]
    error = (tmp_path / bad.spec.digest / "error.txt").read_text()
    assert error.startswith("grace on good-cbas (concept) with split seed 0 and seed 0")
    assert "Traceback" in error
    assert (tmp_path / bad.spec.digest / "settings.json").exists(), "the error is beside the settings"


def test_nothing_is_repeated_and_a_failure_only_on_demand(tmp_path: Path) -> None:
    good, bad = job(), job("grace", lr=1e30, epochs=20)
    with pytest.raises(RunFailedError):
        list(launch([good, bad], tmp_path))
    where = tmp_path / bad.spec.digest
    watched = [tmp_path / good.spec.digest / "result.json", where / "error.txt"]
    before = [path.stat().st_mtime_ns for path in watched]
    with pytest.raises(RunFailedError, match=r"1 of 2 runs failed.*not finite"):
        list(launch([good, bad], tmp_path))
    assert [path.stat().st_mtime_ns for path in watched] == before
    with pytest.raises(RunFailedError, match=r"1 of 2 runs failed.*not finite"):
        list(launch([good, bad], tmp_path, retry_failed=True))
    assert [path.stat().st_mtime_ns == time for path, time in zip(watched, before, strict=True)] == [True, False]


def test_a_run_that_is_asked_for_twice_is_run_once(tmp_path: Path) -> None:
    told = list(launch([job(seed=3), job(seed=3)], tmp_path))
    assert (told[0].total_runs, told[-1].done_runs, told[-1].total_steps) == (1, 1, 1)


def test_what_is_wrongly_asked_for_is_said_before_anything_runs(tmp_path: Path) -> None:
    for wrong, match in (
        ({"launcher": "ssh"}, "there is no launcher 'ssh'; choose local, slurm"),
        ({"workers": 0}, "workers must be an integer of at least 1"),
        ({"options": {"partition": "cpu"}}, "the launcher local has no options, got partition"),
    ):
        with pytest.raises(MarioError, match=match):
            launch([job()], tmp_path, **wrong)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_or_locked_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MarioError, match=r"cannot write in .*file/runs"):
        launch([job()], tmp_path / "file" / "runs")

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(MarioError, match=r"the filesystem of .* has no locks"):
        launch([job()], tmp_path)
