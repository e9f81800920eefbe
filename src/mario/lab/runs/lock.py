"""The lock of a run's folder: one process works in it, on whichever machine."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from mario.errors import MarioError
from mario.files import NO_LOCKS, write_text
from mario.untrusted import read_bytes

LOCK, HOLDER = ".lock", ".holder"
_GLIMPSE = 0.05  # seconds: a process that only looks holds the lock for less
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


class HeldError(MarioError):
    """Another process is working in this folder."""


@contextmanager
def alone_in(folder: Path, *, patience: float = 0.2) -> Iterator[None]:
    """Hold the lock of ``folder``. The system releases it when the process ends, also after ``kill -9``.

    Raises :class:`HeldError` if another process holds it for longer than ``patience`` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = _acquire(folder, patience)
    except Timeout:
        raise HeldError(f"another process is working in {folder}: wait for it or stop it ({_note(folder)})") from None
    try:
        with suppress(MarioError):  # a full disk: only people read this file
            write_text(folder / HOLDER, f"{socket.gethostname()} {os.getpid()}\n")
        yield
    finally:
        with suppress(OSError):
            (folder / HOLDER).unlink(missing_ok=True)  # what stays behind says nothing about this machine
        lock.release()


def holder(folder: Path) -> str:
    """Host and process id of the process that holds the lock of ``folder``; empty if none does."""
    if not os.path.lexists(folder / LOCK):
        return ""
    try:
        _acquire(folder, _GLIMPSE).release()
    except Timeout:
        return _note(folder)
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise
    return ""


def _acquire(folder: Path, patience: float) -> FileLock:
    lock = FileLock(folder / LOCK, timeout=patience, poll_interval=0.01, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except OSError as error:
        if error.errno in NO_LOCKS:
            raise MarioError(
                f"the filesystem of {folder} has no locks ({error.strerror}), and without them two processes could do "
                "the same run: choose a folder on another filesystem, or mount this one with locks"
            ) from error
        if error.errno == errno.ELOOP:
            raise MarioError(f"{folder / LOCK} is a symbolic link: remove it") from error
        raise
    return lock


def _note(folder: Path) -> str:
    with suppress(MarioError):
        return read_bytes(folder / HOLDER, 1000).decode(errors="replace").strip() or "unknown host"
    return "unknown host"
