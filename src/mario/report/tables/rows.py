"""The long form of a study: one row for each case and label, with everything that is known about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mario.datasets import find as find_dataset
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
)
from mario.lab.studies import paper
from mario.lab.studies.paper import Figure
from mario.lab.studies.plan import Collected, CollectedCase, Plan, PlannedCase, PlannedRun
from mario.report.tables.one_case import CONTROLS, Result, gap_of, summary_of


@dataclass(frozen=True, kw_only=True)
class LongRow:
    """One row of the study in one case. Summaries are fractions; the paper's figures, and how far off, percent.

    ``id`` and ``ood`` sum up the runs, ``id_by_split`` and ``ood_by_split`` the means of the splits. ``off_id`` and
    ``off_ood`` are ours less the paper's in points, ``off_id_sd`` and ``off_ood_sd`` in units of its sd.
    ``test`` compares the OOD scores with those of the row ``against``; ``p_holm`` is corrected for all OOD tests of the
    study. ``id_place``, ``ood_place`` and ``group_places`` are 1 for the best and 2 for the second among the trained
    methods without labels that have most runs. ``why`` says why runs are missing, and is empty if none is.
    """

    study: str
    case: str
    dataset: str
    domain: str
    shift: str
    setting: str
    metric: str
    label: str
    method: str
    encoder: str
    supervised: bool
    asked: int
    n: int
    id: Summary | None = None
    id_by_split: BySplit | None = None
    ood: Summary | None = None
    ood_by_split: BySplit | None = None
    ood_by_id_val: Summary | None = None
    gap: Summary | None = None
    groups: Mapping[str, Summary] = field(default_factory=dict)
    chosen_on: Mapping[str, str] = field(default_factory=dict)
    paper_id: Figure | None = None
    paper_ood: Figure | None = None
    against: str | None = None
    test: Paired | None = None
    p_holm: float | None = None
    id_place: int | None = None
    ood_place: int | None = None
    group_places: Mapping[str, int] = field(default_factory=dict)
    why: str = ""

    @property
    def control(self) -> bool:
        return self.method in CONTROLS

    @property
    def off_id(self) -> float | None:
        return _off(self.id, self.paper_id)

    @property
    def off_ood(self) -> float | None:
        return _off(self.ood, self.paper_ood)

    @property
    def off_id_sd(self) -> float | None:
        return _off_sd(self.id, self.paper_id)

    @property
    def off_ood_sd(self) -> float | None:
        return _off_sd(self.ood, self.paper_ood)


def long_rows(collected: Collected) -> list[LongRow]:
    """A row for each case and each label that the case asks for, in the order of the plan, runs or no runs.

    A row is compared with the study's reference: with that of the same encoder where there are several encoders, and a
    host that has the recipe over it (``costa+mario``) with the host.

    Example:
        >>> from pathlib import Path
        >>> from mario.lab.studies.plan import collect, make_plan
        >>> from mario.lab.studies.read import find_study
        >>> from mario.report import long_rows
        >>> plan = make_plan(find_study("other-methods"), datasets=["good-cbas"], seeds=2)
        >>> for row in long_rows(collect(plan, Path("no runs yet"))):
        ...     print(row.label, row.n, row.asked, row.paper_ood, row.against)
        grace 0 2 88.64 ± 0.67 None
        grace+mario 0 2 91.28 ± 1.10 grace
        costa 0 2 89.29 ± 3.11 None
        costa+mario 0 2 94.36 ± 1.51 costa
    """
    rows = [row for case in collected.cases for row in _case_rows(collected, case)]
    adjusted = holm([row.test.p_wilcoxon if row.test else None for row in rows])
    return [replace(row, p_holm=p) for row, p in zip(rows, adjusted, strict=True)]


def _case_rows(collected: Collected, case: CollectedCase) -> list[LongRow]:
    planned: dict[str, list[PlannedRun]] = {}
    for run in next(c.runs for c in collected.plan.cases if c.name == case.name):
        planned.setdefault(run.label, []).append(run)
    results = {label: [r for r in case.results if r["label"] == label] for label in planned}
    rows = [_row(collected, case, label, runs, results[label]) for label, runs in planned.items()]
    rows = [_tested(row, reference_of(row, rows, collected.plan.reference), results) for row in rows]
    return _placed(rows)


def _row(
    collected: Collected, case: CollectedCase, label: str, planned: Sequence[PlannedRun], results: Sequence[Result]
) -> LongRow:
    job = planned[0].job
    encoder = results[0].get("encoder") if results else job.given.get("encoder")
    names = dict.fromkeys(name for run in results for name in run["scores"].get("groups") or ())
    return LongRow(
        study=collected.plan.study,
        case=case.name,
        dataset=case.dataset,
        domain=case.domain,
        shift=case.shift,
        setting=case.setting,
        metric=next((r["metric"] for r in case.results if r.get("metric")), find_dataset(case.dataset).card.metric),
        label=label,
        method=job.method,
        encoder=encoder or "gcn",
        supervised=_supervised(job.method),
        asked=len(planned),
        n=len(results),
        id=summary_of(_score(run, "id_test") for run in results),
        id_by_split=_over_splits(results, "id_test"),
        ood=summary_of(_score(run, "ood_test") for run in results),
        ood_by_split=_over_splits(results, "ood_test"),
        ood_by_id_val=summary_of(_score(run, "ood_test_by_id_val") for run in results),
        gap=summary_of(gap_of(run) for run in results),
        groups={
            name: summary
            for name in names
            if (summary := summary_of((run["scores"].get("groups") or {}).get(name) for run in results))
        },
        chosen_on=dict(results[0]["scores"].get("chosen_on") or {}) if results else {},
        paper_id=printed(collected.plan, case, planned[0], encoder, "id"),
        paper_ood=printed(collected.plan, case, planned[0], encoder, "ood"),
        why=_why(case, label, len(planned) - len(results)),
    )


def printed(
    plan: Plan, case: PlannedCase | CollectedCase, run: PlannedRun, encoder: str | None, column: str
) -> Figure | None:
    """The paper's figure for the row of ``run`` in ``case``, of the plan's own table where that has it."""
    if run.paper is None:
        return None
    return paper.figure(
        dataset=case.dataset,
        domain=case.domain,
        shift=case.shift,
        setting=case.setting,
        method=run.paper,
        encoder=encoder or "gcn",
        column=column,
        table=plan.paper,
    )


def _why(case: CollectedCase, label: str, lacking: int) -> str:
    if lacking <= 0:
        return ""
    if case.missing:
        return case.missing
    failed = [reason for name, _, _, reason in case.failed if name == label]
    said = []
    if failed:
        reasons = "; ".join(dict.fromkeys(_short(reason) for reason in failed))
        said.append(f"{len(failed)} failed ({reasons})")
    if lacking > len(failed):
        said.append(f"{lacking - len(failed)} not done")
    return ", ".join(said)


def _short(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= 200 else line[:199] + "…"


def reference_of(row: LongRow, rows: Sequence[LongRow], reference: str | None) -> str | None:
    """The label of the row of the same case that ``row`` is compared with, or None."""
    labels = {other.label for other in rows}
    host, recipe, _ = row.label.partition("+mario")
    if recipe and host in labels:
        return host
    hosts = {label for label in labels if f"{label}+mario" in labels}
    named = next((other for other in rows if other.label == reference), None)
    if named is None or row.label == reference or {row.label, reference} <= hosts:
        return None
    alike = [other for other in rows if other.method == named.method and _variant(other) == _variant(named)]
    if row in alike:
        return None
    # Raw features have no encoder: they are set against the reference wherever there is only one of it.
    return next((other.label for other in alike if other.encoder == row.encoder or len(alike) == 1), None)


def _variant(row: LongRow) -> str:
    """What a label adds to the names of the method and of the encoder: nothing, or the name of a variant."""
    return row.label.removesuffix(f" ({row.encoder})").removeprefix(row.method)


def _tested(row: LongRow, against: str | None, results: Mapping[str, Sequence[Result]]) -> LongRow:
    if against is None:
        return row
    try:
        pairs = pair(results[row.label], results[against], "ood_test")
    except NothingToPairError:
        return replace(row, against=against)
    return replace(row, against=against, test=paired(pairs.a, pairs.b, splits=pairs.splits))


def _placed(rows: Sequence[LongRow]) -> list[LongRow]:
    """The rows with their places among those of the same encoder that are trained without labels."""
    places: dict[str, dict[str, Mapping[str, int]]] = {}
    for row in rows:
        if row.encoder not in places:
            peers = [r for r in rows if r.encoder == row.encoder and not r.supervised and not r.control]
            most = max((r.n for r in peers), default=0)
            peers = [r for r in peers if r.n == most]  # another split moves a score more than another method does
            names = dict.fromkeys(name for r in peers for name in r.groups)
            places[row.encoder] = {
                "id": best_two({r.label: r.id for r in peers}),
                "ood": best_two({r.label: r.ood for r in peers}),
                **{f"group {name}": best_two({r.label: r.groups.get(name) for r in peers}) for name in names},
            }
    return [
        replace(
            row,
            id_place=places[row.encoder]["id"].get(row.label),
            ood_place=places[row.encoder]["ood"].get(row.label),
            group_places={
                name: place
                for name in row.groups
                if (place := places[row.encoder].get(f"group {name}", {}).get(row.label))
            },
        )
        for row in rows
    ]


def best_two(summaries: Mapping[str, Summary | None]) -> dict[str, int]:
    """Which labels are best (1) and second (2), by the mean as it is printed; what prints alike shares a place.

    Example:
        >>> from mario.lab.statistics.paired import summarize
        >>> from mario.report.tables.rows import best_two
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
    from mario.errors import MarioError
    from mario.methods import find

    try:
        return bool(find(method).supervised)
    except MarioError:  # a method of a package that is not installed here
        return False


def _score(run: Result, name: str) -> float | None:
    return run["scores"].get(name)


def _over_splits(results: Sequence[Result], name: str) -> BySplit | None:
    known = [(score, run.get("split_seed")) for run in results if (score := _score(run, name)) is not None]
    return over_splits([score for score, _ in known], [split for _, split in known]) if known else None


def _off(ours: Summary | None, theirs: Figure | None) -> float | None:
    return None if ours is None or theirs is None or theirs.mean is None else 100 * ours.mean - theirs.mean


def _off_sd(ours: Summary | None, theirs: Figure | None) -> float | None:
    if ours is None or theirs is None or theirs.mean is None:
        return None
    return in_sds(100 * ours.mean, theirs.mean, theirs.sd)
