"""Which of the paper's claims hold on our runs, and the test that says so; ``claims.toml`` has them as data.

A claim is *held* if every difference it names has the claimed sign and p < 0.05 by Wilcoxon's signed-rank test over
runs of the same split and seed, Holm-corrected for the comparisons of the claim. It is *contradicted* if one has the
other sign with p < 0.05, *not run* if there is nothing to compare, and *not shown* otherwise: so also while runs are
lacking in a case of the claim whose data is at hand.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from statistics import fmean, median
from typing import Any

from mario.lab.statistics.paired import holm
from mario.lab.studies.plan import Collected, CollectedCase
from mario.lab.studies.read import find_study
from mario.lab.studies.study import PAPER, Case, Study
from mario.report.convergence import convergence
from mario.report.tables.pooled import Pooled, pool_cases, reachable
from mario.report.tables.rows import LongRow, long_rows

HELD, NOT_SHOWN, CONTRADICTED, NOT_RUN = "held", "not shown", "contradicted", "not run"
LEVEL = 0.05
OTHERS = "others"
GROUPS = ("group", "groups")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One difference that a claim names: ``label`` less ``against``, in one case or over all of them.

    ``less`` turns the claimed sign. ``paper`` is the same difference in the paper's figures, in points, averaged over
    the cases that it prints both of. ``groups`` counts the test groups with the claimed sign of the medians, and all;
    with ``every_group`` it has to be all of them. ``lacking`` are cases with fewer pairs than were asked for.
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
class Claim:
    """A claim, what the paper says and where, and the comparisons that test it on ``score``.

    ``possible`` counts the comparisons that have pairs enough to be significant if all had one sign; with none, the
    claim could not have been shown. ``quick``: the runs are of the quick form, and nothing follows from them.
    ``lacking`` are the cases of the paper's studies whose runs are not all done, ``absent`` those without data,
    ``rising`` has for each compared row the cases in which its validation scores still rose at the end, and ``apart``
    for each pair of a method and its host the settings that both have and that are not the same.
    """

    name: str
    claim: str
    said: str
    where: str
    score: str
    studies: tuple[str, ...]
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


def claims(collected: Iterable[Collected]) -> list[Claim]:
    """Every claim of ``claims.toml`` with what these studies say of it, in its order.

    Example:
        >>> from mario.report import claims
        >>> [(claim.name, claim.verdict) for claim in claims([])][:2]
        [('mario-above-grace', 'not run'), ('mario-above-grace-everywhere', 'not run')]
    """
    studies = list(collected)
    rows = {one.plan.study: long_rows(one) for one in studies}
    return [_claim(entry, [one for one in studies if one.plan.study in entry["studies"]], rows) for entry in _entries()]


@cache
def _entries() -> list[dict[str, Any]]:
    text = resources.files("mario.report").joinpath("claims.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["claim"]


def _claim(entry: Mapping[str, Any], studies: Sequence[Collected], rows: Mapping[str, Sequence[LongRow]]) -> Claim:
    score, less = entry.get("score", "ood_test"), entry.get("less", False)
    cases = _cases(studies, entry.get("datasets", ()))
    here = [row for one in studies for row in rows[one.plan.study] if row.case in cases]
    absent = {name for name, case in cases.items() if case.missing and not case.results}
    rising = {(case.case, label) for one in studies for case in convergence([one]) for label in case.rising}
    found, lacking = [], dict[str, None]()
    for label, against in _compared(entry["compare"], here):
        wanted = _asked(entry, label, against)
        whole = pool_cases(cases.values(), label, against, score=score)
        there = whole.pairs if whole else {}
        short = [
            name
            for name, case in wanted.items()
            if name not in absent and there.get(name, 0) < _pairs_asked(studies, case, label, against)
        ]
        lacking |= dict.fromkeys(short)
        parts = [[case] for case in cases.values()] if entry.get("each") == "case" else [list(cases.values())]
        for part in parts:
            pooled = pool_cases(part, label, against, score=score)
            among = pooled.cases if pooled else ()
            found.append(
                {
                    "label": label,
                    "against": against,
                    "case": part[0].name if len(parts) > 1 else None,
                    "pooled": pooled,
                    "less": less,
                    "paper": _paper(here, label, against, among, score),
                    "groups": _groups(part, label, against, less) if entry.get("each") in GROUPS else None,
                    "every_group": entry.get("each") == "group",
                    "lacking": tuple(name for name in short if len(parts) == 1 or name == part[0].name),
                }
            )
    tests = [one["pooled"].test if one["pooled"] else None for one in found]
    adjusted = holm([test.p_wilcoxon if test else None for test in tests])
    return Claim(
        **{key: entry[key] for key in ("name", "claim", "said", "where")},
        score=score,
        studies=tuple(entry["studies"]),
        comparisons=tuple(Comparison(**one, p_holm=p) for one, p in zip(found, adjusted, strict=True)),
        possible=reachable(tests, LEVEL),
        quick=any(one.plan.quick for one in studies),
        lacking=tuple(lacking),
        absent=tuple(sorted(absent)),
        rising={
            row: tuple(name for name in cases if (name, row) in rising)
            for row in dict.fromkeys(row for one in found for row in (one["label"], one["against"]))
            if any((name, row) in rising for name in cases)
        },
        apart={
            pair: names
            for pair in dict.fromkeys((one["label"], one["against"]) for one in found)
            if (names := _apart(cases.values(), *pair))
        },
    )


@cache
def _paper_study(name: str) -> Study:
    return find_study(name)


def _pairs_asked(studies: Iterable[Collected], case: Case, label: str, against: str) -> int:
    """How many pairs there are if all is done: of the runs that were asked for, else of those of the paper's study."""
    planned = [run for one in studies for known in one.plan.cases if known.name == case.name for run in known.runs]
    of_row = [{(run.split_seed, run.seed) for run in planned if run.label == row} for row in (label, against)]
    return len(of_row[0] & of_row[1]) if all(of_row) else len(case.pairs)


