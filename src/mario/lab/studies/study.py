"""A study: one table or figure of the paper as data, and its runs. `read` has the file format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mario.arguments import check_count
from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.presets import complete_settings, file_settings, settings_of
from mario.lab.runs.job import Job
from mario.lab.spec import RunSpec
from mario.methods import find

PAPER = (
    "table-concept",
    "table-covariate",
    "photo",
    "elliptic",
    "inductive-concept",
    "inductive-covariate",
    "ablation",
    "sensitivity",
    "tsne",
    "encoders",
    "curves",
    "label-rates",
    "graph-classification",
    "other-methods",
    "tsne-id-ood",
)
"""The paper's tables and figures, in its order: the meaning of ``all``."""

STEPS = 10
"""Optimizer steps per epoch, the same for all methods, unless a case says otherwise."""


@dataclass(frozen=True, kw_only=True)
class StudyRow:
    """A method, or a variant of one. ``paper`` is the name of its row in the paper's tables, if it has one."""

    label: str
    method: str
    given: Mapping[str, Any] = field(default_factory=dict)
    paper: str | None = None


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long the rows of a case are trained, and on which splits and seeds: the same for every row.

    Attributes:
        seeds: number of seeds.
        first_seed: the first of them, and of the splits.
        one_split: whether all seeds share the first split. Otherwise each seed has its own.
        splits: number of splits, each combined with every seed, to separate the spread of the two.
        epochs: epochs of ten steps; ``None`` for each method's own number.
        checkpoints: evaluations per run.
        given: settings of every row.
    """

    seeds: int
    first_seed: int = 0
    one_split: bool = False
    splits: int | None = None
    epochs: int | None
    checkpoints: int
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Split seed and seed of each run of a row."""
        first, seeds = self.first_seed, range(self.first_seed, self.first_seed + self.seeds)
        if self.splits is not None:
            return tuple((split, seed) for seed in seeds for split in range(first, first + self.splits))
        return tuple((first if self.one_split else seed, seed) for seed in seeds)


@dataclass(frozen=True, kw_only=True)
class StudyCase:
    """A case of a study and its schedule.

    Attributes:
        case: the dataset and its shift.
        schedule: of the full form; ``quick`` is that of the quick form.
        rows: labels of the study's rows that it has; empty for all.
        matched: whether methods have the settings of MARIO as far as they know them, instead of their own presets.
    """

    case: Case
    schedule: Schedule
    quick: Schedule
    rows: tuple[str, ...] = ()
    matched: bool = False

    @property
    def name(self) -> str:
        return self.case.name


