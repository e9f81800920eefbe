"""Folders of runs: their states, who holds them, and what is done about those that are broken."""

import errno
import fcntl
import json
import os
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from lab import results
from mario.errors import MarioError
from mario.lab.runs import attempt, lock, store

SPEC = results.spec(1, split_seed=0)
RUN, DONE = SPEC.to_dict(), results.result(SPEC)
RESULT = DONE.to_dict()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that was begun."""
    made = tmp_path / SPEC.digest
    made.mkdir()
    (made / "settings.json").write_text(json.dumps(RUN))
    return made


def put(folder: Path, name: str, value: Any) -> None:
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))


def test_the_states(folder: Path) -> None:
    assert store.state(folder.with_name("absent")) == "waiting"
    assert store.state(folder) == "waiting"
    put(folder, "error.txt", "Traceback ...\nmario.errors.RunFailedError: the loss is not finite\n")
    assert store.look(folder) == store.Found("failed", "RunFailedError: the loss is not finite")
    with lock.alone_in(folder):
        assert store.state(folder) == "running"
        assert store.look(folder, mine=True).state == "failed"
    put(folder, "result.json", RESULT)
    assert store.look(folder) == store.Found("done", result=DONE)
    found = store.read_result(folder)
    assert found == DONE
    assert found is not None
    assert found.folder == folder


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("settings.json", "", "is not valid JSON"),
        ("settings.json", '{"dataset": "good-', "is not valid JSON"),
        ("settings.json", "[1]", "must be an object"),
        ("settings.json", json.dumps({**RUN, "seed": 2}), "is of another run"),
        ("result.json", json.dumps(RESULT)[:-9], "is not valid JSON"),
        ("result.json", "\x00\x00", "is not valid JSON"),
        ("result.json", json.dumps({**RESULT, "settings": {"lr": 0.02}}), "is of another run"),
        ("result.json", json.dumps(RUN), "has no 'metric'"),
        ("result.json", json.dumps({**RESULT, "seed": "1"}), "'seed' must be a whole number, got '1'"),
        ("result.json", json.dumps({**RESULT, "scores": {"ood_test": "high"}}), "'ood_test' must be a number"),
    ],
)
def test_a_broken_file_is_told_in_one_line(folder: Path, name: str, text: str, reason: str) -> None:
    put(folder, name, text)
    found = store.look(folder)
    assert found.state == "broken"
    assert reason in found.reason
    assert name in found.reason
    assert "\n" not in found.reason
    assert store.read_result(folder) is None


def test_what_is_no_folder_of_a_run_is_broken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert store.look(tmp_path / "file").reason.endswith("is a file and not a folder")
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "result.json").write_bytes(b"\xff\xfe\x00")
    assert store.state(tmp_path / "binary") == "broken"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("...")
    assert "not from a run of mario" in store.look(tmp_path / "mine").reason


def test_a_folder_that_was_named_by_hand_may_hold_any_run(tmp_path: Path) -> None:
    (tmp_path / "my-run").mkdir()
    put(tmp_path / "my-run", "result.json", RESULT)
    assert store.state(tmp_path / "my-run") == "done"


def test_settings_that_came_since_the_look_are_no_stranger(tmp_path: Path) -> None:
    (tmp_path / "settings.json").touch()
    store.refuse_strangers(tmp_path)
    (tmp_path / "settings.json").rename(tmp_path / "other.json")
    with pytest.raises(MarioError, match="not from a run of mario"):
        store.refuse_strangers(tmp_path)


def test_who_has_patience_waits_for_others(tmp_path: Path) -> None:
    order = []

    def other() -> None:
        with lock.alone_in(tmp_path, patience=60):
            order.append("second")

    with lock.alone_in(tmp_path):
        thread = threading.Thread(target=other)
        thread.start()
        time.sleep(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_lock_has_one_holder_and_says_who(folder: Path) -> None:
    assert lock.holder(folder) == ""
    with lock.alone_in(folder):
        assert lock.holder(folder).endswith(f" {os.getpid()}")
        with (
            pytest.raises(lock.HeldError, match=f"another process is working in .*{os.getpid()}"),
            lock.alone_in(folder),
        ):
            pass
    assert lock.holder(folder) == ""
    with lock.alone_in(folder):
        pass


def test_a_lock_that_is_a_symbolic_link_is_refused_and_its_target_is_kept(folder: Path, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    for name in (".lock", ".holder"):
        (folder / name).symlink_to(thesis)
    with pytest.raises(MarioError, match=r"\.lock is a symbolic link: remove it"), lock.alone_in(folder):
        pass
    assert store.look(folder).state == "broken"
    (folder / ".lock").unlink()
    with lock.alone_in(folder):
        assert lock.holder(folder).endswith(f" {os.getpid()}")
    assert thesis.read_text() == "years of work"


def test_several_processes_that_look_do_not_see_each_other_as_holders(folder: Path) -> None:
    with lock.alone_in(folder):
        pass
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lock.holder, [folder] * 200)) == {""}


def test_processes_that_look_slowly_are_no_holders_and_hold_nobody_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine with too much to do: a process that looks may be put aside while it has the lock."""
    flock = fcntl.flock

    def slow(number: int, operation: int) -> None:
        flock(number, operation)
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.5)

    with lock.alone_in(folder):
        pass
    monkeypatch.setattr(fcntl, "flock", slow)
    with ThreadPoolExecutor(4) as pool:
        looks = [pool.submit(lock.holder, folder) for _ in range(4)]
        time.sleep(0.1)
        with lock.alone_in(folder, patience=0.05):
            pass
        assert [look.result() for look in looks] == [""] * 4


