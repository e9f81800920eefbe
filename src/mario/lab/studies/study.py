"""A study: one table or figure of the paper as data, and the runs that it takes. `study_files` reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mario.datasets import find as find_dataset
from mario.errors import MarioError
from mario.lab.presets import Evaluation, complete_settings, file_settings
from mario.lab.runs.job import Job
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
"""The paper's tables and figures, in its order: what ``all`` stands for."""

SHOWN = (
    *("table", "ranks", "boxes", "bars", "grid", "curves", "invariance", "map", "map-id-ood", "label-rates"),
    "validation",
)
"""What a study may ask to be shown."""

STEPS = 10
"""Optimizer steps an epoch, the same for all methods, unless a case says otherwise."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A method, or a variant of one. ``paper`` is the name of its row in the paper's tables, where it has one."""

    label: str
    method: str
    given: Mapping[str, Any] = field(default_factory=dict)
    paper: str | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A dataset under a shift, and on which schedule it is trained: the same steps and checkpoints for every row.

    ``rows`` are labels of the study's rows; none is all of them. ``epochs`` of ten steps; None is each method's own
    number of steps. Methods have the settings of their own files, or, where ``matched``, those of MARIO as far as they
    know them. ``quick`` is what the smaller form of the case has instead.
    """

    dataset: str
    domain: str
    shift: str
    setting: str
    seeds: int
    one_split: bool = False
    splits: int | None = None
    epochs: int | None
    checkpoints: int
    given: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    matched: bool = False
    quick: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        card = find_dataset(self.dataset).card
        several = len([domain for domain in card.domains if domain not in card.parts]) > 1
        domain = self.domain if several or self.domain != card.domains[0] else ""
        setting = self.setting if self.setting != card.setting else ""
        return "-".join(part for part in (card.name, domain, self.shift, setting) if part)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Split seed and seed of each run of a row: each seed with a split of its own; with ``one_split`` all with the
        first; with ``splits`` all of them on each of so many, which tells the spread of the one from that of the other.
        """
        if self.splits is not None:
            return tuple((split, seed) for seed in range(self.seeds) for split in range(self.splits))
        return tuple((0 if self.one_split else seed, seed) for seed in range(self.seeds))

    def smaller(self) -> "Case":
        """The quick form: every row, with fewer seeds and steps."""
        changed = {**self.quick, "given": {**self.given, **self.quick.get("given", {})}}
        return replace(self, **changed, quick={})


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """A job with the case and the row that it is of."""

    case: Case
    row: Row
    job: Job


