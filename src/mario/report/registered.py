"""What a registered study came to: the comparisons of its protocol, and nothing else; ``registered.toml`` lists them.

A column, a case of the study, is done when all of its registered pairs of both rows are finished. A comparison has a
test, and the goal a verdict, only when all of its columns are done. Runs of other seeds and of the quick form do not
count.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from math import isnan
from typing import TYPE_CHECKING, Any

from mario.lab.statistics.columns import OverColumns
from mario.lab.statistics.paired import Paired, Pairs, holm
from mario.lab.studies.collect import Collected
from mario.lab.studies.read import find_study
from mario.lab.studies.study import Study
from mario.report.numbers import counted, p_equals, points

if TYPE_CHECKING:
    from pandas import DataFrame


_PLACE, _SCORES = ("case", "label", "split_seed", "seed"), ("ood_test", "id_test")


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """An entry of ``registered.toml``, whose head describes the keys; points are in percent."""

    protocol: str
    subject: str
    against: str
    uses: str
    primary: tuple[str, str]
    level: float
    secondary: tuple[tuple[str, str], ...]
    published: str
    gain: float
    most_below: float
    above_published: float
    columns_above: int
    at_published: str
    equal_cpu: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """The row ``label`` minus the row ``against``, column by column.

    Attributes:
        asked: the columns of the study that have both rows and the score.
        found: the columns that are done; None if there are none.
        pairs: how many pairs each column has so far.
        p_holm: p corrected for the secondary comparisons, if it is one of these and all are done.
    """

    label: str
    against: str
    score: str
    asked: tuple[str, ...]
    found: OverColumns | None
    pairs: Mapping[str, int]
    p_holm: float | None = None

    @property
    def done(self) -> int:
        return len(self.found.pairs) if self.found else 0

    @property
    def over(self) -> Paired | None:
        """The comparison over all columns; None before all are done."""
        return self.found.over if self.found and self.done == len(self.asked) else None

    def column(self, name: str) -> Paired | None:
        return self.found.columns.get(name) if self.found else None

    @property
    def state(self) -> str:
        """``3 of 21 columns done``."""
        return f"{self.done} of {counted(len(self.asked), 'column')} done"


@dataclass(frozen=True)
class Condition:
    """A part of the goal: what was wanted and what was found, in words; ``met`` is None before all columns are done."""

    wanted: str
    found: str
    met: bool | None


@dataclass(frozen=True, kw_only=True)
class Registered:
    """The comparisons of a protocol.

    Attributes:
        cost: the primary difference on ``id_test``.
        published: the subject minus the method as published.
        equal_cpu: the primary comparison at equal CPU time; None before that study has a run.
        rows: every other row of the study minus the reference, for reading only: no test is made of it.
        goal: the conditions of the goal.
    """

    study: str
    protocol: Protocol
    primary: Contrast
    secondary: tuple[Contrast, ...]
    cost: Contrast
    published: Contrast
    equal_cpu: Contrast | None
    rows: tuple[Contrast, ...]
    goal: tuple[Condition, ...]

    @property
    def claim_holds(self) -> bool | None:
        """Whether the primary difference is positive at the registered level; None before all columns are done."""
        over = self.primary.over
        return None if over is None else over.shown(over.p_wilcoxon, self.protocol.level) > 0

    @property
    def goal_met(self) -> bool | None:
        """Whether all conditions of the goal are met; None before all columns are done."""
        met = [condition.met for condition in self.goal]
        return None if None in met else all(met)


def protocols() -> Mapping[str, Protocol]:
    """The protocol of each registered study.

    Example:
        >>> protocols()["steady"].primary
        ('mario+steady strong', 'grace')
    """
    return _protocols()


@cache
def _protocols() -> dict[str, Protocol]:
    text = resources.files("mario.report").joinpath("registered.toml").read_text(encoding="utf-8")
    return {
        name: Protocol(**{key: _tuples(value) for key, value in found.items()})
        for name, found in tomllib.loads(text).items()
    }


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def registered(study: Collected, beside: Iterable[Collected] = ()) -> Registered | None:
    """The comparisons that the protocol of ``study`` registers; None if it has no protocol, or in the quick form.

    Args:
        study: the study with the results of its runs so far.
        beside: other studies; the one of equal CPU time is looked for among them.

    Example:
        >>> from pathlib import Path
        >>> from mario.lab.studies.collect import collect
        >>> from mario.lab.studies.plan import make_plan
        >>> plan = make_plan(find_study("steady"), datasets=["good-cbas"], methods=["grace"])
        >>> found = registered(collect(plan, Path("no runs yet")))
        >>> found.primary.state, found.claim_holds, found.goal_met
        ('0 of 21 columns done', None, None)
    """
    protocol = protocols().get(study.plan.study)
    if protocol is None or study.plan.quick:
        return None
    design = design_of(study.plan.study)
    if design.title != study.plan.title:  # somebody's own study of the same name
        return None
    runs = by_place(study.frame)

    def contrast(label: str, against: str, score: str = "ood_test") -> Contrast:
        return compare(design, runs, label, against, score)

    subject, reference = protocol.primary
    primary, published = contrast(subject, reference), contrast(subject, protocol.published)
    return Registered(
        study=study.plan.study,
        protocol=protocol,
        primary=primary,
        secondary=_corrected([contrast(*rows) for rows in protocol.secondary]),
        cost=contrast(subject, reference, "id_test"),
        published=published,
        equal_cpu=_equal_cpu(design, runs, protocol, beside),
        rows=tuple(contrast(row.label, reference) for row in design.rows if row.label != reference),
        goal=_goal(protocol, design, primary, published),
    )


design_of = cache(find_study)
"""The study as it was registered."""

Runs = Mapping[tuple[str, str], Mapping[tuple[int, int], Mapping[str, float]]]
"""By column and row, and by split seed and seed: the scores of a run."""


def by_place(frame: "DataFrame") -> Runs:
    """The scores of a labeled frame, for many look-ups."""
    found: dict[tuple[str, str], dict[tuple[int, int], dict[str, float]]] = {}
    for run in frame[[*_PLACE, *_SCORES]].to_dict("records"):
        of_row = found.setdefault((run["case"], run["label"]), {})
        of_row[run["split_seed"], run["seed"]] = {score: run[score] for score in _SCORES}
    return found


def compare(design: Study, runs: Runs, label: str, against: str, score: str) -> Contrast:
    """``label`` minus ``against`` in each column of ``design`` that has both rows.

    A row that ``design`` does not have, of another study, is taken to be on all columns.
    """
    known = {row.label for row in design.rows}
    asked, done, pairs = [], {}, {}
    for case in design.cases:
        labels = {row.label for row in design.rows_of(case)}
        if {label, against} & known - labels:
            continue
        seeds = case.schedule.pairs
        a, b = (runs.get((case.name, row), {}) for row in (label, against))
        there = [pair for pair in seeds if pair in a and pair in b]
        scored = [pair for pair in there if not (isnan(a[pair][score]) or isnan(b[pair][score]))]
        if len(there) == len(seeds) and not scored:
            continue  # all is done, and the column has no such score
        asked.append(case.name)
        pairs[case.name] = len(scored)
        if len(scored) == len(seeds):
            done[case.name] = Pairs(
                keys=tuple(scored),
                a=tuple(a[pair][score] for pair in scored),
                b=tuple(b[pair][score] for pair in scored),
                splits=tuple((split,) for split, _ in scored),
            )
    return Contrast(
        label=label,
        against=against,
        score=score,
        asked=tuple(asked),
        found=OverColumns(done) if done else None,
        pairs=pairs,
    )


def _corrected(found: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """The contrasts with Holm's correction, once all of them are done."""
    tests = [one.over for one in found]
    if None in tests:
        return tuple(found)
    adjusted = holm([test.p_wilcoxon if test else None for test in tests])
    return tuple(replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True))


