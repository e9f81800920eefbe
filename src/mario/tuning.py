"""Which of several ways to compute one result is quickest here: measured once a machine, kept in the user's cache."""

import functools
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from mario.errors import MarioError, RunFailedError
from mario.files import cache_folder, locked, read_json, write_json

_ROUNDS = 9
# Another way than the default has to be quicker by more than the noise of a measurement.
_CLEARLY = 0.92
# Answers that this process has had, by file, machine and key: a training step asks at every call.
_answers: dict[tuple[Path, str, str], str] = {}


def fastest(key: str, candidates: Mapping[str, Callable[[], object]], default: str) -> str:
    """The name of the quickest candidate on this machine, from the file `tuning.json` if it is there already.

    The file is in the user's cache (`$MARIO_CACHE`), holds the seconds behind each choice, and may be copied to another
    machine of the same kind. Two ways to compute one sum may differ in the last bits, so a choice has to be on record:
    if the file cannot be read or written, or the environment has `MARIO_TUNING=off`, nothing is measured and the answer
    is `default`. So it is if no other candidate is quicker by 8 %.

    Args:
        key: what is computed and at what size, as it stands in the file.
        candidates: by name, calls that take a few milliseconds each. They must not draw from a shared generator.
        default: the name that is taken where nothing can be measured.

    Example:
        >>> import os
        >>> from unittest.mock import patch
        >>> from mario.tuning import fastest
        >>> with patch.dict(os.environ, MARIO_TUNING="off"):
        ...     fastest("sum of 1000", {"loop": lambda: [i for i in range(1000)], "built in": list}, default="built in")
        'built in'
    """
    if default not in candidates:
        raise MarioError(f"default must be one of the candidates {', '.join(candidates)}, got {default!r}")
    if len(candidates) == 1 or os.environ.get("MARIO_TUNING") == "off":
        return default
    path, here = cache_folder() / "tuning.json", _machine()
    answer = _answers.get((path, here, key), "")
    if answer not in candidates:
        answer = _answers[path, here, key] = _on_record(path, here, key, candidates, default)
    return answer


def _on_record(path: Path, here: str, key: str, candidates: Mapping[str, Callable[[], object]], default: str) -> str:
    try:
        if (answer := _answer(_read(path), here, key)) in candidates:
            return answer
        with locked(path):  # one process measures, others wait and follow it
            known = _read(path)
            if (answer := _answer(known, here, key)) in candidates:
                return answer
            write_json(path, known)  # before the work of measuring: a choice that cannot be kept is not made
            seconds = _measure(candidates)
            known = _read(path)  # where there are no locks, another may have been quicker
            if (answer := _answer(known, here, key)) in candidates:
                return answer
            answer = min(seconds, key=lambda name: seconds[name])
            if seconds[answer] > _CLEARLY * seconds[default]:
                answer = default
            known.setdefault(here, {})[key] = {"fastest": answer, "seconds": seconds}
            write_json(path, known)
            return answer
    except (_UnreadableError, RunFailedError, OSError):
        return default


class _UnreadableError(Exception):
    pass


def _read(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    try:
        known = read_json(path)
    except MarioError:
        raise _UnreadableError from None
    if not isinstance(known, dict) or not all(isinstance(entries, dict) for entries in known.values()):
        raise _UnreadableError
    return known


def _answer(known: dict[str, dict[str, Any]], here: str, key: str) -> str:
    entry = known.get(here, {}).get(key)
    return str(entry.get("fastest")) if isinstance(entry, dict) else ""


def _measure(candidates: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The least seconds that each candidate took; in turns, so that a busy moment falls on all of them."""
    for call in candidates.values():
        call()
    rounds = [{name: _seconds(call) for name, call in candidates.items()} for _ in range(_ROUNDS)]
    return {name: min(seconds[name] for seconds in rounds) for name in candidates}


def _seconds(call: Callable[[], object]) -> float:
    # One thread: CPU time, which neighbors on the machine do not disturb. Several threads, or a GPU: CPU time would
    # count work that is spread over them as often as it is spread.
    alone = torch.get_num_threads() == 1 and not torch.cuda.is_available()
    clock = time.thread_time if alone else time.perf_counter
    start = clock()
    call()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - start


def _machine() -> str:
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return f"{_processor()}, {device}, torch {torch.__version__}, {torch.get_num_threads()} threads"


@functools.cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
