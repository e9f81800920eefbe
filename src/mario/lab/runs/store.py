"""The folders of runs: which are done, running, failed or broken.

A folder of runs contains one folder per run, named by the run's digest, so the folders of several machines are merged
by copying. This module does not import torch.
"""

import os
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mario.errors import MarioError
from mario.files import remove_parts
from mario.lab.result import RunResult
from mario.lab.runs.attempt import ATTEMPT
from mario.lab.runs.lock import HOLDER, HeldError, alone_in, holder
from mario.lab.spec import RunSpec
from mario.untrusted import open_file, read_json, safetensors_header

_REASON = 2000  # bytes at the end of error.txt that are looked at
DONE, RUNNING, FAILED, WAITING, BROKEN = "done", "running", "failed", "waiting", "broken"


@dataclass(frozen=True)
class Found:
    """The state of a run's folder.

    ``reason`` says why it failed or is broken, or which host and process work on it. ``result`` is set if it is done.
    """

    state: str
    reason: str = ""
    result: RunResult | None = None


def look(folder: Path, *, mine: bool = False) -> Found:
    """The state of ``folder``. Problems are returned as a state; this never raises.

    - ``done``: ``result.json`` is there and belongs to the run that names the folder.
    - ``running``: a process holds the lock.
    - ``failed``: ``error.txt`` is there.
    - ``waiting``: nothing yet, or a checkpoint to continue from.
    - ``broken``: a file is damaged or belongs to another run.

    Args:
        mine: whether this process holds the lock itself.
    """
    try:
        return _look(folder, mine)
    except (MarioError, OSError) as error:
        return Found(BROKEN, _line(error))
    except Exception as error:  # one odd folder must not end a report of all the others
        return Found(BROKEN, f"{folder} cannot be read: {_line(error) or type(error).__name__}")


def state(folder: Path) -> str:
    """``done``, ``running``, ``failed``, ``waiting`` or ``broken``: see :func:`look`.

    Example:
        >>> state(Path("no such folder"))
        'waiting'
    """
    return look(folder).state


def read_result(folder: Path) -> RunResult | None:
    """The result of a run that is done; ``None`` for any other."""
    return look(folder).result


def run_folders(runs: Path) -> list[Path]:
    """The folders in ``runs`` that hold settings or a result, except those that were set aside as broken."""
    there = {path.parent for name in ("settings.json", "result.json") for path in runs.glob(f"*/{name}")}
    return sorted(path for path in there if ".broken-" not in path.name)


def finished(runs: Path) -> list[RunResult]:
    """The results of all runs in ``runs`` that are done."""
    return [result for folder in run_folders(runs) if (result := read_result(folder)) is not None]


def _look(folder: Path, mine: bool) -> Found:
    if not folder.exists():
        return Found(WAITING)
    if not folder.is_dir():
        raise MarioError(f"{folder} is a file and not a folder")
    path = folder / "result.json"
    if path.exists():
        result = RunResult.read(folder)
        _check_digest(result.spec, path)
        return Found(DONE, result=result)
    if not mine and (who := holder(folder)):
        return Found(RUNNING, who)
    if (folder / "settings.json").exists():
        read_spec(folder)
    else:
        refuse_strangers(folder)
    if (folder / "error.txt").exists():
        return Found(FAILED, _last_line(folder / "error.txt"))
    return Found(WAITING)


def read_spec(folder: Path) -> RunSpec:
    """The run that ``settings.json`` in ``folder`` describes; the folder's name must match it."""
    spec = read_settings(folder)
    _check_digest(spec, folder / "settings.json")
    return spec


def read_settings(folder: Path) -> RunSpec:
    """The run that ``settings.json`` in ``folder``, of any name, describes."""
    path = folder / "settings.json"
    try:
        return RunSpec.from_dict(read_json(path), str(path))
    except MarioError as error:
        raise MarioError(f"{error}; without its settings the run cannot continue: remove {folder}") from None


def _check_digest(spec: RunSpec, path: Path) -> None:
    name = path.parent.name
    named = len(name) == 16 and set(name) <= set("0123456789abcdef")  # `mario run --out` takes any name
    if named and spec.digest != name:
        raise MarioError(f"{path} is of another run, {spec.digest}")


def refuse_strangers(folder: Path) -> None:
    """Raise if ``folder`` has no settings but other files, which a run must not be mixed with."""
    names = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if "settings.json" in names:  # written in the meantime
        return
    ours = ("error.txt", ATTEMPT, HOLDER)  # and what a kill left of the first file
    if any(name not in ours and not name.endswith((".part", ".lock")) for name in names):
        raise MarioError(f"{folder} contains files that are not from a run of mario: choose an empty folder")


def _last_line(path: Path) -> str:
    with open_file(path) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _REASON))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("mario.errors.") if lines else "error.txt is empty"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())


def set_aside_checkpoints(folder: Path) -> None:
    """Rename damaged checkpoints in ``folder`` with a warning; the run continues from the newest intact one."""
    from mario.training.checkpoint import checkpoint_files

    files = checkpoint_files(folder / "checkpoint")
    faults = {}
    for file in files:
        try:
            safetensors_header(file, "mario")
        except MarioError as error:
            faults[file] = f"{file.name} ({_line(error)})"
    for file in faults:
        aside(file)
    if faults:
        intact = [file for file in files if file not in faults]
        then = f"step {int(intact[-1].stem)}" if intact else "the start"
        named = ", ".join(faults.values())
        warnings.warn(f"damaged checkpoints in {folder}: {named}; continuing from {then}", stacklevel=2)


def tidy(folder: Path) -> None:
    """Remove what a process left in ``folder`` that was killed after it had written the result."""
    with suppress(HeldError, OSError):
        names = os.listdir(folder)
        if any(name in (ATTEMPT, HOLDER, "error.txt") or name.endswith(".part") for name in names):
            with alone_in(folder):  # which removes the name of the last holder
                remove_parts(folder)
                (folder / "error.txt").unlink(missing_ok=True)
                (folder / ATTEMPT).unlink(missing_ok=True)


def clear_for_retry(folder: Path) -> str:
    """Prepare a failed or broken folder for another attempt; return what was done in one line, or nothing.

    Only ``error.txt`` and the note of the last attempt are deleted. If the settings are intact, only the broken file is
    renamed, to ``NAME.broken-1``, and the run continues from its checkpoint; otherwise the folder is renamed.
    """
    found = look(folder)
    if found.state not in (FAILED, BROKEN):
        return ""
    if not folder.is_dir():
        return f"{found.reason}; moved to {aside(folder)}"
    with alone_in(folder):
        found = look(folder, mine=True)
        if found.state == FAILED:
            (folder / "error.txt").unlink(missing_ok=True)
            (folder / ATTEMPT).unlink(missing_ok=True)
            return f"{folder} failed before and is tried again: {found.reason}"
        if found.state == BROKEN:
            broken = folder
            with suppress(MarioError, OSError):
                read_spec(folder)
                broken = folder / "result.json"
            return f"{found.reason}; moved to {aside(broken)}"
    return ""


def aside(path: Path) -> Path:
    """Rename a file or folder to ``NAME.broken-1``, or the next number that is free."""
    number = 1
    while (free := path.with_name(f"{path.name}.broken-{number}")).exists():
        number += 1
    path.rename(free)
    return free
