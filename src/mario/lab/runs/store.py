"""The folders of runs: which are done, at work, failed or broken, and who may work in one.

A runs folder holds nothing but folders named by hashes, so folders of several machines are merged by copying. Nothing
here imports torch.
"""

import errno
import hashlib
import json
import os
import socket
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.files import read_json, write_json, write_text

DONE, RUNNING, FAILED, WAITING, BROKEN = "done", "running", "failed", "waiting", "broken"
DECIDES = ("dataset", "domain", "shift", "setting", "split_seed", "method", "seed", "settings")
"""What decides the bits of a run; the folder is named by the hash of these."""
ATTEMPT = "attempt.json"
KILLS = 2  # in a row, without a new checkpoint between them: then the run is taken to be at fault


def digest(run: Mapping[str, Any]) -> str:
    """The name of the folder of a run, from its ``settings.json`` or its result.

    Example:
        >>> run = {"dataset": "good-cbas", "method": "erm", "seed": 0, "settings": {"lr": 0.1}}
        >>> digest(run) == digest({**run, "scores": {"ood_test": 0.9}})
        True
        >>> digest(run) == digest({**run, "seed": 1})
        False
    """
    decides = {key: run[key] for key in DECIDES if key in run}
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Found:
    """What stands in a run's folder: its state, its result if done, and one line more.

    ``reason`` is why it failed or is broken, or host and process that are at work on it.
    """

    state: str
    reason: str = ""
    result: dict[str, Any] | None = None


def look(folder: Path, *, mine: bool = False) -> Found:
    """What stands in ``folder``. Whatever is wrong there is told, never raised.

    ``done``: ``result.json`` is there and is of the run that names the folder. ``running``: a process holds its lock.
    ``failed``: ``error.txt`` is there. ``waiting``: nothing yet, or a checkpoint to go on from. ``broken``: a file is
    half there or of another run. ``mine``: this process holds the lock itself.
    """
    try:
        return _look(folder, mine)
    except (MarioError, OSError) as error:
        return Found(BROKEN, _line(error))


def state(folder: Path) -> str:
    """``done``, ``running``, ``failed``, ``waiting`` or ``broken``: see :func:`look`.

    Example:
        >>> state(Path("no such folder"))
        'waiting'
    """
    return look(folder).state


def read_result(folder: Path) -> dict[str, Any] | None:
    """The result of a run that is done; ``None`` of any other."""
    return look(folder).result


def _look(folder: Path, mine: bool) -> Found:
    if not folder.exists():
        return Found(WAITING)
    if not folder.is_dir():
        raise MarioError(f"{folder} is a file and no folder")
    path = folder / "result.json"
    if path.exists():
        result = read_run(path)
        if not is_result(result):
            raise MarioError(f"{path} has no scores")
        return Found(DONE, result=result)
    if not mine and (who := holder(folder)):
        return Found(RUNNING, who)
    if (folder / "settings.json").exists():
        read_run(folder / "settings.json")
    else:
        refuse_strangers(folder)
    if (folder / "error.txt").exists():
        return Found(FAILED, _last_line(folder / "error.txt"))
    return Found(WAITING)


def is_result(run: Any) -> bool:
    """Whether ``run`` is a result: what decides a run, and its scores."""
    return isinstance(run, dict) and {*DECIDES, "scores", "curve"} <= run.keys()


def read_run(path: Path) -> dict[str, Any]:
    """What a ``settings.json`` or ``result.json`` says of a run, if it is the one that the folder is named by."""
    run = read_json(path)
    if not isinstance(run, dict) or not set(DECIDES) <= run.keys():
        raise MarioError(f"{path} does not describe a run")
    name = path.parent.name
    named = len(name) == 16 and set(name) <= set("0123456789abcdef")  # `mario run --out` takes any name
    if named and digest(run) != name:
        raise MarioError(f"{path} is of another run, {digest(run)}")
    return run


def refuse_strangers(folder: Path) -> None:
    """Refuse a folder that holds no settings but something else, which a run must not be written beside."""
    # A kill may have left the first file half written, and a failure its error.
    names = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if "settings.json" in names:  # written since whoever asks has looked
        return
    if any(name not in ("error.txt", ATTEMPT) and not name.endswith((".part", ".lock")) for name in names):
        raise MarioError(f"{folder} holds something that is not a run of mario: choose an empty folder")


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("mario.errors.") if lines else "it left no word"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())


# Who works in a folder.


@contextmanager
def alone_in(folder: Path, *, patience: float = 0.2) -> Iterator[None]:
    """Hold the folder's lock, which the system lets go of when the process ends in whatever way.

    Whoever only looks holds it for a moment; after ``patience`` seconds it is somebody at work, and an error.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a+", encoding="utf-8") as file:
        until = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                _refuse_lockless(error, folder)
            time.sleep(0.01)
            if time.monotonic() < until:
                continue
            raise HeldError(f"another process is at work in {folder}: wait for it or stop it ({holder(folder)})")
        with suppress(OSError):  # a full disk: it is only to be read by people
            file.truncate(0)
            file.write(f"{socket.gethostname()} {os.getpid()}\n")
            file.flush()
        yield


class HeldError(MarioError):
    """Another process is at work in this folder."""


def holder(folder: Path) -> str:
    """Host and process that hold the folder's lock; nothing if nobody does."""
    try:
        import fcntl
    except ImportError:
        return ""
    try:
        with (folder / ".lock").open("r", encoding="utf-8", errors="replace") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError as error:
                _refuse_lockless(error, folder)
                return file.read().strip() or "somewhere"
    except FileNotFoundError:
        pass
    return ""


