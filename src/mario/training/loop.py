"""The training loop."""

import warnings
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim import Optimizer
from torch_geometric.data import Data

from mario import ranks
from mario.arguments import check_count, check_seed
from mario.encoders.norm import BatchNorm
from mario.errors import MarioError, RunFailedError
from mario.files import locked, remove_parts
from mario.graphs.fingerprint import fingerprint
from mario.graphs.samplers import FullGraph, Sampler
from mario.graphs.subgraph import count_nodes
from mario.training.log import Log
from mario.training.prefetch import Batches
from mario.training.progress import Progress, numerics
from mario.training.schedule import learning_rate_factor
from mario.training.streams import DIAGNOSTICS, STEP, stream

Figures = dict[str, float]


class Trainable(Protocol):
    """What the loop needs from a method.

    ``identity()`` is optional: the method's name and settings, by which checkpoints of another training are refused.
    With several ranks, two more optional attributes matter. ``gather``: the loss is already that of all ranks, so
    gradients are summed; without it they are averaged. ``local_statistics``: steps may differ between ranks, for
    example end early without labels, so batch norm must not wait for other ranks; the default is the value of
    ``supervised``.
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
    def step(self, batch: Data, generator: torch.Generator) -> Figures: ...
    def after_step(self, step: int, total: int) -> None: ...
    def diagnostics(self, batch: Data, generator: torch.Generator) -> Figures: ...


@dataclass
class Epoch:
    """The state of training after an epoch. Checkpoints keep what the caller puts into ``record``."""

    number: int
    step: int
    losses: Figures
    pause: bool
    record: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    """Since training began, including the time before a resume."""
    cpu_seconds: float = 0.0
    """Of this process and all its threads, including the time before a resume."""
    environments: Sequence[dict[str, Any]] = ()
    """Versions, threads and device, which may change the last bits; more than one entry after a resume under others."""


_PARTS = ("sampler", "optimizer", "step", "after_step", "diagnostics", "epochs", "steps_per_epoch")


def pauses(epochs: int, checkpoints: int) -> list[int]:
    """The epochs after which a run is evaluated: ``checkpoints`` of them, evenly spaced, including the last.

    Example:
        >>> pauses(30, 4)
        [8, 15, 22, 30]
    """
    count = max(1, min(check_count("epochs", epochs), check_count("checkpoints", checkpoints, low=0)))
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
) -> Generator[Epoch, None, None]:
    """Train ``method`` on ``graph``; each item taken from the iterator is one epoch.

    With a ``folder``, the loop keeps ``folder/checkpoint`` and ``folder/log.jsonl``. If it finds a checkpoint there, it
    first yields the pauses already done, with their records, and continues from it; the final weights are equal to the
    bit to those of an uninterrupted run, on a CPU with the same number of threads. It writes a checkpoint at each pause
    and every ``save_every`` seconds. With ``prefetch`` sampled batches are drawn in the background, which changes no
    bit.

    A checkpoint is refused if it is of another method, seed, graph, number type or number of ranks, or differs in what
    the caller adds to that ``identity``. If it was written with another number of threads, version or device, the loop
    warns and continues. Only one process at a time can train in a folder.

    With several ranks, each draws its own batches and all take the same steps; rank 0 keeps the folder. Every rank has
    to consume all items.
    """
    if not isinstance(method, nn.Module) or not all(hasattr(method, name) for name in _PARTS):
        raise MarioError(
            f"method must be one of mario, or a module with {', '.join(_PARTS)}, got {type(method).__name__}"
        )
    if hasattr(method, "prepare") and not hasattr(method, "in_channels_"):
        raise MarioError("the method has no networks yet: call prepare(data) first, or fit(data)")
    check_seed("seed", seed)
    check_count("checkpoints", checkpoints, low=0)
    with ExitStack() as held:
        if folder:
            identity = _identity(method, graph, seed, identity or {})
            ranks.first(partial(_take, folder, held))
        yield from _epochs(method, graph, seed, folder, checkpoints, save_every, identity, prefetch)


def _take(folder: Path, held: ExitStack) -> None:
    """Lock ``folder`` against other trainings, and remove what a killed one left half written."""
    held.enter_context(locked(folder / "checkpoint", patience=0.2))
    remove_parts(folder)
    remove_parts(folder / "checkpoint")


def _identity(method: Trainable, graph: Data, seed: int, known: dict[str, Any]) -> dict[str, Any]:
    """Everything that decides the weights, except what may change their last bits only."""
    settings: dict[str, Any] = getattr(method, "identity", dict)()
    training = {"seed": seed, "ranks": ranks.size(), "dtype": str(torch.get_default_dtype())}
    data = {} if "data" in known else {"data": fingerprint(graph)}
    return {**settings, **training, **data, **known}


def _epochs(
    method: Trainable,
    graph: Data,
    seed: int,
    folder: Path | None,
    checkpoints: int,
    save_every: float,
    identity: dict[str, Any] | None,
    prefetch: bool,
) -> Generator[Epoch, None, None]:
    assert isinstance(method, nn.Module)
    progress = Progress()
    device = next((p.device for p in method.parameters()), torch.device("cpu"))
    total, stops = method.epochs * method.steps_per_epoch, set(pauses(method.epochs, checkpoints))
    # Gradients are needed even if the caller has turned them off, and `precision` alone decides that of products. What
    # the caller does between epochs is not affected.
    with torch.inference_mode(False):
        sampler = method.sampler(graph)
        whole = isinstance(getattr(sampler, "sampler", sampler), FullGraph)
        _check_ranks(method, whole)
        optimizer = method.optimizer()
        ranks.equalize_(method.state_dict().values())
        progress.environments = [numerics(device)]
        resumed = folder is not None and progress.resume(folder, identity, method, optimizer)
    if resumed:
        if progress.step > total:
            raise MarioError(f"the checkpoint in {folder} is of step {progress.step}, but the training has {total}")
        for record in progress.records:
            spent = progress.earlier, progress.earlier_cpu, progress.environments
            yield Epoch(record["epoch"], record["step"], {}, True, record, *spent)
    log = Log(folder / "log.jsonl", resume_at=progress.step) if folder and ranks.rank() == 0 else None

    batches = Batches(sampler, seed, range(progress.step, total), in_background=prefetch and not whole)
    with closing(batches), ranks.telling(lambda: f"at step {progress.step}"):
        while progress.step < total and not progress.exhausted(method.patience):
            method.train()
            steps: list[Figures] = []
            with torch.inference_mode(False), torch.autocast(device.type, enabled=False):
                for _ in range(method.steps_per_epoch):
                    batch = next(batches).to(device)
                    if progress.step == batches.steps.start:
                        _warn_of_common_nodes(method, batch, graph)
                    steps.append(_step(method, optimizer, batch, seed, progress.step, total))
                    progress.step += 1
                number = progress.step // method.steps_per_epoch
                losses = _log_steps(log, steps, progress.step, method, total)
                progress.count(losses.get("loss"))
                # The checkpoint of rank 0 has to hold what every rank continues with.
                ranks.equalize_(method.state_dict().values())
                epoch = Epoch(number, progress.step, losses, number in stops or progress.exhausted(method.patience))
                if epoch.pause and folder:
                    _log_diagnostics(log, epoch, method, batches, device)
            epoch.seconds, epoch.cpu_seconds = progress.spent().values()
            epoch.environments = progress.environments
            yield epoch
            if epoch.pause:
                progress.records.append({"epoch": number, "step": progress.step, **epoch.record})
            if log and folder and (epoch.pause or progress.since_save() > save_every):
                progress.save(folder, identity, method, optimizer)


def _step(method: Trainable, optimizer: Optimizer, batch: Data, seed: int, step: int, total: int) -> Figures:
    """One optimizer step; returns what the method logs."""
    for group in optimizer.param_groups:
        group["lr"] = _learning_rate(method, step, total)
    optimizer.zero_grad(set_to_none=True)
    losses = method.step(batch, stream(seed, step, ranks.rank(), STEP))
    share = None if getattr(method, "gather", False) else float(bool(losses))
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    if not ranks.sum_gradients(trained, share, sound=all(map(_finite, losses.values()))):
        losses = _mean(ranks.objects(losses))
        raise RunFailedError(f"the loss is not finite at step {step} ({losses}): try a lower lr than {method.lr}")
    optimizer.step()
    method.after_step(step, total)
    return losses


def _learning_rate(method: Trainable, step: int, total: int) -> float:
    return method.lr * learning_rate_factor(
        step, total, schedule=method.schedule, milestones=method.milestones, warmup=method.warmup
    )


def _log_steps(log: Log | None, steps: list[Figures], end: int, method: Trainable, total: int) -> Figures:
    """Log the steps of an epoch that ended at step ``end``; returns the means over steps and ranks."""
    everywhere = [_mean(told) for told in zip(*ranks.objects(steps), strict=True)]
    if log:
        for step, losses in enumerate(everywhere, start=end - len(steps)):
            log.write({"step": step + 1, "lr": _learning_rate(method, step, total), **losses})
    return _mean(everywhere)


def _log_diagnostics(log: Log | None, epoch: Epoch, method: Trainable, batches: Batches, device: torch.device) -> None:
    # Drawn from a stream of their own, so that training does not depend on how often they run.
    generator = stream(batches.seed, epoch.step, ranks.rank(), DIAGNOSTICS)
    figures = method.diagnostics(batches.sample(generator).to(device), generator)
    figures = _mean(ranks.objects(figures))
    if figures and log:
        log.write({"step": epoch.step, "epoch": epoch.number, **figures})


def _check_ranks(method: nn.Module, whole: bool) -> None:
    """With several ranks: check how batches are drawn, and share the statistics of batch norm if steps allow it."""
    alone = getattr(method, "local_statistics", getattr(method, "supervised", False))
    for module in method.modules():
        if isinstance(module, BatchNorm):
            module.everywhere = not alone
    if ranks.size() == 1 or not whole:
        return
    if getattr(method, "gather", False):
        raise MarioError(
            "with sampling=full every rank has all nodes, and with gather a node would be its own negative: "
            "use sampling=random_walk, neighbors or clusters, or gather=False"
        )
    warnings.warn(
        "with sampling=full every rank has the whole graph and ranks only average over draws of views: "
        "sampling=random_walk, neighbors or clusters spreads the graph",
        UserWarning,
        stacklevel=3,
    )


def _warn_of_common_nodes(method: nn.Module, batch: Data, graph: Data) -> None:
    """Warn if ranks that gather negatives draw many nodes in common."""
    nodes, drawn = count_nodes(graph), count_nodes(batch)
    if ranks.size() > 1 and getattr(method, "gather", False) and drawn > nodes / 10:
        warnings.warn(
            f"with gather a node that two ranks have drawn is its own negative: batches of {drawn:,} "
            f"of {nodes:,} nodes have about {drawn / nodes:.0%} in common; use fewer roots, or gather=False",
            UserWarning,
            stacklevel=3,
        )


def _mean(told: Sequence[Figures]) -> Figures:
    """The mean of each figure over those that have it."""
    held: dict[str, list[float]] = {}
    for figures in told:
        for name, value in figures.items():
            held.setdefault(name, []).append(value)
    return {name: sum(parts) / len(parts) for name, parts in held.items()}


def _finite(value: float) -> bool:
    return value - value == 0.0
