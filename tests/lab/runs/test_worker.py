"""One run in its process: what it leaves, and what it says of a full disk."""

import errno
import os
from pathlib import Path

import pytest
from safetensors import SafetensorError

from lab.launch.tiny import job
from mario.errors import MarioError, RunFailedError
from mario.lab.runs import lock, store, worker
from mario.lab.runs.attempt import Ending


def raised(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def test_a_full_disk_is_known_through_whatever_was_raised_of_it() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert worker.disk_is_full(full)
    assert worker.disk_is_full(OSError(errno.EDQUOT, "quota"))
    assert worker.disk_is_full(raised(RunFailedError("cannot write"), full))
    assert worker.disk_is_full(raised(MarioError("no"), SafetensorError("I/O error: No space left (os error 28)")))
    assert not worker.disk_is_full(raised(MarioError("no"), OSError(errno.EACCES, "denied")))
    assert not worker.disk_is_full(SafetensorError("invalid header"))


def test_a_run_that_is_done_or_held_is_not_touched(tmp_path: Path) -> None:
    folder = tmp_path / job().spec.digest
    assert worker.carry_out(job(), folder, None) == Ending.DONE
    before = (folder / "result.json").stat().st_mtime_ns
    assert worker.carry_out(job(), folder, None) == Ending.DONE
    assert (folder / "result.json").stat().st_mtime_ns == before
    assert not (folder / "attempt.json").exists()
    with lock.alone_in(folder):
        assert worker.carry_out(job(), folder, None) == Ending.HELD


def test_a_full_disk_is_no_failure_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / job().spec.digest

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", no_room)
        assert worker.carry_out(job(), folder, None) == Ending.FULL
    assert store.state(folder) == "waiting"
    assert worker.carry_out(job(), folder, None) == Ending.DONE


def test_a_failure_leaves_its_name_and_its_traceback(tmp_path: Path) -> None:
    broken = job("grace", lr=1e30, epochs=20)
    assert worker.carry_out(broken, tmp_path / "run", None) == Ending.FAILED
    lines = (tmp_path / "run" / "error.txt").read_text().splitlines()
    assert lines[0] == "grace on good-cbas (concept) with split seed 0 and seed 0"
    assert lines[-1].startswith("mario.errors.RunFailedError: the loss is not finite")
    assert not (tmp_path / "run" / "attempt.json").exists()
