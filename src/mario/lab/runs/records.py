"""Results of many runs in one file, one line per run: to keep under version control, or to continue on another machine.

A recorded run counts as done. Its weights are not in the file. This module does not import torch.
"""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mario.errors import MarioError
from mario.files import locked, write_json, write_text
from mario.lab import anonymous
from mario.lab.result import RunResult
from mario.lab.runs import store
from mario.lab.runs.lock import HeldError, alone_in
from mario.untrusted import read_json_lines


def read_records(path: Path) -> dict[str, RunResult]:
    """The results in ``path`` by digest; empty if there is no such file."""
    if not path.exists():
        return {}
    found = {}
    for where, written in read_json_lines(path):
        try:
            result = RunResult.from_dict(written, where)
        except MarioError as error:
            raise MarioError(f"{where} is not the result of a run ({error}): remove that line") from None
        found[result.spec.digest] = result
    return found


def write_records(path: Path, runs: Path) -> int:
    """Add the finished runs in the folder ``runs`` to ``path``; return how many results it then has.

    The same results give the same bytes, in whichever order they were added.
    """
    done = store.finished(runs)
    with locked(path):  # another launch may write the same file
        kept = read_records(path) | {result.spec.digest: result for result in done}
        if anonymous.wanted():
            for name, result in kept.items():
                kept[name] = replace(result, environment=anonymous.without_machine(result.environment))
        lines = [json.dumps(kept[name].to_dict(), ensure_ascii=False, separators=(",", ":")) for name in sorted(kept)]
        write_text(path, "".join(f"{line}\n" for line in lines))
    return len(kept)


def take_records(path: Path, runs: Path) -> int:
    """Create a folder in ``runs`` for each result in ``path`` that is not done there; return how many were created.

    Folders that are broken, or in which a process is working, are left unchanged.
    """
    made = 0
    for name, result in read_records(path).items():
        folder = runs / name
        if store.state(folder) not in (store.WAITING, store.FAILED):
            continue
        with suppress(HeldError), alone_in(folder):
            write_json(folder / "settings.json", result.spec.to_dict())
            write_json(folder / "result.json", result.to_dict())
            made += 1
    return made
