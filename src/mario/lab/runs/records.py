"""Results of many runs in one file, a line each: to keep beside the code, and to go on from on another machine.

A run that is recorded counts as done. Its weights are not in the file. Nothing here imports torch.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.files import locked, read_text, write_json, write_text
from mario.lab.runs import store


def read_records(path: Path) -> dict[str, dict[str, Any]]:
    """The results in ``path`` by the names of their runs' folders; none where there is no such file yet."""
    if not path.exists():
        return {}
    found = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        try:
            result = json.loads(line)
        except json.JSONDecodeError as error:
            raise MarioError(f"line {number} of {path} is not valid JSON ({error}): remove that line") from None
        if not store.is_result(result):
            raise MarioError(f"line {number} of {path} is not the result of a run: remove that line")
        found[store.digest(result)] = result
    return found


def write_records(path: Path, runs: Path) -> int:
    """Add the results of the runs that are done in the folder ``runs`` to those in ``path``; how many it then has.

    The same results give the same bytes, whichever were there first.
    """
    done = [store.read_result(file.parent) for file in runs.glob("*/result.json")]
    with locked(path):  # another launch may have the same file
        kept = read_records(path) | {store.digest(result): result for result in done if result is not None}
        lines = [json.dumps(kept[name], ensure_ascii=False, separators=(",", ":")) + "\n" for name in sorted(kept)]
        write_text(path, "".join(lines))
    return len(kept)


def take_records(path: Path, runs: Path) -> int:
    """Make a folder in ``runs`` of each result in ``path`` that is not done there; how many were made.

    A folder in which something is wrong, or in which a process is at work, is left as it is.
    """
    made = 0
    for name, result in read_records(path).items():
        folder = runs / name
        if store.state(folder) not in (store.WAITING, store.FAILED):
            continue
        with suppress(store.HeldError), store.alone_in(folder):
            write_json(folder / "settings.json", {key: result[key] for key in store.DECIDES})
            write_json(folder / "result.json", result)
            made += 1
    return made