def _asked(entry: Mapping[str, Any], label: str, against: str) -> dict[str, Case]:
    """The cases of the paper's studies that have both rows."""
    return {
        case.name: case
        for name in entry["studies"]
        if name in PAPER
        for study in [_paper_study(name)]
        for case in study.kept_cases(entry.get("datasets", ()))
        if {label, against} <= {row.label for row in study.rows_of(case)}
    }


def _cases(studies: Iterable[Collected], datasets: Sequence[str]) -> dict[str, CollectedCase]:
    """The cases of these studies by name; one that several have holds the runs of all."""
    found: dict[str, CollectedCase] = {}
    for case in (case for one in studies for case in one.cases if not datasets or case.dataset in datasets):
        if case.name not in found:
            found[case.name] = case
            continue
        known = {run["label"] for run in found[case.name].results}
        more = [run for run in case.results if run["label"] not in known]
        first = found[case.name]
        found[case.name] = CollectedCase(
            **{
                key: getattr(first, key)
                for key in ("name", "dataset", "domain", "shift", "setting", "asked", "missing")
            },
            results=[*first.results, *more],
        )
    return found


def _compared(pairs: Iterable[Sequence[str]], rows: Sequence[LongRow]) -> Iterator[tuple[str, str]]:
    """The labels to compare, with a star and ``others`` made concrete by the rows that there are."""
    labels = list(dict.fromkeys(row.label for row in rows))
    rivals = [row.label for row in rows if not row.supervised and not row.control and "+mario" not in row.label]
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


def _paper(rows: Sequence[LongRow], label: str, against: str, cases: Sequence[str], score: str) -> float | None:
    by_place = {(row.case, row.label): row for row in rows}
    differences = []
    for case in cases:
        ours, theirs = (_printed(by_place.get((case, name)), score) for name in (label, against))
        if ours is not None and theirs is not None:
            differences.append(ours - theirs)
    return fmean(differences) if differences else None


def _printed(row: LongRow | None, score: str) -> float | None:
    if row is None:
        return None
    in_, out = (figure.mean if figure else None for figure in (row.paper_id, row.paper_ood))
    if score == "gap":
        return None if in_ is None or out is None else in_ - out
    return in_ if score == "id_test" else out


def _apart(cases: Iterable[CollectedCase], label: str, against: str) -> tuple[str, ...]:
    """What else than the recipe differs between a method and its host: settings of both with different values."""
    names = set()
    for case in cases:
        first, second = (next((run for run in case.results if run["label"] == row), None) for row in (label, against))
        if first and second and first["method"] == _over(second["method"]):
            one, other = (run.get("settings") or {} for run in (first, second))
            names |= {name for name in one.keys() & other.keys() if one[name] != other[name]}
    return tuple(sorted(names))


def _over(host: str) -> str:
    """The method that is the recipe over ``host``."""
    return "mario" if host == "grace" else f"{host}+mario"


def _groups(cases: Sequence[CollectedCase], label: str, against: str, less: bool) -> tuple[int, int] | None:
    scores: dict[str, dict[str, list[float]]] = {}
    for run in (run for case in cases for run in case.results if run["label"] in (label, against)):
        for name, score in (run["scores"].get("groups") or {}).items():
            scores.setdefault(name, {}).setdefault(run["label"], []).append(score)
    both = [(median(of[label]), median(of[against])) for of in scores.values() if label in of and against in of]
    return (sum((a < b) if less else (a > b) for a, b in both), len(both)) if both else None