def test_what_a_kill_left_in_a_run_that_is_done_is_removed(folder: Path) -> None:
    put(folder, "result.json", RESULT)
    before = sorted(path.name for path in folder.iterdir())
    for name in (".holder", "attempt.json", "error.txt", ".holder.1f.part"):
        put(folder, name, "of a process that is gone")
    with lock.alone_in(folder):
        store.tidy(folder)
        assert (folder / "attempt.json").exists(), "somebody is at work"
    store.tidy(folder)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", *before]


def test_a_filesystem_without_locks_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(MarioError, match=r"has no locks .*another filesystem"), lock.alone_in(folder):
        pass


def test_a_run_may_be_killed_once_but_not_twice_at_the_same_place(folder: Path) -> None:
    assert attempt.begin_attempt(folder)
    assert attempt.begin_attempt(folder), "the first left its note, so it was killed: once may be an accident"
    attempt.note_signal(folder, os.getpid(), 9)
    assert not attempt.begin_attempt(folder)
    assert store.look(folder) == store.Found(
        "failed",
        "killed twice in a row by signal 9 before its first checkpoint; signal 9 may mean that memory ran out",
    )
    assert store.clear_for_retry(folder)
    assert attempt.begin_attempt(folder), "tried again on demand"


def test_kills_count_only_without_a_new_checkpoint_between_them(folder: Path) -> None:
    (folder / "checkpoint").mkdir()
    for step in range(5):
        assert attempt.begin_attempt(folder)
        (folder / "checkpoint" / f"{step:09d}.safetensors").touch()
    assert attempt.begin_attempt(folder)
    assert not attempt.begin_attempt(folder)
    assert "after step 4" in store.look(folder).reason


def test_an_attempt_that_ended_by_itself_does_not_count(folder: Path) -> None:
    for _ in range(4):
        assert attempt.begin_attempt(folder)
        attempt.end_attempt(folder, os.getpid())
    attempt.begin_attempt(folder)
    attempt.end_attempt(folder, os.getpid() + 1)
    assert (folder / "attempt.json").exists(), "that of another process is not ours to take away"
    put(folder, "attempt.json", "{")
    assert attempt.begin_attempt(folder), "a note that is half there is of one kill"


def test_a_retry_keeps_what_is_broken_and_as_much_as_it_can(folder: Path) -> None:
    put(folder, "result.json", "{")
    (folder / "checkpoint").mkdir()
    assert "moved to" in store.clear_for_retry(folder)
    assert store.state(folder) == "waiting"
    assert (folder / "result.json.broken-1").read_text() == "{"
    assert (folder / "checkpoint").is_dir(), "good settings: the run goes on"

    for number in (1, 2):
        folder.mkdir(exist_ok=True)
        put(folder, "settings.json", "{")
        assert f"{folder.name}.broken-{number}" in store.clear_for_retry(folder)
        assert store.state(folder) == "waiting"
    assert (folder.with_name(f"{folder.name}.broken-1") / "result.json.broken-1").exists()
    assert (folder.with_name(f"{folder.name}.broken-2") / "settings.json").read_text() == "{"


def test_what_is_done_or_at_work_is_not_retried(folder: Path) -> None:
    with lock.alone_in(folder):
        assert store.clear_for_retry(folder) == ""
    put(folder, "result.json", RESULT)
    put(folder, "error.txt", "of an earlier attempt")
    assert store.clear_for_retry(folder) == ""
    assert (folder / "error.txt").exists()


def test_checkpoints_that_are_not_whole_are_set_aside_and_said(folder: Path) -> None:
    (folder / "checkpoint").mkdir()
    file = folder / "checkpoint" / "000000010.safetensors"
    save_file({"w": torch.ones(100)}, file, {"mario": "{}"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.set_aside_checkpoints(folder)
    whole = file.read_bytes()
    for step, text in ((20, whole[:-7]), (30, b""), (40, b"\xff" * 50)):
        (folder / "checkpoint" / f"{step:09d}.safetensors").write_bytes(text)
    with pytest.warns(UserWarning, match=r"000000020.*000000030.*000000040.*continuing from step 10"):
        store.set_aside_checkpoints(folder)
    assert sorted(p.name for p in (folder / "checkpoint").iterdir()) == [
        "000000010.safetensors",
        *(f"000000{step}.safetensors.broken-1" for step in ("020", "030", "040")),
    ]
    file.write_bytes(whole[:3])
    with pytest.warns(UserWarning, match="continuing from the start"):
        store.set_aside_checkpoints(folder)
