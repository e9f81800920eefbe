"""What a tuning is: which settings of which method, on what, over which ranges, and where its trials are kept."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from mario.datasets import find as find_dataset
from mario.errors import MarioError
from mario.lab.runs.execute import Run
from mario.lab.tune.search_space import Between, Space, grid_of, search_space, spread
from mario.lab.tune.storage import storage_url
from mario.methods.base import choose_device

SAMPLERS, PRUNERS, SELECT = ("tpe", "random", "grid"), ("median", "none"), ("ood_val", "id_val")
TRIALS = 50


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What is tuned, on what, over which ranges, and where it is kept. :meth:`plan` makes one."""

    dataset: str
    domain: str
    shift: str
    setting: str
    method: str
    space: Space
    given: Mapping[str, Any] = field(default_factory=dict)
    pairs: tuple[tuple[int, int], ...] = ((0, 0),)
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

    @classmethod
    def plan(
        cls,
        dataset: str,
        method: str,
        *,
        domain: str | None = None,
        shift: str | None = None,
        setting: str | None = None,
        given: Mapping[str, Any] | None = None,
        only: Sequence[str] = (),
        search: Mapping[str, str] | None = None,
        seeds: int = 1,
        select: str = "ood_val",
        sampler: str = "tpe",
        pruner: str = "median",
        trials: int | None = None,
        name: str | None = None,
        storage: str | Path | None = None,
        folder: Path = Path("runs"),
        root: Path | None = None,
        device: str = "auto",
        heartbeat: int = 10,
    ) -> "Tuning":
        """Complete and check what is asked for; nothing is loaded or written yet.

        Args:
            dataset: as of a run; so are method, domain, shift, setting, root and device.
            given: settings that all trials share.
            only: settings to search; see :func:`~mario.lab.tune.search_space.search_space`.
            search: other ranges; see there.
            seeds: runs that a trial is averaged over, each with a split and a seed of its own, from 0 on.
            select: the validation score that decides.
            sampler: ``tpe``, ``random``, or ``grid``: the paper's grid.
            pruner: ``median`` stops a trial that is below the median of the others at a checkpoint, ``none`` none.
            trials: in all, those of earlier calls and of other machines included; 50, or the whole grid, by default.
            name: of the study; made of dataset, shift and method if not given.
            storage: a file or a database URL; ``folder/tune/NAME.db`` if not given.
            folder: of the runs.
            heartbeat: seconds between two signs of life of a worker; after six without one its trial is tried again.

        Example:
            >>> tuning = Tuning.plan("good-cbas", "mario", shift="concept", sampler="grid")
            >>> tuning.name, tuning.trials, sorted(tuning.space)
            ('good-cbas-color-concept-mario', 25, ['clusters', 'gamma'])
        """
        for what, value, allowed in (
            ("sampler", sampler, SAMPLERS),
            ("pruner", pruner, PRUNERS),
            ("select", select, SELECT),
        ):
            if value not in allowed:
                raise MarioError(f"{what} must be one of {', '.join(allowed)}, got '{value}'")
        for what, number in (("trials", trials), ("seeds", seeds)):
            if number is not None and number < 1:
                raise MarioError(f"{what} must be at least 1, got {number}")
        choose_device(device)
        first = Run.plan(dataset, method, domain=domain, shift=shift, setting=setting, given=given)
        card = find_dataset(dataset).card
        space = search_space(
            first.method, level=card.level, grid=sampler == "grid", only=only, search=search, given=given
        )
        if sampler == "grid":
            points = len(list(itertools.product(*grid_of(space).values())))
            trials = min(trials or points, points)
        own = [] if first.setting == card.setting else [first.setting]
        name = name or "-".join([card.name, first.domain, first.shift, *own, first.method])
        if not name or set(name) & set("/\\") or name.startswith("."):
            raise MarioError(f"a study's name must do for a file, got '{name}'")
        return cls(
            dataset=first.dataset,
            domain=first.domain,
            shift=first.shift,
            setting=first.setting,
            method=first.method,
            space=space,
            given={key: first.settings[key] for key in given or {}},
            pairs=tuple((i, i) for i in range(seeds)),
            select=select,
            sampler=sampler,
            pruner=pruner,
            trials=trials or TRIALS,
            name=name,
            storage=storage_url(storage or folder / "tune" / f"{name}.db"),
            folder=folder,
            root=root,
            device=device,
            heartbeat=heartbeat,
        )

    def runs(self, params: Mapping[str, Any]) -> list[Run]:
        """The runs of a trial: one for each pair of split seed and seed."""
        given = {**self.given, **spread(params)}
        return [self._run(split_seed=split_seed, seed=seed, given=given) for split_seed, seed in self.pairs]

    def _run(self, **facts: Any) -> Run:
        return Run.plan(self.dataset, self.method, domain=self.domain, shift=self.shift, setting=self.setting, **facts)

    def load(self, split_seed: int) -> Data:
        """The graph of one split, which must have the validation set that decides."""
        data = self._run(split_seed=split_seed).load(self.root)
        there = [name for name in SELECT if data.get(f"{name}_mask") is not None and data[f"{name}_mask"].any()]
        if self.select not in there:
            hint = f"--select {there[0]} would do" if there else "without a validation set nothing can be chosen"
            raise MarioError(f"{self.dataset} has no {self.select} set to choose by: {hint}")
        return data

    def identity(self) -> dict[str, Any]:
        """What all trials of a study have in common."""
        return {
            "dataset": self.dataset,
            "domain": self.domain,
            "shift": self.shift,
            "setting": self.setting,
            "method": self.method,
            "given": {key: _plain(value) for key, value in sorted(self.given.items())},
            "pairs": [list(pair) for pair in self.pairs],
            "select": self.select,
            "space": {
                key: [found.low, found.high, found.log] if isinstance(found, Between) else list(found.values)
                for key, found in sorted(self.space.items())
            },
        }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