def _equal_cpu(design: Study, runs: Runs, protocol: Protocol, beside: Iterable[Collected]) -> Contrast | None:
    name, row = protocol.equal_cpu
    other = next((one for one in beside if one.plan.study == name and not one.plan.quick and len(one.frame)), None)
    if other is None:
        return None
    return compare(design, {**runs, **by_place(other.frame)}, protocol.primary[0], row, "ood_test")


def _goal(protocol: Protocol, design: Study, primary: Contrast, published: Contrast) -> tuple[Condition, ...]:
    """Each condition of the goal: all of them wait for all columns of their comparison."""
    against, level = protocol.primary[1], protocol.level
    gain = f"mean over columns at least {counted_points(protocol.gain)} above {against}, p < {level:g}"
    lowest = f"no column more than {counted_points(protocol.most_below)} below {against}"
    above = f"at least {counted_points(protocol.above_published)} above {protocol.published} on "
    above += counted(protocol.columns_above, "column")
    at = f"{protocol.at_published} at least where {protocol.published} is"
    if primary.found is None or primary.over is None:
        first = [Condition(wanted, primary.state, None) for wanted in (gain, lowest)]
    else:
        over, means = primary.over, primary.found.means
        enough = round(over.mean_difference - protocol.gain / 100, 12) >= 0 and over.shown(over.p_wilcoxon, level) > 0
        under = primary.found.below(-protocol.most_below / 100)
        said = ", ".join(f"{name} {points(means[name])}" for name in under or [min(means, key=means.__getitem__)])
        first = [
            Condition(gain, f"{points(over.mean_difference)}, {p_equals(over.p_wilcoxon)}", enough),
            Condition(lowest, said if under else f"the lowest is {said}", not under),
        ]
    if published.found is None or published.over is None:
        return (*first, *(Condition(wanted, published.state, None) for wanted in (above, at)))
    high, not_below = published.found.at_least(protocol.above_published / 100), published.found.at_least(0.0)
    there = [case.name for case in design.cases if case.case.dataset == protocol.at_published]
    said = ", ".join(f"{name} {points(published.found.means[name])}" for name in there)
    return (
        *first,
        Condition(above, f"{len(high)} of {counted(published.done, 'column')}", len(high) >= protocol.columns_above),
        Condition(at, said, set(there) <= set(not_below)),
    )


def counted_points(number: float) -> str:
    """A number of points with its noun.

    Example:
        >>> counted_points(1.0), counted_points(2.5)
        ('1 point', '2.5 points')
    """
    return f"{number:g} {'point' if number == 1 else 'points'}"
