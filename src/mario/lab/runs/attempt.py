"""Attempts at a run: a killed run continues, unless it was killed twice at the same checkpoint."""

import os
import socket
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.files import write_json, write_text
from mario.lab.runs.lock import alone_in
from mario.untrusted import read_json

ATTEMPT = "attempt.json"
KILLS = 2  # in a row, without a new checkpoint between them: then the run itself is at fault


class Ending(IntEnum):
    """How the process of a run ended: its exit code."""

    DONE = 0
    FAILED = 1
    HELD = 75  # another process works on the run
    FULL = 76  # the disk is full
    STOPPED = 77  # terminated; the run continues from its checkpoint


def begin_attempt(folder: Path) -> bool:
    """Note that this process, which holds the lock, starts to work. False if the run was killed too often.

    :func:`end_attempt` removes the note of an attempt that ended by itself, with or without success. A note that is
    still there is from a process that was killed. Kills count as long as there is no new checkpoint between them.
    """
    checkpoint = newest_checkpoint(folder)
    before = _read(folder)
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
    """The step of the newest checkpoint, as in its file name; empty if there is none."""
    files = (folder / "checkpoint").glob("*.safetensors")
    return max((file.stem for file in files if file.stem.isdigit()), default="")


def blame(folder: Path, checkpoint: str, signal: int | None) -> str:
    """Write ``error.txt`` for a run that was killed too often, and return its text; for the holder of the lock."""
    by = f" by signal {signal}" if signal else ""
    where = f"after step {int(checkpoint)}" if checkpoint.isdigit() else "before its first checkpoint"
    text = f"killed twice in a row{by} {where}; signal 9 may mean that memory ran out"
    with suppress(MarioError):  # a full disk
        write_text(folder / "error.txt", f"{text}\n")
        (folder / ATTEMPT).unlink(missing_ok=True)
    return text


def end_attempt(folder: Path, pid: int) -> None:
    """Remove the note of process ``pid`` of this machine: it ended and was not killed."""
    if _read_of(folder, pid) is not None:
        (folder / ATTEMPT).unlink(missing_ok=True)


def note_signal(folder: Path, pid: int, signal: int) -> None:
    """Add the signal that killed process ``pid`` of this machine to its note."""
    if _read_of(folder, pid) is None:
        return
    with suppress(MarioError, OSError), alone_in(folder):  # a full disk, or another process has taken over the run
        if note := _read_of(folder, pid):
            write_json(folder / ATTEMPT, {**note, "signal": signal})


def _read_of(folder: Path, pid: int) -> dict[str, Any] | None:
    note = _read(folder)
    return note if note and (note.get("host"), note.get("pid")) == (socket.gethostname(), pid) else None


def _read(folder: Path) -> dict[str, Any] | None:
    if not (folder / ATTEMPT).exists():
        return None
    try:
        note = read_json(folder / ATTEMPT)
    except MarioError:
        return {}
    return note if isinstance(note, dict) else {}
