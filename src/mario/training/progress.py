"""How far a training is, and how it resumes from a checkpoint."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from mario import ranks
from mario.errors import MarioError
from mario.training.checkpoint import Checkpoint


@dataclass
class Progress:
    """What a checkpoint holds besides weights and optimizer state."""

    step: int = 0
    best: float = float("inf")
    """The lowest loss of an epoch."""
    waited: int = 0
    """Epochs since then."""
    records: list[dict[str, Any]] = field(default_factory=list)
    """One per pause, with what the caller added."""
    earlier: float = 0.0
    """Seconds before the resume, and CPU seconds."""
    earlier_cpu: float = 0.0
    began: float = field(default_factory=lambda: time.monotonic())
    began_cpu: float = field(default_factory=lambda: time.process_time())
    saved: float = field(default_factory=lambda: time.monotonic())

    def spent(self) -> dict[str, float]:
        """Wall-clock and CPU seconds of the training, including those before a resume."""
        return {
            "seconds": self.earlier + time.monotonic() - self.began,
            "cpu_seconds": self.earlier_cpu + time.process_time() - self.began_cpu,
        }

    def count(self, loss: float | None) -> None:
        """Take note of the loss of an epoch."""
        if loss is not None:
            self.waited = 0 if loss < self.best else self.waited + 1
            self.best = min(self.best, loss)

    def exhausted(self, patience: int) -> bool:
        """Whether ``patience`` epochs have passed without a lower loss; 0 is never."""
        return bool(patience) and self.waited >= patience

    def since_save(self) -> float:
        return time.monotonic() - self.saved

    def resume(self, folder: Path, identity: Any, method: nn.Module, optimizer: Optimizer) -> bool:
        """Continue from the newest checkpoint in ``folder``; returns whether there is one."""
        found = _newest(folder / "checkpoint")
        if found is None:
            return False
        _check_identity(found.extra.get("identity"), identity, folder)
        _check_size(found.extra.get("ranks", 1), folder)
        found.restore(method, optimizer)
        self.step, self.records = found.step, found.records
        self.best, self.waited, self.earlier = found.extra["best"], found.extra["waited"], found.extra["seconds"]
        self.earlier_cpu = found.extra.get("cpu_seconds", 0.0)
        return True

    def save(self, folder: Path, identity: Any, method: nn.Module, optimizer: Optimizer) -> None:
        extra = {"best": self.best, "waited": self.waited, "identity": identity, "ranks": ranks.size()}
        extra |= self.spent()
        Checkpoint.capture(self.step, method, optimizer, self.records, extra).save(folder / "checkpoint")
        self.saved = time.monotonic()


def _newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint, which rank 0 reads and sends to the others: its header, then its tensors."""
    own: list[Checkpoint] = []

    def read() -> dict[str, Any] | None:
        found = Checkpoint.newest(folder)
        if found is None:
            return None
        own.append(found)
        kinds = {name: [str(t.dtype).removeprefix("torch."), list(t.shape)] for name, t in found.tensors.items()}
        return {"step": found.step, "tensors": kinds, "records": found.records, "extra": found.extra}

    about = ranks.first(read)
    if about is None:
        return None
    if not own:
        kinds = about["tensors"].items()
        empty = {name: torch.empty(shape, dtype=getattr(torch, kind)) for name, (kind, shape) in kinds}
        own.append(Checkpoint(about["step"], empty, about["records"], about["extra"]))
    ranks.equalize_(own[0].tensors.values())
    return own[0]


def _check_size(there: int, folder: Path) -> None:
    if there != ranks.size():
        raise MarioError(
            f"{folder} holds a checkpoint of a training with {there} ranks, and there are {ranks.size()} now: "
            f"start {there}, choose another folder or remove this one"
        )


def _check_identity(there: Any, here: Any, folder: Path) -> None:
    there, here = json.loads(json.dumps([there, here]))
    if there == here or not (isinstance(there, dict) and isinstance(here, dict)):
        return
    key = next(k for k in sorted(there.keys() | here.keys()) if there.get(k) != here.get(k))
    raise MarioError(
        f"{folder} holds a checkpoint of another training: {key} is {there.get(key)} there and {here.get(key)} here. "
        "Choose another folder or remove this one"
    )
