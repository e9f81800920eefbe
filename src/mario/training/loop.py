"""A method and a graph in, a trained method out."""

import json
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim import Optimizer
from torch_geometric.data import Data

from mario import ranks
from mario.encoders.norm import BatchNorm
from mario.errors import MarioError, RunFailedError
from mario.graphs.samplers import FullGraph
from mario.graphs.subgraph import count_nodes
from mario.training.checkpoint import Checkpoint
from mario.training.log import Log
from mario.training.prefetch import prefetched
from mario.training.schedule import learning_rate_factor
from mario.training.streams import BATCH, DIAGNOSTICS, STEP, stream


class Sampler(Protocol):
    def sample(self, generator: torch.Generator | None = None) -> Data: ...


class Trainable(Protocol):
    """What the loop needs to know of a method.

    Over ranks two more attributes count where a method has them. ``gather``: its loss is already that of all ranks, so
    gradients are summed; without it they are averaged. ``local_statistics``: its steps may differ between ranks, such
    as one that ends early for want of labels, so batch norm must not wait for other ranks; where not given, it is
    what ``supervised`` is.
    """

    epochs: int
    steps_per_epoch: int
    lr: float
    schedule: str
    milestones: tuple[int, ...]
    warmup: int
    patience: int

    def sampler(self, graph: Data) -> Sampler: ...
    def optimizer(self) -> Optimizer: ...
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
    seconds: float = 0.0
    """Since training began, those before a resume included."""
    cpu_seconds: float = 0.0
    """Of this process and all its threads, those before a resume included."""


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
    prefetch: bool = True,
) -> Iterator[Epoch]:
    """Train ``method`` on ``graph``, one epoch for each item that is taken from the iterator.

    With a ``folder``, ``folder/checkpoint`` and ``folder/log.jsonl`` are kept; a run that finds a checkpoint there goes
    on from it and first yields the pauses already done, with their records. The bits it ends with are those of a run
    that was never stopped, on a CPU with as many threads. At each pause and every ``save_every`` seconds a checkpoint
    is written. A checkpoint of another ``identity`` is refused. With ``prefetch`` sampled batches are drawn in the
    background, which changes no bit.

    Over ranks each one draws its own batches and all take the same steps; rank 0 keeps the folder. All have to take
    every item.
    """
    assert isinstance(method, nn.Module)
    began, began_cpu = time.monotonic(), time.process_time()
    device = next((p.device for p in method.parameters()), torch.device("cpu"))
    sampler = method.sampler(graph)
    whole = isinstance(getattr(sampler, "sampler", sampler), FullGraph)
    if ranks.size() > 1 and whole:
        _check_full(method)
    optimizer = method.optimizer()
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    total = method.epochs * method.steps_per_epoch
    stops = set(pauses(method.epochs, checkpoints))
    records: list[dict[str, Any]] = []
    best, waited, step, earlier, earlier_cpu = float("inf"), 0, 0, 0.0, 0.0
    _share_statistics(method)
    ranks.equalize_(method.state_dict().values())

    saved = ranks.first(lambda: Checkpoint.newest(folder / "checkpoint")) if folder else None
    if saved:
        _check_identity(saved.extra.get("identity"), identity, folder)
        _check_ranks(saved.extra.get("ranks", 1), folder)
        saved.restore(method, optimizer)
        step, records = saved.step, saved.records
        best, waited, earlier = saved.extra["best"], saved.extra["waited"], saved.extra["seconds"]
        earlier_cpu = saved.extra.get("cpu_seconds", 0.0)
        for record in records:
            spent = {"seconds": earlier, "cpu_seconds": earlier_cpu}
            yield Epoch(record["epoch"], record["step"], {}, pause=True, record=record, **spent)
    log = Log(folder / "log.jsonl", resume_at=step) if folder and ranks.rank() == 0 else None
    last_save = time.monotonic()
    one_at_a_time = threading.Lock()

    def sample(generator: torch.Generator) -> Data:
        with one_at_a_time:  # a sampler is for one thread
            return sampler.sample(generator)

    def draw(step: int) -> Data:
        return sample(stream(seed, step, ranks.rank(), BATCH))

    gathers = ranks.size() > 1 and bool(getattr(method, "gather", False))
    ahead = prefetch and not whole
    batches = prefetched(draw, range(step, total)) if ahead else (draw(s) for s in range(step, total))
    with closing(batches), ranks.telling(lambda: f"at step {step}"):
        while step < total and not (method.patience and waited >= method.patience):
            method.train()
            steps: list[dict[str, float]] = []
            made: list[dict[str, float]] = []
            for _ in range(method.steps_per_epoch):
                factor = learning_rate_factor(
                    step, total, schedule=method.schedule, milestones=method.milestones, warmup=method.warmup
                )
                for group in optimizer.param_groups:
                    group["lr"] = method.lr * factor
                batch = next(batches).to(device)
                if gathers:
                    _warn_of_common(batch, graph)
                    gathers = False  # once is enough
                optimizer.zero_grad(set_to_none=True)
                losses = method.step(batch, stream(seed, step, ranks.rank(), STEP))
                share = None if getattr(method, "gather", False) else float(bool(losses))
                if not ranks.sum_gradients(trained, share, sound=all(map(_finite, losses.values()))):
                    losses = _mean(ranks.objects(losses))
                    raise RunFailedError(
                        f"the loss is not finite at step {step} ({losses}): a lower lr than {method.lr} may do"
                    )
                optimizer.step()
                method.after_step(step, total)
                step += 1
                made.append({"step": step, "lr": method.lr * factor})
                steps.append(losses)

            number = step // method.steps_per_epoch
            steps = [_mean(told) for told in zip(*ranks.objects(steps), strict=True)]
            if log:
                for facts, losses in zip(made, steps, strict=True):
                    log.write({**facts, **losses})
            means = _mean(steps)
            if "loss" in means:
                waited = 0 if means["loss"] < best else waited + 1
                best = min(best, means["loss"])
            stopped = bool(method.patience and waited >= method.patience)
            # Whatever a method keeps of its own batches has to be what the checkpoint will hold.
            ranks.equalize_(method.state_dict().values())
            epoch = Epoch(number, step, means, pause=number in stops or stopped)
            if epoch.pause and folder:
                # From a stream of their own: whether and how often they run changes no bit of training.
                own = stream(seed, step, ranks.rank(), DIAGNOSTICS)
                diagnostics = _mean(ranks.objects(method.diagnostics(sample(own).to(device), own)))
                if diagnostics and log:
                    log.write({"step": step, "epoch": number, **diagnostics})
            epoch.seconds = earlier + time.monotonic() - began
            epoch.cpu_seconds = earlier_cpu + time.process_time() - began_cpu
            yield epoch
            if epoch.pause:
                records.append({"epoch": number, "step": step, **epoch.record})
            if log and folder and (epoch.pause or time.monotonic() - last_save > save_every):
                extra = {"best": best, "waited": waited, "identity": identity, "ranks": ranks.size()}
                extra["seconds"] = earlier + time.monotonic() - began
                extra["cpu_seconds"] = earlier_cpu + time.process_time() - began_cpu
                Checkpoint.capture(step, method, optimizer, records, extra).save(folder / "checkpoint")
                last_save = time.monotonic()


