"""How far a training is, and how it resumes from a checkpoint."""

import json
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from mario import ranks
from mario.errors import MarioError
from mario.training.checkpoint import Checkpoint, remove_old


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
    environments: list[dict[str, Any]] = field(default_factory=list)
    """What the training ran under, oldest first: see :func:`numerics`."""
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

    def resume(self, folder: Path, identity: dict[str, Any] | None, method: nn.Module, optimizer: Optimizer) -> bool:
        """Continue from the newest checkpoint in ``folder``; returns whether there is one."""
        found = _newest(folder, identity)
        if found is None:
            return False
        found.restore(method, optimizer)
        self.step, self.records = found.step, found.records
        self.best, self.waited, self.earlier = found.extra["best"], found.extra["waited"], found.extra["seconds"]
        self.earlier_cpu, before = found.extra["cpu_seconds"], found.extra["environments"]
        known = {key: value for key, value in self.environments[-1].items() if key in before[-1]}  # then, or not yet
        changes = ", ".join(_changes(before[-1], known, "before", "now"))
        self.environments = [*before, *self.environments] if changes else before
        if changes and ranks.rank() == 0:
            warnings.warn(
                f"{folder} continues under another environment: {changes}. The last bits may differ from those of a "
                "training that was never stopped",
                UserWarning,
                stacklevel=4,
            )
        return True

    def save(self, folder: Path, identity: dict[str, Any] | None, method: nn.Module, optimizer: Optimizer) -> None:
        extra = {"best": self.best, "waited": self.waited, "identity": identity, "environments": self.environments}
        extra |= self.spent()
        Checkpoint.capture(self.step, method, optimizer, self.records, extra).save(folder / "checkpoint")
        self.saved = time.monotonic()


def numerics(device: torch.device) -> dict[str, Any]:
    """What may change the last bits of a training: versions, threads, hardware, and modes of torch."""
    return {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "device": device.type,
        "matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "mkldnn": torch.backends.mkldnn.enabled,
    }


def _newest(folder: Path, identity: dict[str, Any] | None) -> Checkpoint | None:
    """The newest checkpoint in ``folder``, which rank 0 reads and sends to the others: its header, then its tensors."""
    own: list[Checkpoint] = []

    def read() -> dict[str, Any] | None:
        found = _read(folder, identity)
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


def _read(folder: Path, identity: dict[str, Any] | None) -> Checkpoint | None:
    """The newest checkpoint in ``folder``, which must be of the training with this ``identity``."""
    found = Checkpoint.newest(folder / "checkpoint")
    if found is None:
        return None
    there, here = found.extra.get("identity"), json.loads(json.dumps(identity))
    if not isinstance(there, dict) or not found.extra.get("environments"):
        raise MarioError(f"a checkpoint in {folder} does not say which training it is of: remove {folder}/checkpoint")
    if not all(isinstance(record.get(key), int) for record in found.records for key in ("epoch", "step")):
        raise MarioError(f"a checkpoint in {folder} has a record without its step: remove {folder}/checkpoint")
    if changes := _changes(there, here, "there", "here"):
        raise MarioError(
            f"{folder} holds a checkpoint of another training: {', '.join(changes[:3])}. "
            "Choose another folder or remove this one"
        )
    remove_old(folder / "checkpoint", found.step)  # a kill may have come before that
    return found


def _changes(old: dict[str, Any], new: dict[str, Any], then: str, now: str) -> list[str]:
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    keys.sort(key=lambda key: key not in ("method", "dataset", "seed"))  # the most telling first
    return [f"{key} is {old.get(key)} {then} and {new.get(key)} {now}" for key in keys]
