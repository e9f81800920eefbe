"""One label against another over all cases: with five pairs a case, only all cases together can show a difference."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mario.lab.statistics.paired import NothingToPairError, Paired, Pairs, holm, least_p, pair, paired
from mario.lab.studies.plan import Collected, CollectedCase
from mario.report.tables.one_case import gap_of


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """The OOD scores of ``label`` less those of ``against``, over all pairs of all cases that have both.

    ``pairs`` counts those of each case, ``above`` the cases with a positive mean difference. A case in which scores
    vary more weighs more in the mean; the test goes by ranks.
    """

    label: str
    against: str
    pairs: Mapping[str, int]
    above: int
    test: Paired

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(self.pairs)


def pool(
    collected: Collected | Iterable[Collected], label: str, against: str, *, score: str = "ood_test"
) -> Pooled | None:
    """Compare two labels over every case of one study or of several; a case that several studies have counts once.

    Returns None where no case has a run of both on the same split and seed.

    Example:
        >>> from pathlib import Path
        >>> from mario.lab.studies.plan import collect, make_plan
        >>> from mario.lab.studies.read import find_study
        >>> from mario.report import pool
        >>> plan = make_plan(find_study("ablation"), datasets=["good-cbas"], seeds=1)
        >>> pool(collect(plan, Path("no runs yet")), "mario", "mario w/o ad") is None
        True
    """
    several = [collected] if isinstance(collected, Collected) else collected
    return pool_cases((case for one in several for case in one.cases), label, against, score=score)


def pool_cases(cases: Iterable[CollectedCase], label: str, against: str, *, score: str = "ood_test") -> Pooled | None:
    """:func:`pool` over these cases. ``score`` is a key of a result's scores, or ``gap``, which is ID less OOD."""
    found: dict[str, Pairs] = {}
    for case in cases:
        here = _pairs(case, label, against, score)
        if here is not None and case.name not in found:
            found[case.name] = here
    if not found:
        return None
    a = [value for pairs in found.values() for value in pairs.a]
    b = [value for pairs in found.values() for value in pairs.b]
    splits = [split for pairs in found.values() for split in pairs.splits]
    counts = {name: len(pairs.keys) for name, pairs in found.items()}
    above = sum(sum(pairs.a) > sum(pairs.b) for pairs in found.values())
    return Pooled(label=label, against=against, pairs=counts, above=above, test=paired(a, b, splits=splits))


def reachable(tests: Sequence[Paired | None], level: float = 0.05) -> int:
    """How many of ``tests`` could fall below ``level`` after Holm's correction if all their pairs had one sign.

    Example:
        >>> from mario.lab.statistics.paired import paired
        >>> from mario.report.tables.pooled import reachable
        >>> five, nine = paired([0.9] * 5, [0.8] * 5), paired([0.9] * 9, [0.8] * 9)
        >>> reachable([five, five]), reachable([nine, five]), reachable([nine] * 12), reachable([nine] * 13)
        (0, 1, 12, 0)
    """
    best = holm([None if test is None or test.p_wilcoxon is None else least_p(test.n) for test in tests])
    return sum(p is not None and p < level for p in best)


def _pairs(case: CollectedCase, label: str, against: str, score: str) -> Pairs | None:
    ours, theirs = ([_with_gap(run) for run in case.results if run["label"] == name] for name in (label, against))
    try:
        return pair(ours, theirs, score)
    except NothingToPairError:
        return None


def _with_gap(run: Mapping[str, Any]) -> dict[str, Any]:
    gap = gap_of(run)
    return {**run, "scores": {**run["scores"], "gap": gap}} if gap is not None else dict(run)
