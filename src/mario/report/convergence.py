"""Whether a schedule was long enough: how much validation scores still improved at its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import TYPE_CHECKING

from mario.report.tables.entries import CONTROLS
from mario.report.tables.table import Cell, Line, Table, TableColumn

if TYPE_CHECKING:
    from pandas import DataFrame

_VALIDATION = ("id_val", "ood_val")
_FEWEST = 5  # checkpoints of a curve
_LATE = 0.3
_RISING = 0.01


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """How the runs of one case ended. ``rising`` are the rows whose mean late gain on a validation set is above 1 %.

    The late gain of a run is the best validation score in the last three tenths of its checkpoints minus the best one
    before; it is negative for a run that only fluctuates at the end.

    Attributes:
        best: the share of the schedule at which ood_val (id_val if there is none) chooses the checkpoint, as a median.
            None without a validation set.
        gains: mean late gain by validation set.
    """

    case: str
    steps: tuple[int, ...]
    checkpoints: tuple[int, ...]
    runs: int
    best: float | None
    gains: dict[str, float]
    rising: tuple[str, ...]


def convergence(runs: "DataFrame") -> list[Convergence]:
    """One for each case of a study's frame, or of several joined, from its trained runs with five checkpoints or more.

    A run that several studies share counts once.
    """
    long = runs[(runs["curve"].map(len) >= _FEWEST) & ~runs["method"].isin(CONTROLS)]
    known = long.drop_duplicates(["case", "digest"])
    return [_of(str(case), here) for case, here in known.groupby("case", sort=False)]


def convergence_table(found: Sequence[Convergence]) -> Table:
    """A line for each case."""
    numbers = ("steps", "checkpoints", "runs", "chosen at", *(f"late gain {name}" for name in _VALIDATION))
    return Table(
        name="convergence",
        title="",
        columns=(
            TableColumn(head="case", names=True),
            *(TableColumn(head=head) for head in numbers),
            TableColumn(head="still rising", text=True),
        ),
        lines=tuple(Line(cells=tuple(Cell(text=text) for text in _texts(one)), case=one.case) for one in found),
    )


def _texts(one: Convergence) -> list[str]:
    return [
        one.case,
        ", ".join(map(str, one.steps)),
        ", ".join(map(str, one.checkpoints)),
        str(one.runs),
        "–" if one.best is None else f"{100 * one.best:.0f} %",
        *(f"{100 * one.gains[name]:+.1f}" if name in one.gains else "–" for name in _VALIDATION),
        ", ".join(one.rising) or ("no validation set" if one.best is None else "none"),
    ]


def _of(case: str, runs: "DataFrame") -> Convergence:
    gains: dict[str, dict[str, list[float]]] = {}
    chosen = []
    for label, curve in zip(runs["label"], runs["curve"], strict=True):
        keys = [key for key in _VALIDATION if all(key in point.scores for point in curve)]
        early = len(curve) - max(1, round(_LATE * len(curve)))
        for key in keys:
            scores = [point.scores[key] for point in curve]
            gains.setdefault(key, {}).setdefault(label, []).append(max(scores[early:]) - max(scores[:early]))
        if keys:
            scores = [point.scores[keys[-1]] for point in curve]
            chosen.append((scores.index(max(scores)) + 1) / len(scores))
    rising = [
        label
        for label in dict.fromkeys(runs["label"])
        if any(mean(by[label]) > _RISING for by in gains.values() if label in by)
    ]
    return Convergence(
        case=case,
        steps=tuple(sorted({int(steps) for steps in runs["steps"]})),
        checkpoints=tuple(sorted({len(curve) for curve in runs["curve"]})),
        runs=len(runs),
        best=median(chosen) if chosen else None,
        gains={key: mean(gain for of_row in by.values() for gain in of_row) for key, by in gains.items()},
        rising=tuple(rising),
    )
