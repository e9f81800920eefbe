"""What a study came to, entry by entry: one per case and row, with everything that tables and claims need of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.frame import SCORES
from mario.lab.runs.job import Job
from mario.lab.statistics.paired import (
    BySplit,
    NothingToPairError,
    Paired,
    Summary,
    holm,
    in_sds,
    over_splits,
    pair,
    paired,
    summarize,
)
from mario.lab.studies import paper
from mario.lab.studies.collect import Collected, CollectedCase
from mario.lab.studies.paper import Figure
from mario.lab.studies.plan import Plan

if TYPE_CHECKING:
    from pandas import DataFrame, Series

CONTROLS = ("raw-features", "hops", "random-init")
LEVEL = 0.05
"""A difference is significant below this p."""

_PRINTED = {"id_test": "id", "ood_test": "ood"}
"""The scores that the paper prints, by its columns."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """One score of an entry: our runs (fractions), the means of the splits, and the paper's figure (percent).

    ``place`` is 1 for the best and 2 for the second of all entries of the case with the same encoder.
    """

    ours: Summary | None = None
    by_split: BySplit | None = None
    paper: Figure | None = None
    place: int | None = None

    @property
    def off(self) -> float | None:
        """Our difference from the paper, in points."""
        if self.ours is None or self.paper is None or self.paper.mean is None:
            return None
        return 100 * self.ours.mean - self.paper.mean

    @property
    def off_sd(self) -> float | None:
        """Our difference from the paper, in its standard deviations."""
        if self.ours is None or self.paper is None or self.paper.mean is None:
            return None
        return in_sds(100 * self.ours.mean, self.paper.mean, self.paper.sd)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of a study in one case.

    Attributes:
        asked: the number of runs in the plan; ``n`` are done.
        scores: by column of the frame, ``ood_test`` for example; ``groups`` by test group.
        chosen_on: the rule that chose the checkpoint of ``ood_test``.
        subject: whether the study is about this row, or this row is its subject on another encoder or host.
        against: the row that ``test`` compares the OOD scores with.
        p_holm: p of that test, corrected for all OOD tests of the study.
        why: why runs are missing; ``missing`` why the data is.
    """

    study: str
    case: Case
    label: str
    method: str
    encoder: str
    metric: str
    supervised: bool
    asked: int
    n: int = 0
    scores: Mapping[str, Score] = field(default_factory=dict)
    groups: Mapping[str, Score] = field(default_factory=dict)
    chosen_on: str = "ood_val"
    subject: bool = False
    against: str | None = None
    test: Paired | None = None
    p_holm: float | None = None
    why: str = ""
    missing: str | None = None

    @property
    def id(self) -> Score:
        return self.scores["id_test"]

    @property
    def ood(self) -> Score:
        return self.scores["ood_test"]

    @property
    def control(self) -> bool:
        return self.method in CONTROLS

    @property
    def compared(self) -> bool:
        """Whether it was trained without labels."""
        return not self.control and not self.supervised


def entries(study: Collected) -> list[Entry]:
    """An entry for each case and each row in its plan, in the order of the plan, with or without runs.

    A row is compared with the study's reference: with the one of the same encoder where there are several encoders,
    and a method with the recipe (``costa+mario``) with its host.

    Example:
        >>> from pathlib import Path
        >>> from mario.lab.studies.collect import collect
        >>> from mario.lab.studies.plan import make_plan
        >>> from mario.lab.studies.read import find_study
        >>> plan = make_plan(find_study("other-methods"), datasets=["good-cbas"], seeds=2)
        >>> for entry in entries(collect(plan, Path("no runs yet"))):
        ...     print(entry.label, entry.n, entry.asked, entry.ood.paper, entry.against)
        grace 0 2 88.64 ± 0.67 None
        grace+mario 0 2 91.28 ± 1.10 grace
        costa 0 2 89.29 ± 3.11 None
        costa+mario 0 2 94.36 ± 1.51 costa
    """
    found = [entry for case in study.cases for entry in _of_case(study.plan, case)]
    adjusted = holm([entry.test.p_wilcoxon if entry.test else None for entry in found])
    return [replace(entry, p_holm=p) for entry, p in zip(found, adjusted, strict=True)]


