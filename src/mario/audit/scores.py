"""How candidates do on domains whose labels are left out, and what that promises for another domain."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from scipy import stats

from mario.embedder import Fitted
from mario.embedder.bench import Row
from mario.embedder.sources import Source

METHODS = "grace, mario, mario strong"
"""What is trained: the plain contrast, the paper's method, and the contrast against a strong adversary."""
LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Part:
    """The score on one domain whose labels were left out.

    Attributes:
        domain: Its name, or those of neighboring ones.
        score: The score.
        nodes: Labeled nodes that it is of.
    """

    domain: str
    score: float
    nodes: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scored:
    """How a candidate did.

    Attributes:
        name: As `mario fit` calls it.
        kind: ``control``, ``trained`` or ``steady``.
        score: The mean over domains that were left out, or the score by another rule; ``None`` without labels.
        low, high: A 95 % interval for another domain.
        parts: The score of each domain.
        readable: How well the domain is read from it: 0 not at all, 1 always.
        rank: Its effective rank.
    """

    name: str
    kind: str
    score: float | None
    low: float | None
    high: float | None
    parts: tuple[Part, ...]
    readable: float | None
    rank: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Promise:
    """The expected score on another domain.

    Attributes:
        kind: ``domain``: for a domain that is drawn like the known ones. ``same``: labels of one domain only, so for
            nodes like these. ``none``: no labels.
        score: What to expect: the mean, over the domains, of the score there of the candidate that is best on the
            others. So what was gained by choosing the best of many is not part of it.
        low, high: Where the score of 95 % of such domains lies, by Student's t over the domains.
        domains: How many domains it comes from.
    """

    kind: str
    score: float | None = None
    low: float | None = None
    high: float | None = None
    domains: int = 0

    @property
    def half(self) -> float | None:
        """Half of the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scores:
    """All candidates.

    Attributes:
        rule: What scores them: ``leave_domain_out``, ``ood_val``, ``id_val``, or ``gate`` without labels.
        why: The reason for it.
        metric: Of the scores.
        baseline: The score of a constant prediction.
        candidates: Best first.
        chosen: The candidate to use.
        decisions: What is centered in it and why.
        promise: What to expect of it.
        left_out: Candidates that were not scored, and why.
        trainings: The methods that were trained, and their steps.
    """

    rule: str
    why: str
    metric: str
    baseline: float | None
    candidates: tuple[Scored, ...]
    chosen: str
    decisions: tuple[str, ...]
    promise: Promise
    left_out: dict[str, str]
    trainings: dict[str, int]

    def candidate(self, name: str | None = None) -> Scored:
        """A candidate by its name; without a name the chosen one."""
        return next(one for one in self.candidates if one.name == (name or self.chosen))

    def best(self, *kinds: str) -> Scored | None:
        """The best candidate of some kinds."""
        return next((one for one in self.candidates if one.kind in kinds), None)


def scores_of(fitted: Fitted, source: Source, why: str) -> Scores:
    """The scores of a fit."""
    rule = fitted.plan.rule
    found = [_scored(fitted, name, row, source) for name, row in fitted.rows.items()]
    found.sort(key=lambda one: (-(one.score or 0.0), one.name != fitted.chosen))
    parts = {one.name: {part.domain: part.score for part in one.parts} for one in found if one.parts}
    return Scores(
        rule=rule,
        why=why,
        metric=str(source.data.get("metric") or "accuracy"),
        baseline=fitted.baseline,
        candidates=tuple(found),
        chosen=fitted.chosen,
        decisions=tuple(str(one) for one in fitted.decisions.get(fitted.chosen, [])),
        promise=_promise(rule, fitted.rows[fitted.chosen], parts),
        left_out=dict(fitted.left_out),
        trainings={
            one.name: one.steps
            for one in fitted.plan.trainings
            if one.trains and any(candidate.name in fitted.rows for candidate in fitted.plan.of(one.name))
        },
    )


def promised(parts: Mapping[str, Mapping[str, float]], limits: tuple[float, float] = (0.0, 1.0)) -> Promise:
    """What the scores of candidates on domains that were left out promise for another domain.

    Args:
        parts: By candidate and domain.
        limits: Between which a score lies.

    Example:
        >>> found = promised({"a": {"north": 0.7, "south": 0.8, "west": 0.75}, "b": {"north": 0.1, "south": 0.9}})
        >>> round(found.score, 2), round(found.low, 2), round(found.high, 2), found.domains
        (0.75, 0.5, 1.0, 3)
    """
    domains = list(dict.fromkeys(domain for scores in parts.values() for domain in scores))
    whole = {name: scores for name, scores in parts.items() if len(scores) == len(domains)}
    if not whole or len(domains) < 2:
        return Promise(kind="none")
    reached = [whole[_best(whole, [other for other in domains if other != one])][one] for one in domains]
    count = len(reached)
    mean = sum(reached) / count
    spread = math.sqrt(sum((one - mean) ** 2 for one in reached) / (count - 1))
    half = float(stats.t.ppf((1 + LEVEL) / 2, count - 1)) * spread * math.sqrt(1 + 1 / count)
    low, high = limits
    return Promise(kind="domain", score=mean, low=max(low, mean - half), high=min(high, mean + half), domains=count)


def _best(parts: Mapping[str, Mapping[str, float]], domains: Sequence[str]) -> str:
    return max(parts, key=lambda name: sum(parts[name][one] for one in domains))


def _promise(rule: str, row: Row, parts: Mapping[str, Mapping[str, float]]) -> Promise:
    if rule == "leave_domain_out" and parts:
        return promised(parts)
    if row.score is None:
        return Promise(kind="none")
    kind = "domain" if rule == "ood_val" else "same"
    return Promise(kind=kind, score=row.score, low=row.low, high=row.high, domains=1)


def _scored(fitted: Fitted, name: str, row: Row, source: Source) -> Scored:
    candidate = next(one for one in fitted.plan.candidates if one.name == name)
    training = next(one for one in fitted.plan.trainings if one.name == candidate.training)
    steady = candidate.center != "never" or "x" in candidate.channels
    return Scored(
        name=name,
        kind="control" if not training.trains else "steady" if steady else "trained",
        score=row.score,
        low=row.low,
        high=row.high,
        parts=tuple(Part(_names(source, one.first, one.last), one.score, one.nodes) for one in row.parts),
        readable=row.readability,
        rank=row.rank,
    )


def _names(source: Source, first: int, last: int) -> str:
    names = [source.domains[one] if one < len(source.domains) else str(one) for one in (first, last)]
    return names[0] if first == last else f"{names[0]} to {names[1]}"


def settings_of(source: Source, given: Mapping[str, Any] | None, leavable: bool) -> dict[str, Any]:
    """What a fit is asked for: more methods than by default, and every domain left out where labels allow it."""
    asked = {"method": METHODS, **(given or {})}
    if source.data.get("batch") is not None:
        asked.pop("method") if "method" not in (given or {}) else None
    if leavable and "rule" not in asked:
        asked["rule"] = "leave_domain_out"
    return asked