def _refuse_lockless(error: OSError, folder: Path) -> None:
    if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK, errno.EINTR):
        raise MarioError(
            f"the filesystem of {folder} has no locks ({error.strerror}), and without them two processes could do the "
            "same run: choose a folder on another filesystem, or have this one mounted with locks"
        ) from error


# Attempts: a run that is killed goes on, unless it is killed twice at the same place.


def begin_attempt(folder: Path) -> bool:
    """Note that this process, which holds the lock, begins to work. False if the run was killed too often.

    The note of an attempt that ended in an orderly way, well or not, is taken away by :func:`end_attempt`; one that is
    still there is of a process that was killed. Kills count as long as no new checkpoint came between them.
    """
    checkpoint = newest_checkpoint(folder)
    before = _read_attempt(folder)
    kills = 0
    if before is not None:
        kills = 1 + (before.get("kills", 0) if before.get("checkpoint") == checkpoint else 0)
    if kills >= KILLS:
        blame(folder, checkpoint, before.get("signal") if before else None)
        return False
    note = {"host": socket.gethostname(), "pid": os.getpid(), "kills": kills, "checkpoint": checkpoint}
    write_json(folder / ATTEMPT, note)
    return True


def newest_checkpoint(folder: Path) -> str:
    """The step of the newest checkpoint, as its file is named; nothing if there is none."""
    return max((file.stem for file in (folder / "checkpoint").glob("*.safetensors")), default="")


def blame(folder: Path, checkpoint: str, signal: int | None) -> str:
    """Leave ``error.txt`` in the folder of a run that was killed too often, and return what it says."""
    by = f" by signal {signal}" if signal else ""
    where = f"after step {int(checkpoint)}" if checkpoint.isdigit() else "before its first checkpoint"
    text = f"killed twice in a row{by} {where}; signal 9 may mean that memory ran out"
    with suppress(MarioError):  # a full disk
        write_text(folder / "error.txt", f"{text}\n")
        (folder / ATTEMPT).unlink(missing_ok=True)
    return text


def end_attempt(folder: Path, pid: int) -> None:
    """Take away the note of process ``pid`` of this machine: it ended without being at fault."""
    note = _read_attempt(folder)
    if note is not None and (note.get("host"), note.get("pid")) == (socket.gethostname(), pid):
        (folder / ATTEMPT).unlink(missing_ok=True)


def note_signal(folder: Path, pid: int, signal: int) -> None:
    """Add to the note of process ``pid`` of this machine which signal killed it."""
    note = _read_attempt(folder)
    if note is not None and (note.get("host"), note.get("pid")) == (socket.gethostname(), pid):
        with suppress(MarioError):  # a full disk: the message will do without
            write_json(folder / ATTEMPT, {**note, "signal": signal})


def _read_attempt(folder: Path) -> dict[str, Any] | None:
    if not (folder / ATTEMPT).exists():
        return None
    try:
        note = read_json(folder / ATTEMPT)
    except MarioError:
        return {}
    return note if isinstance(note, dict) else {}


# Mending, and retrying on demand.


def set_aside_checkpoints(folder: Path) -> None:
    """Rename the checkpoints of ``folder`` that are not whole, saying so: the run goes on from the newest that is."""
    from safetensors import SafetensorError, safe_open

    files = sorted((folder / "checkpoint").glob("*.safetensors"))
    faults = {}
    for file in files:
        try:
            with safe_open(file, framework="np") as opened:
                json.loads((opened.metadata() or {})["mario"])
        except (SafetensorError, OSError, KeyError, json.JSONDecodeError) as error:
            faults[file] = f"{file.name} ({_line(error)})"
    for file in faults:
        _aside(file)
    if faults:
        whole = [file for file in files if file not in faults]
        then = f"step {int(whole[-1].stem)}" if whole and whole[-1].stem.isdigit() else "the start"
        told = ", ".join(faults.values())
        warnings.warn(f"checkpoints in {folder} that are not whole: {told}; going on from {then}", stacklevel=2)


def clear_for_retry(folder: Path) -> str:
    """Make a failed or broken folder ready to be run again; what was done to it in one line, or nothing.

    Nothing is deleted but ``error.txt``. With good settings only the broken file is renamed, to ``NAME.broken-1``, so
    that the run goes on from its checkpoint; else the folder is.
    """
    found = look(folder)
    if found.state not in (FAILED, BROKEN):
        return ""
    if not folder.is_dir():
        return f"{found.reason}; moved to {_aside(folder)}"
    with alone_in(folder):
        found = look(folder, mine=True)
        if found.state == FAILED:
            (folder / "error.txt").unlink(missing_ok=True)
            (folder / ATTEMPT).unlink(missing_ok=True)
            return f"{folder} failed before and is tried again: {found.reason}"
        if found.state == BROKEN:
            broken = folder
            with suppress(MarioError, OSError):
                read_run(folder / "settings.json")
                broken = folder / "result.json"
            return f"{found.reason}; moved to {_aside(broken)}"
    return ""


def _aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.broken-{number}")).exists():
        number += 1
    path.rename(aside)
    return aside