def unplanned(plan: Plan, case: CollectedCase, label: str) -> Entry:
    """The entry of a row that the case does not have: the paper's figures only."""
    job = next(job for planned in plan.cases for job in planned.jobs if job.label == label)
    return _entry(plan, case, [job], case.frame[:0], asked=0)


def summary_of(values: "Series") -> Summary | None:
    """Mean and spread of the values that are not missing; None if all are."""
    known = values.dropna()
    return summarize(known.tolist()) if len(known) else None


def _of_case(plan: Plan, case: CollectedCase) -> list[Entry]:
    jobs: dict[str, list[Job]] = {}
    for job in case.planned.jobs:
        jobs.setdefault(job.label, []).append(job)
    frame = case.frame
    runs = {label: frame[frame["label"] == label] for label in jobs}
    found = [_entry(plan, case, of_row, runs[label], asked=len(of_row)) for label, of_row in jobs.items()]
    found = [_tested(entry, reference_of(entry, found, plan.reference), runs) for entry in found]
    return _placed(_marked(found, plan.subject))


def _entry(plan: Plan, case: CollectedCase, jobs: Sequence[Job], runs: "DataFrame", *, asked: int) -> Entry:
    job, where = jobs[0], case.case
    encoder = job.spec.settings.get("encoder") or "gcn"
    metrics = case.frame["metric"].dropna()
    rules = runs["ood_test_chosen_on"].dropna()
    groups = dict.fromkeys(name for found in runs["groups"] for name in found)
    return Entry(
        study=plan.study,
        case=where,
        label=job.label,
        method=job.spec.method,
        encoder=encoder,
        metric=metrics.iloc[0] if len(metrics) else where.card.metric,
        supervised=_supervised(job.spec.method),
        asked=asked,
        n=len(runs),
        scores={name: _score(runs, name, _printed(plan, where, job, encoder, name)) for name in SCORES},
        groups={
            name: Score(ours=summarize([found[name] for found in runs["groups"] if name in found])) for name in groups
        },
        chosen_on=rules.iloc[0] if len(rules) else "ood_val",
        why=_why(case, job.label, asked - len(runs)),
        missing=case.missing,
    )


def _score(runs: "DataFrame", name: str, printed: Figure | None) -> Score:
    known = runs.dropna(subset=[name])
    by_split = over_splits(known[name].tolist(), known["split_seed"].tolist()) if len(known) else None
    return Score(ours=summary_of(runs[name]), by_split=by_split, paper=printed)


def _printed(plan: Plan, case: Case, job: Job, encoder: str, score: str) -> Figure | None:
    """The paper's figure for a row, from the table of the plan if that has it."""
    if job.paper is None or score not in _PRINTED:
        return None
    return paper.figure(case, job.paper, _PRINTED[score], encoder=encoder, table=plan.paper)


def _why(case: CollectedCase, label: str, lacking: int) -> str:
    if lacking <= 0:
        return ""
    if case.missing:
        return case.missing
    failed = [run.reason for run in case.failed if run.job.label == label]
    said = []
    if failed:
        said.append(f"{len(failed)} failed ({'; '.join(dict.fromkeys(map(_short, failed)))})")
    if lacking > len(failed):
        said.append(f"{lacking - len(failed)} not done")
    return ", ".join(said)


