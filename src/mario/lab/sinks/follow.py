"""Passes the log and the checkpoint scores of a run to its sinks."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mario.lab.runs import store
from mario.lab.sinks.sink import Sink
from mario.training import Epoch
from mario.untrusted import open_file, parse_json


def followed(epochs: Iterator[Epoch], folder: Path, sinks: Sequence[Sink]) -> Iterator[Epoch]:
    """Yield the ``epochs`` of the run in ``folder`` and pass its scalars to ``sinks``.

    Values of every step are named ``train/...``, values that are logged only at checkpoints ``diagnostics/...``, and
    the scores of a checkpoint ``checkpoint/...``. A run that was done before has no epochs; the sinks then get
    everything at the end.

    Example:
        >>> import tempfile
        >>> class Printing:
        ...     def scalars(self, step, values):
        ...         print(step, sorted(values))
        >>> epoch = Epoch(1, 10, {}, pause=True, record={"ood_val": 0.5})
        >>> next(followed(iter([epoch]), Path(tempfile.mkdtemp()), [Printing()])) is epoch
        10 ['checkpoint/ood_val']
        True
    """
    if not sinks:
        yield from epochs
        return
    log = _Tail(folder / "log.jsonl")
    pending: dict[int, dict[str, float]] = {}
    given = 0

    def gather(step: int, values: Mapping[str, Any], kind: str) -> None:
        if step > given:
            named = {f"{kind}/{k}": float(v) for k, v in values.items() if k not in ("step", "epoch")}
            pending.setdefault(step, {}).update(named)

    def give(until: float) -> None:
        nonlocal given
        for entry in log.new():
            gather(entry["step"], entry, "diagnostics" if "epoch" in entry else "train")
        # Later steps may still get the scores of their checkpoint.
        for step in sorted(step for step in pending if step <= until):
            values = pending.pop(step)
            for sink in sinks:
                sink.scalars(step, values)
            given = step

    for epoch in epochs:
        if epoch.pause:
            gather(epoch.step, epoch.record, "checkpoint")
        give(epoch.step)
        yield epoch
    if result := store.read_result(folder):
        for point in result.curve:
            gather(point.step, point.scores, "checkpoint")
    give(math.inf)


class _Tail:
    """The new lines of a log since the last call; all lines if the file was replaced, as after a resume."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file, self._read = -1, 0

    def new(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        with open_file(self.path) as file:
            number = os.fstat(file.fileno()).st_ino
            if number != self._file:
                self._file, self._read = number, 0
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        return [parse_json(line, str(self.path), finite=False) for line in whole.splitlines()]
