"""Methods side by side on the same graphs: the same steps, the same checkpoints, the same splits and seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mario.experiments import store
from mario.experiments.run import Run
from mario.experiments.settings import Evaluation, complete_settings, file_settings
from mario.methods import find

if TYPE_CHECKING:
    from mario.experiments.launch import Standing

CONTROLS = ("raw-features", "random-init")
STEPS = 10  # optimiser steps an epoch, the same for all


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A run before its graph is loaded. ``label`` names its row: a method, or a variant of one."""

    dataset: str
    method: str
    shift: str
    domain: str | None = None
    setting: str | None = None
    split_seed: int = 0
    seed: int = 0
    given: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def name(self) -> str:
        """For people: its row, its dataset and its seeds."""
        row = self.label or self.method
        return f"{row} on {self.dataset} ({self.shift}) with split seed {self.split_seed} and seed {self.seed}"

    def plan(self) -> Run:
        return Run.plan(
            self.dataset,
            self.method,
            domain=self.domain,
            shift=self.shift,
            setting=self.setting,
            split_seed=self.split_seed,
            seed=self.seed,
            given=self.given,
        )


def matched_settings(method: str, dataset: str, domain: str, shift: str, reference: str = "mario") -> dict[str, Any]:
    """The settings of ``reference`` as far as ``method`` has them, so that only what the method adds differs.

    A supervised method keeps its own: it has another loss and needs another learning rate.
    """
    cls = find(method)
    if cls.supervised:
        return file_settings(method, dataset, domain, shift)
    known = {f.name for f in cls.fields()} | set(Evaluation.__dataclass_fields__)
    return {k: v for k, v in file_settings(reference, dataset, domain, shift).items() if k in known}


def side_by_side(
    dataset: str,
    methods: Sequence[str],
    *,
    domain: str,
    shift: str,
    pairs: Sequence[tuple[int, int]],
    epochs: int | None,
    checkpoints: int,
    given: Mapping[str, Any] | None = None,
    matched: bool = True,
) -> list[Job]:
    """A job for every method and every pair of split seed and seed, on one schedule (``epochs`` None is each its own).

    Settings are matched to those of MARIO, or each method's own.
    """
    return [
        Job(
            dataset=dataset,
            method=method,
            domain=domain,
            shift=shift,
            split_seed=split_seed,
            seed=seed,
            label=method,
            given={
                **(matched_settings(method, dataset, domain, shift) if matched else {}),
                **(given or {}),
                "checkpoints": checkpoints,
                **({} if epochs is None else {"epochs": epochs, "steps_per_epoch": STEPS}),
                **({} if matched or epochs is None else _rescaled(method, dataset, domain, shift, epochs)),
            },
        )
        for split_seed, seed in pairs
        for method in methods
    ]


def _rescaled(method: str, dataset: str, domain: str, shift: str, epochs: int) -> dict[str, Any]:
    """A warm-up that takes the same share of the run as in the method's own schedule."""
    own = complete_settings(method, dataset, domain, shift)
    steps = own["epochs"] * own["steps_per_epoch"]
    return {"warmup": own["warmup"] * epochs * STEPS // steps} if own["warmup"] else {}


def run_jobs(jobs: Sequence[Job], folder: Path, *, workers: int = 2, root: Path | None = None) -> "Iterator[Standing]":
    """:func:`mario.experiments.launch.launch` on this machine."""
    from mario.experiments.launch import launch

    yield from launch(jobs, folder, workers=workers, root=root)


def results(jobs: Sequence[Job], folder: Path) -> list[dict[str, Any]]:
    """The results of ``jobs`` that are done, each with its row's ``label`` as ``method``."""
    found = []
    for job in jobs:
        where = folder / job.plan().digest()
        if result := store.read_result(where):
            found.append({**result, "method": job.label or job.method, "folder": str(where)})
    return found
