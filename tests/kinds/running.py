"""Runs kinds in processes of their own, which may crash and hang, and counts how they end."""

import json
import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forked import context
from kinds.kind import CRASH, HANG, OUTCOMES, Kind

LIMIT = 60.0
"""Seconds after which a kind hangs. The machine may be busy: the slowest takes two."""
TRIALS = "trials of the runner"
_MEMORY = 6 * 2**30  # bytes that a kind may ask for, so that one that asks for all cannot take them


@dataclass(frozen=True)
class Ended:
    """How a kind ended, and the CPU seconds it took."""

    name: str
    outcome: str
    said: str
    seconds: float


def run_area(area: str) -> list[Ended]:
    """All kinds of ``area``, each ended in some way.

    One process does one after another; if one crashes or hangs, a new process goes on behind it.
    """
    names = [kind.name for kind in find_area(area)]
    assert len(names) == len(set(names)), f"two kinds of {area} have one name"
    ended: list[Ended] = []
    with tempfile.TemporaryDirectory() as folder:
        while len(ended) < len(names):
            ended += _run_from(area, len(ended), names, Path(folder) / f"from-{len(ended)}")
    return ended


def find_area(area: str) -> list[Kind]:
    """The kinds of ``area``."""
    from kinds import trials
    from kinds.catalog import AREAS

    return trials.kinds() if area == TRIALS else AREAS[area]()


def table(counts: Mapping[str, "Counter[str]"]) -> str:
    """How many kinds of each area ended how."""
    shown = [outcome for outcome in OUTCOMES if any(counts[area][outcome] for area in counts)]
    lines = [f"| area | kinds | {' | '.join(shown)} |", f"|---|{'---|' * (len(shown) + 1)}"]
    for area in (*counts, "all"):
        of = counts[area] if area in counts else sum(counts.values(), Counter())
        lines.append(f"| {area} | {of.total()} | {' | '.join(str(of[outcome]) for outcome in shown)} |")
    return "\n".join(lines)


def _run_from(area: str, first: int, names: list[str], folder: Path) -> list[Ended]:
    folder.mkdir()
    process = context().Process(target=_work, args=(area, first, str(folder)))
    process.start()
    told, changed = "", time.monotonic()
    while process.is_alive():
        process.join(0.2)
        now = _read(folder)
        if now != told:
            told, changed = now, time.monotonic()
        elif time.monotonic() - changed > LIMIT:
            process.kill()
            process.join()
            return _ends(_read(folder), names, first, HANG, f"nothing after {LIMIT:g} seconds")
    return _ends(_read(folder), names, first, CRASH, f"the process ended with {process.exitcode}")


def _read(folder: Path) -> str:
    path = folder / "ended"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _ends(told: str, names: list[str], first: int, otherwise: str, why: str) -> list[Ended]:
    """What a process told, and the kind that ended it, if it has not told of all."""
    ended = [Ended(**json.loads(line)) for line in told.splitlines()]
    if first + len(ended) < len(names):
        ended.append(Ended(names[first + len(ended)], otherwise, why, 0.0))
    return ended


def _work(area: str, first: int, folder: str) -> None:
    """In the process: the kinds of ``area`` from number ``first``."""
    import torch

    from kinds.kind import outcome

    null = os.open(f"{folder}/said", os.O_WRONLY | os.O_CREAT)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ |= {"MARIO_DATA": "", "MARIO_CACHE": f"{folder}/cache", "MARIO_ANONYMOUS": "", "COLUMNS": "200"}
    os.environ |= {"TMPDIR": folder}
    tempfile.tempdir = folder
    torch.set_num_threads(1)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(f"{folder}/ended", "a", encoding="utf-8") as told:
        for kind in find_area(area)[first:]:
            began = time.process_time()
            ended, said = outcome(kind)
            seconds = round(time.process_time() - began, 3)
            facts = {"name": kind.name, "outcome": ended, "said": said[:300], "seconds": seconds}
            told.write(json.dumps(facts) + "\n")
            told.flush()
