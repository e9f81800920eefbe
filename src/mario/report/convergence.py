"""Whether a schedule was long enough: what validation scores still gained at its end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from mario.lab.studies.plan import Collected, CollectedCase
from mario.report.numbers import to_md

_VALIDATION = ("id_val", "ood_val")
_LATE = 0.3
_RISING = 0.01


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """How the runs of one case ended. ``rising`` are the rows whose mean late gain on a validation set is above 1 %.

    The late gain of a run is the best validation score of the last three tenths of its checkpoints less the best of
    those before: below zero for a run that has only noise left.
    """

    case: str
    steps: tuple[int, ...]
    checkpoints: tuple[int, ...]
    runs: int
    best: float | None
    """At which share of the schedule the checkpoint lies that ood_val chooses (id_val without one): the median.

    None without a validation set, where nothing can be said.
    """
    gains: dict[str, float]
    """Mean late gain by validation set."""
    rising: tuple[str, ...]


def convergence(studies: Iterable[Collected]) -> list[Convergence]:
    """Of every case that has finished runs with at least five checkpoints, those of all studies together."""
    found: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {}
    for collected in studies:
        for case in collected.cases:
            for label, result in _trained(case):
                found.setdefault(case.name, {}).setdefault(result["folder"], (label, result))
    return [_of(name, list(runs.values())) for name, runs in found.items()]


def convergence_to_markdown(found: Sequence[Convergence]) -> str:
    """A table, a line for each case."""
    lines = [
        "| case | steps | checkpoints | runs | chosen at | late gain id_val | late gain ood_val | still rising |",
        "|:---|---:|---:|---:|---:|---:|---:|:---|",
    ]
    for one in found:
        gains = [f"{100 * one.gains[key]:+.1f}" if key in one.gains else "–" for key in _VALIDATION]
        cells = (
            to_md(one.case),
            _values(one.steps),
            _values(one.checkpoints),
            str(one.runs),
            "–" if one.best is None else f"{100 * one.best:.0f} %",
            *gains,
        )
        rising = ", ".join(map(to_md, one.rising)) or ("no validation set" if one.best is None else "none")
        lines.append(f"| {' | '.join(cells)} | {rising} |")
    return "\n".join(lines)


def _trained(case: CollectedCase) -> Iterable[tuple[str, dict[str, Any]]]:
    for result in case.results:
        if len(result.get("curve", ())) >= 5 and result["method"] not in ("raw-features", "random-init"):
            yield result["label"], result


def _of(case: str, runs: Sequence[tuple[str, dict[str, Any]]]) -> Convergence:
    gains: dict[str, dict[str, list[float]]] = {}
    chosen = []
    for label, result in runs:
        curve = result["curve"]
        keys = [key for key in _VALIDATION if all(point.get(key) is not None for point in curve)]
        early = len(curve) - max(1, round(_LATE * len(curve)))
        for key in keys:
            scores = [point[key] for point in curve]
            gains.setdefault(key, {}).setdefault(label, []).append(max(scores[early:]) - max(scores[:early]))
        if keys:
            scores = [point[keys[-1]] for point in curve]
            chosen.append((scores.index(max(scores)) + 1) / len(scores))
    rising = [
        label
        for label in dict.fromkeys(label for label, _ in runs)
        if any(mean(by[label]) > _RISING for by in gains.values() if label in by)
    ]
    return Convergence(
        case=case,
        steps=tuple(sorted({result["steps"] for _, result in runs})),
        checkpoints=tuple(sorted({len(result["curve"]) for _, result in runs})),
        runs=len(runs),
        best=median(chosen) if chosen else None,
        gains={key: mean(gain for of_row in by.values() for gain in of_row) for key, by in gains.items()},
        rising=tuple(rising),
    )


def _values(values: Sequence[int]) -> str:
    return ", ".join(str(value) for value in values)