def _short(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= 200 else line[:199] + "…"


def reference_of(entry: Entry, others: Sequence[Entry], reference: str | None) -> str | None:
    """The row of the same case that ``entry`` is compared with, or None."""
    labels = {other.label for other in others}
    host, _, laid_over = entry.label.rpartition("+")
    if laid_over in ("mario", "steady") and host in labels:
        return host
    hosts = {label for label in labels if f"{label}+mario" in labels}
    named = next((other for other in others if other.label == reference), None)
    if named is None or entry.label == reference or {entry.label, reference} <= hosts:
        return None
    alike = [other for other in others if other.method == named.method and _variant(other) == _variant(named)]
    if entry in alike:
        return None
    # Raw features have no encoder: they are compared with the reference wherever there is only one of it.
    return next((other.label for other in alike if other.encoder == entry.encoder or len(alike) == 1), None)


def _variant(entry: Entry) -> str:
    """What a label adds to the names of the method and of the encoder: nothing, or the name of a variant."""
    return entry.label.removesuffix(f" ({entry.encoder})").removeprefix(entry.method)


def _tested(entry: Entry, against: str | None, runs: Mapping[str, "DataFrame"]) -> Entry:
    if against is None:
        return entry
    try:
        pairs = pair(runs[entry.label], runs[against], "ood_test")
    except NothingToPairError:
        return replace(entry, against=against)
    return replace(entry, against=against, test=paired(pairs.a, pairs.b, splits=pairs.splits))


def _marked(found: Sequence[Entry], subject: str | None) -> list[Entry]:
    """The entries with those marked that the study is about.

    If the subject is the recipe over its reference, the recipe over every other reference in the table is marked too.
    """
    by_label = {entry.label: entry for entry in found}

    def over_host(entry: Entry) -> bool:
        host = by_label.get(entry.against or "")
        return host is not None and entry.method == over(host.method) and _alike(entry, host)

    several = subject in by_label and over_host(by_label[subject])
    return [replace(entry, subject=entry.label == subject or (several and over_host(entry))) for entry in found]


def over(host: str) -> str:
    """The method that is the recipe over ``host``.

    Example:
        >>> over("grace"), over("costa")
        ('mario', 'costa+mario')
    """
    return "mario" if host == "grace" else f"{host}+mario"


def _alike(entry: Entry, host: Entry) -> bool:
    """Whether two rows have the same variant: a row may be called by its method or by its host, as grace+mario."""
    return _variant(host) in (_variant(entry), entry.label.removeprefix(f"{host.label}+mario"))


def _placed(found: Sequence[Entry]) -> list[Entry]:
    """The entries with their places among those of the same encoder, controls and supervised rows included."""
    placed = []
    for entry in found:
        peers = [other for other in found if other.encoder == entry.encoder]
        most = max((peer.n for peer in peers), default=0)
        peers = [peer for peer in peers if peer.n == most]  # another split moves a score more than another method does
        scores = {
            name: replace(score, place=best_two({p.label: p.scores[name].ours for p in peers}).get(entry.label))
            for name, score in entry.scores.items()
        }
        groups = {
            name: replace(
                score, place=best_two({p.label: p.groups.get(name, Score()).ours for p in peers}).get(entry.label)
            )
            for name, score in entry.groups.items()
        }
        placed.append(replace(entry, scores=scores, groups=groups))
    return placed


def best_two(summaries: Mapping[str, Summary | None]) -> dict[str, int]:
    """Which labels are best (1) and second (2), by the mean as it is printed; equal means share a place.

    Example:
        >>> best_two({"a": summarize([0.9]), "b": summarize([0.80001]), "c": summarize([0.8]), "d": None})
        {'a': 1, 'b': 2, 'c': 2}
        >>> best_two({"a": summarize([0.9])})
        {}
    """
    printed = {label: round(100 * s.mean, 2) for label, s in summaries.items() if s is not None}
    if len(printed) < 2:
        return {}
    top = sorted(set(printed.values()), reverse=True)[:2]
    return {label: top.index(value) + 1 for label, value in printed.items() if value in top}


def _supervised(method: str) -> bool:
    from mario.methods import find

    try:
        return bool(find(method).supervised)
    except MarioError:  # a method of a package that is not installed here
        return False
