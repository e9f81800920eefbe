"""Which of the paper's claims hold on our runs, and by which test; ``claims.toml`` lists them.

A claim is *held* if every difference it names has the claimed sign and p < 0.05 by Wilcoxon's signed-rank test over
runs of the same split and seed, Holm-corrected for the comparisons of the claim. It is *contradicted* if one has the
other sign with p < 0.05, *not run* if there is nothing to compare, and *not shown* otherwise. A claim is also not shown
while runs are missing in one of its cases that has data.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Literal

from mario.lab.statistics.paired import holm
from mario.lab.studies.collect import Collected, CollectedCase, labeled_frame
from mario.lab.studies.read import find_study
from mario.lab.studies.study import PAPER, StudyCase
from mario.report.convergence import convergence
from mario.report.tables.entries import LEVEL, Entry, entries, over
from mario.report.tables.pooled import Pooled, once, pool, reachable

if TYPE_CHECKING:
    from pandas import DataFrame

HELD, NOT_SHOWN, CONTRADICTED, NOT_RUN = VERDICTS = ("held", "not shown", "contradicted", "not run")
OTHERS = "others"


@dataclass(frozen=True, kw_only=True)
class _Listed:
    """An entry of ``claims.toml``, whose head describes the keys."""

    name: str
    claim: str
    said: str
    where: str
    studies: tuple[str, ...]
    compare: tuple[tuple[str, str], ...]
    datasets: tuple[str, ...] = ()
    score: str = "ood_test"
    less: bool = False
    each: Literal["", "case", "group", "groups"] = ""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One difference that a claim names: ``label`` minus ``against``, in one case or over all of them.

    ``less`` reverses the claimed sign. ``paper`` is the same difference in the paper's figures, in points, averaged
    over the cases for which it prints both. ``groups`` counts the test groups whose medians have the claimed sign, and
    all of them; ``every_group`` requires all. ``lacking`` are cases with fewer pairs than planned.
    """

    label: str
    against: str
    case: str | None
    pooled: Pooled | None
    p_holm: float | None
    less: bool = False
    paper: float | None = None
    groups: tuple[int, int] | None = None
    every_group: bool = False
    lacking: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        if self.pooled is None:
            return NOT_RUN
        shown = self.pooled.test.shown(self.p_holm, LEVEL)
        if not shown or self.lacking:
            return NOT_SHOWN
        if (shown < 0) != self.less:
            return CONTRADICTED
        somewhere_not = self.every_group and self.groups is not None and self.groups[0] < self.groups[1]
        return NOT_SHOWN if somewhere_not else HELD


@dataclass(frozen=True, kw_only=True)
class Claim(_Listed):
    """A claim, what the paper says and where, and the comparisons that test it on ``score``.

    ``possible`` counts the comparisons with enough pairs to be significant if all had one sign; if it is 0, the claim
    could not be shown. ``quick``: the runs are of the quick form, and nothing follows from them. ``lacking`` are the
    cases of the paper's studies whose runs are not all done, ``absent`` those without data. ``rising`` has for each
    compared row the cases in which its validation scores still rose at the end, and ``apart`` for each pair of a method
    and its host the settings in which they differ.
    """

    comparisons: tuple[Comparison, ...]
    possible: int
    quick: bool
    lacking: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    rising: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    apart: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        verdicts = {one.verdict for one in self.comparisons if one.case not in self.absent}
        if verdicts <= {NOT_RUN}:
            return NOT_RUN
        if self.quick:
            return NOT_SHOWN
        if CONTRADICTED in verdicts:
            return CONTRADICTED
        return HELD if verdicts == {HELD} and not self.lacking else NOT_SHOWN


def claims(collected: Iterable[Collected], *, whole: bool = True) -> list[Claim]:
    """Every claim of ``claims.toml``, in order, judged by these studies.

    Without ``whole``, a claim can hold before all runs of the paper's studies are done.

    Example:
        >>> [(claim.name, claim.verdict) for claim in claims([])][:2]
        [('mario-above-grace', 'not run'), ('mario-above-grace-everywhere', 'not run')]
    """
    studies = list(collected)
    of_study = {one.plan.study: entries(one) for one in studies}
    found = {listed: [one for one in studies if one.plan.study in listed.studies] for listed in _listed()}
    return [_claim(listed, of_claim, of_study, whole) for listed, of_claim in found.items()]


