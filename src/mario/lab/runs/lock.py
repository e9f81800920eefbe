"""The lock of a run's folder: one process works in it, on whichever machine."""

import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from mario.errors import MarioError, RunFailedError
from mario.files import NO_LOCKS, write_text
from mario.untrusted import read_bytes

LOCK, HOLDER = ".lock", ".holder"
_LOOKS = 60.0  # seconds that processes which only look may be in the way
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


class HeldError(MarioError):
    """Another process is working in this folder."""


@contextmanager
def alone_in(folder: Path, *, patience: float = 0.2) -> Iterator[None]:
    """Hold the lock of ``folder``. The system releases it when the process ends, also after ``kill -9``.

    Raises :class:`HeldError` if another process holds it for longer than ``patience`` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    given_up = time.monotonic() + _LOOKS
    while True:
        try:
            lock = _acquire(folder, patience)
            break
        except Timeout:
            # If nobody holds it, only processes that look were in the way, or the holder has just ended.
            if holder(folder) or time.monotonic() > given_up:
                raise HeldError(
                    f"another process is working in {folder}: wait for it or stop it ({_note(folder)})"
                ) from None
    try:
        with suppress(MarioError):  # a full disk: only people read this file
            write_text(folder / HOLDER, f"{socket.gethostname()} {os.getpid()}\n")
        yield
    finally:
        with suppress(OSError):
            (folder / HOLDER).unlink(missing_ok=True)  # what stays behind says nothing about this machine
        with _explaining(folder):
            lock.release()


def holder(folder: Path) -> str:
    """Host and process id of the process that holds the lock of ``folder``; empty if none does.

    Processes that look share the lock, so that none takes another for a holder, however slow they are.
    """
    if not os.path.lexists(folder / LOCK):
        return ""
    try:
        free = _shared(folder) if fcntl else _free_for_a_moment(folder)
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise
        return ""
    return "" if free else _note(folder)


def _shared(folder: Path) -> bool:
    """Whether this process could share the lock, which it does not keep."""
    with _explaining(folder):
        try:
            number = os.open(folder / LOCK, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except FileNotFoundError:  # the folder was removed
            return True
        try:
            fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # the second on some network filesystems
            return False
        finally:
            os.close(number)  # which ends the lock
    return True


def _free_for_a_moment(folder: Path) -> bool:
    try:
        _acquire(folder, 1.0).release()
    except Timeout:
        return False
    return True


def _acquire(folder: Path, patience: float) -> FileLock:
    lock = FileLock(folder / LOCK, timeout=patience, poll_interval=0.01, thread_local=False, fallback_to_soft=False)
    with _explaining(folder):
        lock.acquire()
    return lock


@contextmanager
def _explaining(folder: Path) -> Iterator[None]:
    """Errors of locking, in words."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_LOCKS:
            raise MarioError(
                f"the filesystem of {folder} has no locks ({error.strerror}), and without them two processes could do "
                "the same run: choose a folder on another filesystem, or mount this one with locks"
            ) from error
        if error.errno == errno.ELOOP:
            raise MarioError(f"{folder / LOCK} is a symbolic link: remove it") from error
        if error.filename is None and not isinstance(error, Timeout):
            raise RunFailedError(f"cannot lock or unlock {folder}: {error.strerror}") from error
        raise


def _note(folder: Path) -> str:
    with suppress(MarioError):
        return read_bytes(folder / HOLDER, 1000).decode(errors="replace").strip() or "unknown host"
    return "unknown host"
