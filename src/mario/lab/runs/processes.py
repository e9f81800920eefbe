"""Worker processes: they start quickly, use one thread, and end with their parent."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def context(preload: str) -> Any:
    """A multiprocessing context: a server that has imported ``preload`` and forks, or a new Python for each process.

    The server is a separate process with one thread, because forking a process with several threads is not safe.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload([preload])
    return made


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes that are started inside this context use one thread in OpenMP and OpenBLAS."""
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
    """Wait until the parent process has ended, then call ``then``; to be run in a thread."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        then()