@dataclass(frozen=True, kw_only=True)
class Study:
    """One table or figure: what is run, and what is shown of it.

    Every row is compared with ``reference``; statements in words are about ``subject``. An ``open`` study has a row for
    every registered method.
    """

    name: str
    title: str
    paper: str = ""
    show: tuple[str, ...] = ("table",)
    reference: str | None = "grace"
    subject: str | None = "mario"
    note: str = ""
    rows: tuple[StudyRow, ...] = ()
    cases: tuple[StudyCase, ...] = ()
    open: bool = False

    def jobs(
        self,
        *,
        seeds: int | None = None,
        datasets: Sequence[str] = (),
        methods: Sequence[str] = (),
        quick: bool = False,
    ) -> list[Job]:
        """Every run, case by case, seed by seed and row by row.

        Args:
            seeds: number of seeds per row, instead of the number of each case.
            datasets: datasets, or names of cases, to keep; all if empty.
            methods: labels or methods of rows to keep, also where a case leaves them out; an open study makes a row
                of any other method that embeds what the case has, nodes or graphs.
            quick: whether to take the quick form.

        Example:
            >>> from mario.lab.studies.read import find_study
            >>> study = find_study("table-concept")
            >>> jobs = study.jobs(datasets=["good-cbas"], methods=["erm", "mario"], seeds=2)
            >>> [(job.label, job.spec.split_seed, job.spec.seed) for job in jobs]
            [('erm', 0, 0), ('mario', 0, 0), ('erm', 1, 1), ('mario', 1, 1)]
        """
        if seeds is not None:
            check_count("seeds", seeds)
        found = []
        for case in self.kept_cases(datasets):
            schedule = case.quick if quick else case.schedule
            if seeds is not None:
                schedule = replace(schedule, seeds=seeds)
            rows = self.rows_of(case, methods)
            specs = {row.label: row_spec(case, schedule, row) for row in rows}  # its runs differ only in their seeds
            found += [
                Job(spec=replace(specs[row.label], split_seed=split_seed, seed=seed), label=row.label, paper=row.paper)
                for split_seed, seed in schedule.pairs
                for row in rows
            ]
        return found

    def kept_cases(self, datasets: Sequence[str] = ()) -> list[StudyCase]:
        """The cases of these datasets, or with these names; all if none is given."""
        return [case for case in self.cases if not datasets or {case.case.dataset, case.name} & set(datasets)]

    def rows_of(self, case: StudyCase, methods: Sequence[str] = ()) -> list[StudyRow]:
        """The rows of a case, or those of the study that ``methods`` name."""
        if not methods:
            return [row for row in self.rows if not case.rows or row.label in case.rows]
        kept = [row for row in self.rows if {row.label, row.method} & set(methods)]
        if self.open:
            there = {name for row in kept for name in (row.label, row.method)}
            level = case.case.card.level
            more = [name for name in methods if name not in there and _embeds(name, level)]
            kept += [StudyRow(label=name, method=name) for name in more]
        return kept


def _embeds(method: str, level: str) -> bool:
    try:
        return level in find(method).levels
    except MarioError:
        return False


def matched_settings(method: str, case: Case) -> dict[str, Any]:
    """The settings of MARIO as far as ``method`` has them, so that only the parts of the method differ.

    A supervised method keeps its own: it has another loss and needs another learning rate.
    """
    if find(method).supervised:
        return file_settings(method, case.dataset, case.domain, case.shift)
    preset = file_settings("mario", case.dataset, case.domain, case.shift)
    return {k: v for k, v in preset.items() if k in settings_of(method)}


def row_spec(case: StudyCase, schedule: Schedule, row: StudyRow) -> RunSpec:
    """The run of ``row`` on ``case`` with the first split seed and seed."""
    return RunSpec.plan(case.case, row.method, given=_given(case, schedule, row))


def _given(case: StudyCase, schedule: Schedule, row: StudyRow) -> dict[str, Any]:
    matched = matched_settings(row.method, case.case) if case.matched else {}
    base = {**matched, **schedule.given, "checkpoints": schedule.checkpoints}
    if schedule.epochs is None:
        return {**base, **row.given}
    steps = int(schedule.given.get("steps_per_epoch", STEPS))
    base = {key: value for key, value in base.items() if key not in ("epochs", "steps_per_epoch")}
    own = complete_settings(row.method, case.case.dataset, case.case.domain, case.case.shift, base)
    length = {"epochs": schedule.epochs, "steps_per_epoch": steps}
    rescaled = _rescaled(own, schedule.epochs, steps)
    kept = {key: value for key, value in rescaled.items() if key not in schedule.given}
    return {**base, **length, **kept, **row.given}


def _rescaled(own: Mapping[str, Any], epochs: int, steps: int) -> dict[str, Any]:
    """Settings that count steps or epochs, rescaled to the same share of this schedule as of the method's own."""
    share: float = epochs * steps / (own["epochs"] * own["steps_per_epoch"])

    def scaled(count: int) -> int:
        return max(1, round(count * share))

    changed: dict[str, Any] = {k: scaled(own[k]) for k in ("warmup", "centers_wait") if own.get(k)}
    if own["schedule"] == "steps":
        changed["milestones"] = tuple(scaled(milestone) for milestone in own["milestones"])
    if own["patience"]:
        changed["patience"] = max(1, round(own["patience"] * epochs / own["epochs"]))
    return changed
