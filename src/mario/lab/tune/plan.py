"""A tuning: the settings to search, their ranges, the case, and where the trials are kept."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from mario.arguments import check_count
from mario.errors import MarioError
from mario.graphs.labels import labeled_parts
from mario.lab.case import Case
from mario.lab.spec import RunSpec
from mario.lab.tune.search_space import Between, Space, grid_of, search_space, spread
from mario.lab.tune.storage import storage_url
from mario.methods.base import choose_device
from mario.untrusted import safe_name

SAMPLERS, PRUNERS, SELECT = ("tpe", "random", "grid"), ("median", "none"), ("ood_val", "id_val")
TRIALS = 50


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """A search for settings of ``method`` on ``case``. :meth:`plan` makes one.

    Attributes:
        space: the ranges to search.
        given: settings that all trials share.
        seeds: runs per trial, whose scores are averaged; each has its own split and seed, starting at 0.
        select: the validation score that decides.
        sampler: ``tpe``, ``random``, or ``grid``: the paper's grid.
        pruner: ``median`` stops a trial that is below the median of the others at a checkpoint; ``none`` does not.
        trials: total number, including earlier calls and other machines.
        name: of the study.
        storage: a database URL.
        folder: of the runs.
        root: folder of raw files to look in first.
        device: ``auto``, ``cpu`` or ``cuda``.
        heartbeat: seconds between heartbeats of a worker; a trial is tried again after six missed ones.
    """

    case: Case
    method: str
    space: Space
    given: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 1
    select: str = "ood_val"
    sampler: str = "tpe"
    pruner: str = "median"
    trials: int = TRIALS
    name: str
    storage: str
    folder: Path = Path("runs")
    root: Path | None = None
    device: str = "auto"
    heartbeat: int = 10

    def __post_init__(self) -> None:
        for what, allowed in (("sampler", SAMPLERS), ("pruner", PRUNERS), ("select", SELECT)):
            if (value := getattr(self, what)) not in allowed:
                raise MarioError(f"{what} must be one of {', '.join(allowed)}, got '{value}'")
        for what in ("trials", "seeds"):
            check_count(what, getattr(self, what))
        safe_name(self.name, "the name of a study")
        choose_device(self.device)

    @classmethod
    def plan(
        cls,
        case: Case,
        method: str,
        *,
        given: Mapping[str, Any] | None = None,
        only: Sequence[str] = (),
        search: Mapping[str, str] | None = None,
        sampler: str = "tpe",
        trials: int | None = None,
        name: str | None = None,
        storage: str | Path | None = None,
        folder: Path = Path("runs"),
        **options: Any,
    ) -> "Tuning":
        """A tuning with defaults for everything that is ``None``; nothing is loaded or written yet.

        Args:
            only: settings to search; see :func:`~mario.lab.tune.search_space.search_space`.
            search: other ranges; see there.
            trials: default 50, or the whole grid.
            name: default: dataset, domain, shift and method.
            storage: a file or a database URL; default ``folder/tune/NAME.db``.
            options: other attributes of the class.

        Example:
            >>> tuning = Tuning.plan(Case.find("good-cbas", shift="concept"), "mario", sampler="grid")
            >>> tuning.name, tuning.trials, sorted(tuning.space)
            ('good-cbas-color-concept-mario', 25, ['clusters', 'gamma'])
        """
        first = RunSpec.plan(case, method, given=given)
        card, grid = case.card, sampler == "grid"
        space = search_space(first.method, level=card.level, grid=grid, only=only, search=search, given=given)
        if grid:
            points = len(list(itertools.product(*grid_of(space).values())))
            trials = points if trials is None else min(trials, points)
        own = [] if case.setting == card.setting else [case.setting]
        name = name or "-".join([card.name, case.domain, case.shift, *own, first.method])
        return cls(
            case=case,
            method=first.method,
            space=space,
            given={key: first.settings[key] for key in given or {}},
            sampler=sampler,
            trials=TRIALS if trials is None else trials,
            name=name,
            storage=storage_url(storage or folder / "tune" / f"{name}.db"),
            folder=folder,
            **options,
        )

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Split seed and seed of each run of a trial."""
        return tuple((i, i) for i in range(self.seeds))

    def runs(self, params: Mapping[str, Any]) -> list[RunSpec]:
        """The runs of a trial: one per pair of split seed and seed."""
        first = RunSpec.plan(self.case, self.method, given={**self.given, **spread(params)})
        return [replace(first, split_seed=split_seed, seed=seed) for split_seed, seed in self.pairs]

    def load(self, split_seed: int) -> Data:
        """The graph of one split, which must have the validation set that decides."""
        data = self.case.load(split_seed=split_seed, root=self.root)
        labeled = labeled_parts(data)
        there = [name for name in SELECT if labeled.get(f"{name}_mask") is not None and labeled[f"{name}_mask"].any()]
        if self.select not in there:
            hint = f"use --select {there[0]}" if there else "without a validation set nothing can be chosen"
            raise MarioError(f"{self.case.dataset} has no {self.select} set to choose by: {hint}")
        return data

    def identity(self) -> dict[str, Any]:
        """What all trials of a study have in common."""
        return {
            **asdict(self.case),
            "method": self.method,
            "given": dict(sorted(self.given.items())),
            "pairs": [list(pair) for pair in self.pairs],
            "select": self.select,
            "space": {
                key: [found.low, found.high, found.log] if isinstance(found, Between) else list(found.values)
                for key, found in sorted(self.space.items())
            },
        }