def _check_full(method: Any) -> None:
    """Over ranks that all have the whole graph."""
    settings: dict[str, Any] = method.get_params() if hasattr(method, "get_params") else {}
    if settings.get("gather"):
        raise MarioError(
            "with sampling=full every rank has all nodes, and with gather a node would be its own negative: "
            "sampling=random_walk, neighbors or clusters would do, or gather=False"
        )
    warnings.warn(
        "with sampling=full every rank has the whole graph and ranks average over draws of views alone: "
        "sampling=random_walk, neighbors or clusters spreads the graph",
        UserWarning,
        stacklevel=3,
    )


def _warn_of_common(batch: Data, graph: Data) -> None:
    """Over ranks that gather negatives from batches drawn from the same graph."""
    nodes, drawn = count_nodes(graph), count_nodes(batch)
    if drawn > nodes / 10:
        warnings.warn(
            f"with gather a node that two ranks have drawn is its own negative: batches of {drawn:,} "
            f"of {nodes:,} nodes have about {drawn / nodes:.0%} in common; fewer roots would do, or gather=False",
            UserWarning,
            stacklevel=3,
        )


def _share_statistics(method: nn.Module) -> None:
    """Let batch norm count the rows of all ranks, unless the method says that ranks may part within a step."""
    alone = getattr(method, "local_statistics", getattr(method, "supervised", False))
    for module in method.modules():
        if isinstance(module, BatchNorm):
            module.everywhere = not alone


def _mean(told: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each figure over those who have it."""
    held: dict[str, list[float]] = {}
    for figures in told:
        for name, value in figures.items():
            held.setdefault(name, []).append(value)
    return {name: sum(parts) / len(parts) for name, parts in held.items()}


def _check_ranks(there: int, folder: Path | None) -> None:
    if there != ranks.size():
        raise MarioError(
            f"{folder} holds a checkpoint of a training over {there} ranks and here are {ranks.size()}: "
            f"start {there}, choose another folder or remove that one"
        )


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
