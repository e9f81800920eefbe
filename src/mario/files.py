"""Atomic file writes, reading with clear errors, and the location of the cache."""

import json
import os
import sys
import time
import tomllib
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from safetensors import SafetensorError

from mario.errors import MarioError, RunFailedError

if TYPE_CHECKING:
    from torch import Tensor

_UNLOCKED = ("settings.json", "error.txt")  # files of a run that are also written by processes without its lock
_SECONDS_TO_WRITE = 60.0


def cache_folder() -> Path:
    """The folder for downloads and prepared graphs: ``$MARIO_CACHE``, or the platform's cache folder."""
    if chosen := os.environ.get("MARIO_CACHE"):
        return Path(chosen).expanduser()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg).expanduser() / "mario"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "mario" / "cache"
    if sys.platform == "darwin":
        return Path("~/Library/Caches/mario").expanduser()
    return Path("~/.cache/mario").expanduser()


def write_whole(path: Path, write: Callable[[str], None]) -> None:
    """Call ``write`` with a temporary name in the same folder, flush it to disk and rename it to ``path``.

    If anything fails, for example because the disk is full, the previous file at ``path`` remains. The mode follows the
    umask. A kill leaves the temporary file, which :func:`remove_parts` removes.
    """
    name = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = str(path.parent / f".{path.name}.{uuid.uuid4().hex}.part")
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # minus the user's umask
        name = part
        write(name)
        with open(name, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(name, path)
        _flush_folder(path.parent)
    except (OSError, SafetensorError) as error:  # safetensors has an error of its own for a full disk
        reason = getattr(error, "strerror", None) or error
        raise RunFailedError(f"cannot write {path}: {reason}; the previous file is kept") from error
    finally:
        if name:
            Path(name).unlink(missing_ok=True)  # exists only if something failed


def _flush_folder(folder: Path) -> None:
    """Make a rename in ``folder`` survive a power failure, where the system can do that."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def remove_parts(folder: Path) -> None:
    """Remove temporary files that killed processes left in ``folder``; for a process that holds its lock."""
    with suppress(OSError):
        for part in folder.glob(".*.part"):
            unlocked = part.name[1:].startswith(_UNLOCKED)
            if not unlocked or time.time() - part.stat().st_mtime > _SECONDS_TO_WRITE:
                part.unlink(missing_ok=True)


def write_tensors(path: Path, tensors: "Mapping[str, Tensor]", header: dict[str, str]) -> None:
    """Write a safetensors file, through memory: ``safetensors.torch.save_file`` renames a private file of its own."""
    from safetensors.torch import save

    write_whole(path, lambda name: _write_bytes(name, save(dict(tensors), header)))


def _write_bytes(name: str, content: bytes) -> None:
    Path(name).write_bytes(content)


@contextmanager
def locked(path: Path, *, patience: float = -1) -> Iterator[None]:
    """Hold a lock for the file ``path`` and wait for a process that has it; a no-op on filesystems without locks.

    Raises a :class:`MarioError` after ``patience`` seconds; a negative number is without end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.with_name(f".{path.name}.lock")
    lock = FileLock(name, timeout=patience, poll_interval=0.01, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise MarioError(f"another process is working on {path}: wait for it, or choose another folder") from None
    except OSError:  # no locks here
        pass
    try:
        yield
    finally:
        lock.release()


def write_text(path: Path, text: str) -> None:
    def write(name: str) -> None:
        Path(name).write_text(text, encoding="utf-8")

    write_whole(path, write)


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_text(path: Path) -> str:
    """The text of a file that the user named."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MarioError(f"there is no file {path}") from None
    except OSError as error:
        raise MarioError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise MarioError(f"{path} is not text in UTF-8 ({error})") from None


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MarioError(f"there is no file {path}") from None
    except OSError as error:
        raise MarioError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also of a number with too many digits, and of deep nesting
        raise MarioError(f"{path} is not valid JSON ({error}); remove it to have it written again") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file that a user has given."""
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise MarioError(f"{path} is not valid TOML: {error}") from None
