"""Atomic file writes, locks, and the location of the cache. `mario.untrusted` reads."""

import errno
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from safetensors import SafetensorError

from mario.errors import MarioError, RunFailedError
from mario.untrusted import CHECKSUM, parse_json, tensor_checksum

NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)
"""Error numbers of a filesystem without locks."""

if TYPE_CHECKING:
    from torch import Tensor


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


def check_path(name: str, path: Any) -> Path:
    """``path`` as one that can be written to; `MarioError` if it is none.

    Example:
        >>> check_path("folder", 3)
        Traceback (most recent call last):
            ...
        mario.errors.MarioError: folder must be a path, got 3
    """
    if not isinstance(path, str | os.PathLike):
        raise MarioError(f"{name} must be a path, got {path!r}")
    text = os.fspath(path)
    if not isinstance(text, str) or "\0" in text:
        raise MarioError(f"{name} must be a path in text without null characters, got {text!r}")
    return Path(text)


def write_whole(path: Path, write: Callable[[str], None]) -> None:
    """Call ``write`` with a temporary name in the same folder, flush it to disk and rename it to ``path``.

    If anything fails, for example because the disk is full, the previous file at ``path`` remains. The mode follows the
    umask. A kill leaves the temporary file, which :func:`remove_parts` removes.
    """
    name, renamed = None, False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = str(path.parent / f".{path.name}.{uuid.uuid4().hex}.part")
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # minus the user's umask
        name = part
        write(name)
        with open(name, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(name, path)
        renamed = True
        _flush_folder(path.parent)
    except (OSError, SafetensorError) as error:  # safetensors has an error of its own for a full disk
        reason = getattr(error, "strerror", None) or error
        kept = "the new file is there but may not survive a power failure" if renamed else "the previous file is kept"
        raise RunFailedError(f"cannot write {path}: {reason}; {kept}") from error
    finally:
        if name and not renamed:
            with suppress(OSError):
                Path(name).unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """Make a rename in ``folder`` survive a power failure, where the system can do that."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows, or a folder that may be written and not read
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EROFS):
            raise
    finally:
        os.close(opened)


def remove_parts(folder: Path) -> None:
    """Remove temporary files that killed processes left in ``folder``; for a process that holds its lock."""
    with suppress(OSError):
        for part in folder.glob(".*.part"):
            part.unlink(missing_ok=True)


def write_tensors(path: Path, tensors: "Mapping[str, Tensor]", header: dict[str, str]) -> None:
    """Write a safetensors file with a checksum of all that is in it, which :func:`mario.untrusted.read_safetensors`
    compares.

    It goes through memory: ``safetensors.torch.save_file`` renames a private file of its own.
    """
    from safetensors.torch import save

    whole = {**header, CHECKSUM: tensor_checksum(header, tensors)}
    write_whole(path, lambda name: _write_ordered(name, save(dict(tensors), whole)))


def _write_ordered(name: str, content: bytes) -> None:
    """Write the bytes of a safetensors file with the texts of its header in order, which safetensors writes in any."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(name, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.write(memoryview(content)[end:])


@contextmanager
def locked(path: Path, *, patience: float = 60.0) -> Iterator[None]:
    """Hold a lock for the file ``path`` and wait for a process that has it; a no-op on filesystems without locks.

    Raises :class:`RunFailedError` if another process holds it for longer than ``patience`` seconds.
    """
    name = path.with_name(f".{path.name}.lock")
    lock = FileLock(name, timeout=patience, poll_interval=0.01, thread_local=False, fallback_to_soft=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise RunFailedError(
            f"another process is working on {path}: wait for it, stop it, or choose another folder (it held {name} for "
            f"more than {patience:g} seconds)"
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise RunFailedError(f"cannot lock {path} with {name}: {error.strerror}") from error
    try:
        yield
    finally:
        try:
            lock.release()
        except OSError as error:
            raise RunFailedError(f"cannot unlock {path} with {name}: {error.strerror}") from error


def append_line(path: Path, line: str) -> None:
    """Add a line to ``path``, created if missing. A symbolic link in its place is not followed."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o666)
        with open(number, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise RunFailedError(f"cannot write {path}: {reason}") from error


def write_text(path: Path, text: str) -> None:
    def write(name: str) -> None:
        Path(name).write_text(text, encoding="utf-8")

    write_whole(path, write)


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    parse_json(text, f"what would be written to {path}")  # nothing is written that cannot be read
    write_text(path, f"{text}\n")