@cache
def _listed() -> tuple[_Listed, ...]:
    text = resources.files("mario.report").joinpath("claims.toml").read_text(encoding="utf-8")
    return tuple(
        _Listed(**{key: _tuples(value) for key, value in found.items()}) for found in tomllib.loads(text)["claim"]
    )


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _claim(
    listed: _Listed, studies: Sequence[Collected], of_study: Mapping[str, Sequence[Entry]], whole: bool
) -> Claim:
    cases = _cases(studies, listed.datasets)
    runs = once(labeled_frame(run for of_case in cases.values() for case in of_case for run in case.runs))
    here = [entry for one in studies for entry in of_study[one.plan.study] if entry.case.name in cases]
    absent = {name for name, of_case in cases.items() if of_case[0].missing and not any(case.runs for case in of_case)}
    rising = {(case.case, label) for one in studies for case in convergence(one.frame) for label in case.rising}
    found, lacking = [], dict[str, None]()
    for label, against in _compared(listed.compare, here):
        everywhere = pool(runs, label, against, score=listed.score)
        there = everywhere.pairs if everywhere else {}
        short = [
            name
            for name, case in (_asked(listed, label, against) if whole else {}).items()
            if name not in absent and there.get(name, 0) < _pairs_asked(studies, case, label, against)
        ]
        lacking |= dict.fromkeys(short)
        parts = [[name] for name in cases] if listed.each == "case" else [list(cases)]
        for part in parts:
            of_part = runs[runs["case"].isin(part)]
            pooled = pool(of_part, label, against, score=listed.score)
            grouped = listed.each in ("group", "groups")
            found.append(
                Comparison(
                    label=label,
                    against=against,
                    case=part[0] if len(parts) > 1 else None,
                    pooled=pooled,
                    p_holm=None,
                    less=listed.less,
                    paper=_paper(here, label, against, pooled.cases if pooled else (), listed.score),
                    groups=_groups(of_part, label, against, listed.less) if grouped else None,
                    every_group=listed.each == "group",
                    lacking=tuple(name for name in short if len(parts) == 1 or name == part[0]),
                )
            )
    tests = [one.pooled.test if one.pooled else None for one in found]
    adjusted = holm([test.p_wilcoxon if test else None for test in tests])
    rows = dict.fromkeys(row for one in found for row in (one.label, one.against))
    pairs = dict.fromkeys((one.label, one.against) for one in found)
    still = {row: tuple(name for name in cases if (name, row) in rising) for row in rows}
    apart = {pair: _apart(runs, *pair) for pair in pairs}
    return Claim(
        **vars(listed),
        comparisons=tuple(replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True)),
        possible=reachable(tests, LEVEL),
        quick=any(one.plan.quick for one in studies),
        lacking=tuple(lacking),
        absent=tuple(sorted(absent)),
        rising={row: names for row, names in still.items() if names},
        apart={pair: names for pair, names in apart.items() if names},
    )


_paper_study = cache(find_study)


def _pairs_asked(studies: Iterable[Collected], case: StudyCase, label: str, against: str) -> int:
    """How many pairs there are once all is done: in the plans, or else in the paper's study."""
    planned = [job for one in studies for known in one.plan.cases if known.name == case.name for job in known.jobs]
    of_row = [{(job.spec.split_seed, job.spec.seed) for job in planned if job.label == row} for row in (label, against)]
    return len(of_row[0] & of_row[1]) if all(of_row) else len(case.schedule.pairs)


def _asked(listed: _Listed, label: str, against: str) -> dict[str, StudyCase]:
    """The cases of the paper's studies that have both rows."""
    return {
        case.name: case
        for name in listed.studies
        if name in PAPER
        for study in [_paper_study(name)]
        for case in study.kept_cases(listed.datasets)
        if {label, against} <= {row.label for row in study.rows_of(case)}
    }


def _cases(studies: Iterable[Collected], datasets: Sequence[str]) -> dict[str, list[CollectedCase]]:
    """The cases of these studies by name; several studies may have one."""
    found: dict[str, list[CollectedCase]] = {}
    for case in (case for one in studies for case in one.cases if not datasets or case.case.dataset in datasets):
        found.setdefault(case.name, []).append(case)
    return found


def _compared(pairs: Iterable[Sequence[str]], found: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """The rows to compare, with a star and ``others`` made concrete by the rows that there are."""
    labels = list(dict.fromkeys(entry.label for entry in found))
    rivals = [entry.label for entry in found if entry.compared and "+mario" not in entry.label]
    for label, against in pairs:
        if against == OTHERS:
            yield from ((label, rival) for rival in dict.fromkeys(rivals) if rival != label)
        elif "*" in label:
            before, after = label.split("*")
            for known in labels:
                middle = known[len(before) : len(known) - len(after)]
                other = against.replace("*", middle)
                if middle and known == before + middle + after and other in labels:
                    yield known, other
        else:
            yield label, against


def _paper(found: Sequence[Entry], label: str, against: str, cases: Sequence[str], score: str) -> float | None:
    by_place = {(entry.case.name, entry.label): entry for entry in found}
    differences = []
    for case in cases:
        ours, theirs = (_printed(by_place.get((case, name)), score) for name in (label, against))
        if ours is not None and theirs is not None:
            differences.append(ours - theirs)
    return fmean(differences) if differences else None


def _printed(entry: Entry | None, score: str) -> float | None:
    if entry is None:
        return None
    in_, out = (figure.mean if figure else None for figure in (entry.id.paper, entry.ood.paper))
    if score == "gap":
        return None if in_ is None or out is None else in_ - out
    return in_ if score == "id_test" else out


def _apart(runs: "DataFrame", label: str, against: str) -> tuple[str, ...]:
    """What differs between a method and its host besides the recipe: settings of both with different values."""
    names = set()
    for _, here in runs.groupby("case", sort=False):
        first, second = (here[here["label"] == row] for row in (label, against))
        if len(first) and len(second) and first["method"].iloc[0] == over(second["method"].iloc[0]):
            one, other = first["settings"].iloc[0], second["settings"].iloc[0]
            names |= {name for name in one.keys() & other.keys() if one[name] != other[name]}
    return tuple(sorted(names))


def _groups(runs: "DataFrame", label: str, against: str, less: bool) -> tuple[int, int] | None:
    scores: dict[str, dict[str, list[float]]] = {}
    for row, groups in zip(runs["label"], runs["groups"], strict=True):
        for name, score in groups.items():
            scores.setdefault(name, {}).setdefault(row, []).append(score)
    both = [(median(of[label]), median(of[against])) for of in scores.values() if label in of and against in of]
    return (sum((a < b) if less else (a > b) for a, b in both), len(both)) if both else None