@dataclass(frozen=True, kw_only=True)
class Study:
    """One table or figure: what is run, and what is shown of it.

    Every row is compared with ``reference``; what is said in words is said of ``subject``. An ``open`` study has a row
    for every method that is registered.
    """

    name: str
    title: str
    paper: str = ""
    show: tuple[str, ...] = ("table",)
    reference: str | None = "grace"
    subject: str | None = "mario"
    note: str = ""
    rows: tuple[Row, ...] = ()
    cases: tuple[Case, ...] = ()
    open: bool = False

    def jobs(
        self,
        *,
        seeds: int | None = None,
        datasets: Sequence[str] = (),
        methods: Sequence[str] = (),
        quick: bool = False,
    ) -> list[PlannedJob]:
        """Every run, case by case, seed by seed and row by row.

        Args:
            seeds: how many runs a row has, instead of the number of each case.
            datasets: datasets, or names of cases, to keep; all if there are none.
            methods: labels or methods of rows to keep, also where a case leaves them out; an open study makes a row
                of any other method that embeds what the case has, nodes or graphs.
            quick: the smaller form.

        Example:
            >>> from mario.lab.studies.read import find_study
            >>> study = find_study("table-concept")
            >>> jobs = study.jobs(datasets=["good-cbas"], methods=["erm", "mario"], seeds=2)
            >>> [(planned.job.label, planned.job.split_seed, planned.job.seed) for planned in jobs]
            [('erm', 0, 0), ('mario', 0, 0), ('erm', 1, 1), ('mario', 1, 1)]
        """
        found = []
        for case in self.kept_cases(datasets):
            chosen = case.smaller() if quick else case
            if seeds is not None:
                chosen = replace(chosen, seeds=seeds)
            rows = self.rows_of(chosen, methods)
            given = {row.label: _given(chosen, row) for row in rows}
            found += [
                PlannedJob(case=chosen, row=row, job=_job(chosen, row, given[row.label], *pair))
                for pair in chosen.pairs
                for row in rows
            ]
        return found

    def kept_cases(self, datasets: Sequence[str] = ()) -> list[Case]:
        """The cases of these datasets, or of these names; all of them if none is given."""
        return [case for case in self.cases if not datasets or {case.dataset, case.name} & set(datasets)]

    def rows_of(self, case: Case, methods: Sequence[str] = ()) -> list[Row]:
        """The rows of a case, or those of the study that ``methods`` name."""
        if not methods:
            return [row for row in self.rows if not case.rows or row.label in case.rows]
        kept = [row for row in self.rows if {row.label, row.method} & set(methods)]
        if self.open:
            there = {name for row in kept for name in (row.label, row.method)}
            level = find_dataset(case.dataset).card.level
            kept += [Row(label=name, method=name) for name in methods if name not in there and _embeds(name, level)]
        return kept


def _embeds(method: str, level: str) -> bool:
    try:
        return level in find(method).levels
    except MarioError:
        return False


def matched_settings(method: str, dataset: str, domain: str, shift: str, reference: str = "mario") -> dict[str, Any]:
    """The settings of ``reference`` as far as ``method`` has them, so that only what the method adds differs.

    A supervised method keeps its own: it has another loss and needs another learning rate.
    """
    cls = find(method)
    if cls.supervised:
        return file_settings(method, dataset, domain, shift)
    known = {f.name for f in cls.fields()} | set(Evaluation.__dataclass_fields__)
    return {k: v for k, v in file_settings(reference, dataset, domain, shift).items() if k in known}


def _given(case: Case, row: Row) -> dict[str, Any]:
    place = (row.method, case.dataset, case.domain, case.shift)
    matched = matched_settings(*place) if case.matched else {}
    base = {**matched, **case.given, "checkpoints": case.checkpoints}
    if case.epochs is None:
        return {**base, **row.given}
    steps = int(case.given.get("steps_per_epoch", STEPS))
    base = {key: value for key, value in base.items() if key not in ("epochs", "steps_per_epoch")}
    own = complete_settings(*place, base)
    schedule = {"epochs": case.epochs, "steps_per_epoch": steps}
    rescaled = {key: value for key, value in _rescaled(own, case.epochs, steps).items() if key not in case.given}
    return {**base, **schedule, **rescaled, **row.given}


def _rescaled(own: Mapping[str, Any], epochs: int, steps: int) -> dict[str, Any]:
    """What a method counts in steps or epochs, so that it takes the same share of this schedule as of its own."""
    share = epochs * steps / (own["epochs"] * own["steps_per_epoch"])

    def scaled(count: int) -> int:
        return max(1, round(count * share))

    changed: dict[str, Any] = {k: scaled(own[k]) for k in ("warmup", "centers_wait") if own.get(k)}
    if own["schedule"] == "steps":
        changed["milestones"] = tuple(scaled(milestone) for milestone in own["milestones"])
    if own["patience"]:
        changed["patience"] = max(1, round(own["patience"] * epochs / own["epochs"]))
    return changed


def _job(case: Case, row: Row, given: Mapping[str, Any], split_seed: int, seed: int) -> Job:
    return Job(
        dataset=case.dataset,
        method=row.method,
        domain=case.domain,
        shift=case.shift,
        setting=case.setting,
        split_seed=split_seed,
        seed=seed,
        given=given,
        label=row.label,
    )
