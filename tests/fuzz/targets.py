"""What a target of the fuzzer is: inputs drawn by hypothesis, a limit of seconds for each, and a count of them.

`make test` tries a few fixed inputs per target. `make fuzz` tries as many new ones as there is time for.
"""

import functools
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, given, note, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.strategies import SearchStrategy
from torch_geometric.data import Data

from mario.errors import MarioError

T = TypeVar("T")

SECONDS = float(os.environ.get("MARIO_FUZZ_SECONDS", "0"))
"""How long `make fuzz` gives to the target; 0 in `make test`."""
CORPUS = Path(__file__).parents[2] / ".fuzz" / "corpus"
"""Inputs that failed, which `make fuzz` tries first."""
BYTES = 6 * 2**30
"""Addresses that a process may use while it tries an input; torch alone takes two gigabytes."""
LONG_ROUND = 100  # inputs per call of a target in the long form

tried = 0
"""Inputs tried in this process."""

_CHECKS = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
settings.register_profile(
    "short", derandomize=True, database=None, deadline=None, suppress_health_check=_CHECKS, print_blob=True
)
settings.register_profile(
    "long",
    max_examples=LONG_ROUND,
    database=DirectoryBasedExampleDatabase(CORPUS),
    deadline=None,
    suppress_health_check=(*_CHECKS, HealthCheck.filter_too_much),
    print_blob=True,
)


class TooSlowError(Exception):
    """An input took longer than its target allows."""


def fuzz(
    *, examples: int, seconds: int = 20, **inputs: SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test of a function of ``inputs``.

    Args:
        examples: how many inputs `make test` tries.
        seconds: the most that one of them may take.
        inputs: a strategy for each argument.
    """

    def make(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def once(*args: Any, **drawn: Any) -> None:
            global tried
            tried += 1
            for name, value in drawn.items():
                note(f"{name} = {_shown(value)}")
            with time_limit(seconds), memory_limit():
                test(*args, **drawn)

        long, short = settings.get_profile("long"), settings.get_profile("short")
        profile = long if SECONDS else settings(short, max_examples=examples)
        return profile(given(**inputs)(once))

    return make


def _shown(value: object) -> str:
    """With the entries of a graph, which its own ``repr`` leaves out."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    return f"Data(**{value.to_dict()})" if isinstance(value, Data) else repr(value)


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlowError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def memory_limit() -> Iterator[None]:
    """An allocation beyond the limit fails, instead of taking the memory of all other processes."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def attempt(work: Callable[[], T]) -> T | MarioError:
    """What ``work`` returns, or its MarioError, which has to be a message. Any other error is a finding."""
    try:
        return work()
    except MarioError as error:
        message = str(error)
        assert message.strip(), "an error without a message"
        assert len(message) < 3000, f"a message of {len(message)} characters"
        return error


def inside(folder: Path) -> dict[str, bytes]:
    """All files below ``folder`` and their content; folders end with a slash."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        found[name if path.is_file() else f"{name}/"] = path.read_bytes() if path.is_file() else b""
    return found
