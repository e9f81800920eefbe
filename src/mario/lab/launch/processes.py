"""How processes begin and end that work for another: quickly, with one thread, and not after it."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def context(preload: str) -> Any:
    """A server that has imported ``preload`` and forks a process when asked to; where it cannot, a new Python for each.

    The server is a process of its own with one thread: forking this one, which may have many, is not safe.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload([preload])
    return made


@contextmanager
def one_thread() -> Iterator[None]:
    """Libraries that are loaded now, in a process started now, make no threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def after_parent(then: Callable[[], object]) -> None:
    """Wait until the process that started this one has ended, and call ``then``; for a thread of its own."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        then()
