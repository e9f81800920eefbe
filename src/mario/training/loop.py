"""A method and a graph in, a trained method out."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim import Optimizer
from torch_geometric.data import Data

from mario.errors import MarioError, RunFailedError
from mario.training.checkpoint import Checkpoint
from mario.training.log import Log
from mario.training.schedule import learning_rate_factor


class Sampler(Protocol):
    def sample(self, generator: torch.Generator | None = None) -> Data: ...


class Trainable(Protocol):
    """What the loop needs to know of a method."""

    epochs: int
    steps_per_epoch: int
    lr: float
    schedule: str
    milestones: tuple[int, ...]
    warmup: int
    patience: int

    def sampler(self, graph: Data) -> Sampler: ...
    def optimiser(self) -> Optimizer: ...
    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]: ...
    def after_step(self, step: int, total: int) -> None: ...
    def diagnostics(self, batch: Data, generator: torch.Generator) -> dict[str, float]: ...


@dataclass
class Epoch:
    """Where training stands after an epoch. What a caller puts into ``record`` is kept with the checkpoint."""

    number: int
    step: int
    losses: dict[str, float]
    pause: bool
    record: dict[str, Any] = field(default_factory=dict)


def pauses(epochs: int, checkpoints: int) -> list[int]:
    """The epochs after which a run is evaluated: ``checkpoints`` of them, evenly spaced, the last among them.

    Example:
        >>> pauses(30, 4)
        [8, 15, 22, 30]
    """
    count = max(1, min(epochs, checkpoints))
    return [round(epochs * (i + 1) / count) for i in range(count)]


def train(
    method: Trainable,
    graph: Data,
    *,
    seed: int = 0,
    folder: Path | None = None,
    checkpoints: int = 10,
    save_every: float = 60.0,
    identity: dict[str, Any] | None = None,
) -> Iterator[Epoch]:
    """Train ``method`` on ``graph``, one epoch for each item that is taken from the iterator.

    With a ``folder``, ``folder/checkpoint`` and ``folder/log.jsonl`` are kept; a run that finds a checkpoint there goes
    on from it and first yields the pauses already done, with their records. The bits it ends with are those of a run
    that was never stopped, on a CPU with as many threads. At each pause and every ``save_every`` seconds a checkpoint
    is written. A checkpoint of another ``identity`` is refused.
    """
    assert isinstance(method, nn.Module)
    device = next((p.device for p in method.parameters()), torch.device("cpu"))
    generator = torch.Generator().manual_seed(seed)
    sampler = method.sampler(graph)
    optimiser = method.optimiser()
    total = method.epochs * method.steps_per_epoch
    stops = set(pauses(method.epochs, checkpoints))
    records: list[dict[str, Any]] = []
    best, waited, step = float("inf"), 0, 0

    saved = Checkpoint.newest(folder / "checkpoint") if folder else None
    if saved:
        _check_identity(saved.extra.get("identity"), identity, folder)
        saved.restore(method, optimiser, generator)
        step, records = saved.step, saved.records
        best, waited = saved.extra["best"], saved.extra["waited"]
        for record in records:
            yield Epoch(record["epoch"], record["step"], {}, pause=True, record=record)
    log = Log(folder / "log.jsonl", resume_at=step) if folder else None
    last_save = time.monotonic()

    while step < total and not (method.patience and waited >= method.patience):
        method.train()
        values: dict[str, list[float]] = {}
        for _ in range(method.steps_per_epoch):
            factor = learning_rate_factor(
                step, total, schedule=method.schedule, milestones=method.milestones, warmup=method.warmup
            )
            for group in optimiser.param_groups:
                group["lr"] = method.lr * factor
            batch = sampler.sample(generator).to(device)
            optimiser.zero_grad(set_to_none=True)
            losses = method.step(batch, generator)
            if not all(map(_finite, losses.values())):
                raise RunFailedError(
                    f"the loss is not finite at step {step} ({losses}): a lower lr than {method.lr} may do"
                )
            optimiser.step()
            method.after_step(step, total)
            step += 1
            for name, value in losses.items():
                values.setdefault(name, []).append(value)
            if log:
                log.write({"step": step, "lr": method.lr * factor, **losses})

        number = step // method.steps_per_epoch
        means = {name: sum(parts) / len(parts) for name, parts in values.items()}
        if "loss" in means:
            waited = 0 if means["loss"] < best else waited + 1
            best = min(best, means["loss"])
        stopped = bool(method.patience and waited >= method.patience)
        epoch = Epoch(number, step, means, pause=number in stops or stopped)
        if epoch.pause and log:
            # Diagnostics draw from a generator of their own: whether and how often they run changes no bit of training.
            own = torch.Generator().manual_seed(seed * 1_000_003 + step)
            diagnostics = method.diagnostics(sampler.sample(own).to(device), own)
            if diagnostics:
                log.write({"step": step, "epoch": number, **diagnostics})
        yield epoch
        if epoch.pause:
            records.append({"epoch": number, "step": step, **epoch.record})
        if folder and (epoch.pause or time.monotonic() - last_save > save_every):
            extra = {"best": best, "waited": waited, "identity": identity}
            Checkpoint.capture(step, method, optimiser, generator, records, extra).save(folder / "checkpoint")
            last_save = time.monotonic()


def _check_identity(there: Any, asked: Any, folder: Path | None) -> None:
    there, asked = json.loads(json.dumps([there, asked]))
    if there == asked or not (isinstance(there, dict) and isinstance(asked, dict)):
        return
    key = next(k for k in sorted(there.keys() | asked.keys()) if there.get(k) != asked.get(k))
    raise MarioError(
        f"{folder} holds a checkpoint of another training: {key} is {there.get(key)} there and {asked.get(key)} here. "
        "Choose another folder or remove that one"
    )


def _finite(value: float) -> bool:
    return value - value == 0.0
