"""Which of the paper's claims hold on our runs, and the test that says so; ``claims.toml`` has them as data.

A claim is *held* if every difference it names has the claimed sign and p < 0.05 by Wilcoxon's signed-rank test over
runs of the same split and seed, Holm-corrected for the comparisons of the claim. It is *contradicted* if one has the
other sign with p < 0.05, *not run* if there is nothing to compare, and *not shown* otherwise.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import fmean, median
from typing import Any

from mario.experiments.plan import Collected, CollectedCase
from mario.experiments.statistics import holm
from mario.report.tables.pooled import Pooled, pool_cases, reachable
from mario.report.tables.rows import LongRow, long_rows

HELD, NOT_SHOWN, CONTRADICTED, NOT_RUN = "held", "not shown", "contradicted", "not run"
LEVEL = 0.05
OTHERS = "others"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One difference that a claim names: ``label`` less ``against``, in one case or over all of them.

    ``less`` turns the claimed sign. ``paper`` is the same difference in the paper's figures, in points, averaged over
    the cases that it prints both of. ``groups`` counts the test groups with the claimed sign of the medians, and all.
    """

    label: str
    against: str
    case: str | None
    pooled: Pooled | None
    p_holm: float | None
    less: bool = False
    paper: float | None = None
    groups: tuple[int, int] | None = None

    @property
    def verdict(self) -> str:
        if self.pooled is None:
            return NOT_RUN
        shown = self.pooled.test.shown(self.p_holm, LEVEL)
        return {0: NOT_SHOWN, -1 if self.less else 1: HELD}.get(shown, CONTRADICTED)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim, what the paper says and where, and the comparisons that test it on ``score``.

    ``possible`` counts the comparisons that have pairs enough to be significant if all had one sign; with none, the
    claim could not have been shown. ``quick``: the runs are of the quick form, and nothing follows from them.
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

    @property
    def verdict(self) -> str:
        verdicts = {comparison.verdict for comparison in self.comparisons}
        if verdicts <= {NOT_RUN}:
            return NOT_RUN
        if self.quick:
            return NOT_SHOWN
        if CONTRADICTED in verdicts:
            return CONTRADICTED
        return HELD if verdicts == {HELD} else NOT_SHOWN


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
    found = []
    for label, against in _compared(entry["compare"], here):
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
                    "groups": _groups(part, label, against, less) if entry.get("each") == "group" else None,
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
    )


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


def _groups(cases: Sequence[CollectedCase], label: str, against: str, less: bool) -> tuple[int, int] | None:
    scores: dict[str, dict[str, list[float]]] = {}
    for run in (run for case in cases for run in case.results if run["label"] in (label, against)):
        for name, score in (run["scores"].get("groups") or {}).items():
            scores.setdefault(name, {}).setdefault(run["label"], []).append(score)
    both = [(median(of[label]), median(of[against])) for of in scores.values() if label in of and against in of]
    return (sum((a < b) if less else (a > b) for a, b in both), len(both)) if both else None
