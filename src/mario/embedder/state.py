"""What a fit has done so far, on disk: the same command goes on from there after a stop of any kind."""

import dataclasses
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mario.embedder.bench import DomainScore, Row
from mario.errors import MarioError
from mario.files import locked, remove_parts, write_json
from mario.methods import Decision, Method
from mario.untrusted import file_name, read_json

_FORMAT = 1
_FILE = "state.json"


class State:
    """What is known so far, and where weights are kept. Without a folder, all of it is in memory.

    Attributes:
        rows: The scores of candidates, by name.
        decisions: What was done to their channels.
        left_out: Candidates and trainings that are not scored, and why.
        steps: Of each training that fits into the budget; ``None`` until that is decided.
        stopped: The epoch after which a training was stopped because the time was over.
        times: Seconds that things took.
        spent: Wall-clock seconds of the fit until it was stopped.
        hosts: Methods that are trained, if there is no folder.
    """

    def __init__(self, folder: Path | None, identity: dict[str, Any]) -> None:
        self.folder, self.identity = folder, json.loads(json.dumps(identity))
        self.rows: dict[str, Row] = {}
        self.decisions: dict[str, list[Decision]] = {}
        self.left_out: dict[str, str] = {}
        self.steps: dict[str, int] | None = None
        self.stopped: dict[str, int] = {}
        self.times: dict[str, float] = {}
        self.spent = 0.0
        self.hosts: dict[str, Method] = {}
        self._saved = time.monotonic()

    @classmethod
    @contextmanager
    def opened(cls, folder: Path | None, identity: dict[str, Any]) -> Iterator["State"]:
        """The state in ``folder``, which no other process uses until the end of the block."""
        state = cls(folder, identity)
        if folder is None:
            yield state
            return
        with locked(folder / _FILE, patience=0.2):
            remove_parts(folder)
            if (folder / _FILE).exists():
                state._restore(read_json(folder / _FILE, f"remove {folder} to start the fit again"))
            yield state

    def save(self, spent: float, *, every: float = 0.0) -> None:
        """Write it, unless that was done less than ``every`` seconds ago."""
        if self.folder is None or time.monotonic() - self._saved < every:
            return
        write_json(
            self.folder / _FILE,
            {
                "format": _FORMAT,
                "identity": self.identity,
                "spent": spent,
                "steps": self.steps,
                "stopped": self.stopped,
                "times": self.times,
                "left_out": self.left_out,
                "rows": {name: dataclasses.asdict(row) for name, row in self.rows.items()},
                "decisions": {
                    name: [dataclasses.asdict(decision) for decision in found] for name, found in self.decisions.items()
                },
            },
        )
        self._saved = time.monotonic()

    def knows(self, candidate: str) -> bool:
        """Whether it is scored or left out."""
        return candidate in self.rows or candidate in self.left_out

    def trained(self, training: str) -> bool:
        """Whether its weights are there."""
        return training in self.hosts or (self.folder is not None and self.path(training, "model.safetensors").exists())

    def keep(self, training: str, method: Method) -> None:
        """Keep a method that is trained; its checkpoints are not needed any more."""
        if self.folder is None:
            self.hosts[training] = method
            return
        method.save(self.path(training, "model.safetensors"))
        shutil.rmtree(self.path(training) / "checkpoint", ignore_errors=True)

    def path(self, training: str, file: str | None = None) -> Path:
        """The folder of a training, or a file there."""
        assert self.folder is not None
        home = self.folder / file_name(training)
        return home if file is None else home / file

    def _restore(self, saved: Any) -> None:
        try:
            if saved["format"] != _FORMAT:
                raise ValueError(f"it has format {saved['format']}")
            there = saved["identity"]
            self.rows = {str(name): _row(row) for name, row in saved["rows"].items()}
            self.decisions = {
                str(name): [Decision(**decision) for decision in found] for name, found in saved["decisions"].items()
            }
            self.left_out = {str(name): str(why) for name, why in saved["left_out"].items()}
            self.stopped = {str(name): int(epoch) for name, epoch in saved["stopped"].items()}
            self.times = {str(name): float(seconds) for name, seconds in saved["times"].items()}
            steps = saved["steps"]
            self.steps = None if steps is None else {str(name): int(count) for name, count in steps.items()}
            self.spent = float(saved["spent"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise MarioError(
                f"{self.folder}/{_FILE} is damaged ({error}): remove {self.folder} to start again"
            ) from None
        if changed := [key for key in self.identity if there.get(key) != self.identity[key]]:
            key = changed[0]
            raise MarioError(
                f"{self.folder} holds an unfinished fit with another {key} ({there.get(key)} there, "
                f"{self.identity[key]} here): choose another folder, or remove this one to start again"
            )


def _row(saved: dict[str, Any]) -> Row:
    return Row(**{**saved, "parts": tuple(DomainScore(**part) for part in saved.get("parts", ()))})
