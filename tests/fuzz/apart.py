"""Work in a process of its own, with limits of memory and time: what it does to its process is an outcome too."""

import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forked import context
from fuzz.targets import BYTES
from mario.errors import MarioError


def apart(work: Callable[..., object], *args: Any, seconds: float = 30) -> str:
    """How ``work`` ended: ``done``, ``refused: MESSAGE`` for a MarioError, or anything else for a finding."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "told")
        process = context().Process(target=_run, args=(str(told), work, args))
        process.start()
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
            return f"took more than {seconds} seconds"
        return told.read_text() if told.exists() else f"ended with code {process.exitcode}"


def _run(told: str, work: Callable[..., object], args: tuple[Any, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    try:
        work(*args)
        outcome = "done"
    except MarioError as error:
        outcome = f"refused: {error}"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
    Path(told).write_text(outcome)
