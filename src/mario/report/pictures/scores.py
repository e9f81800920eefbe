"""Scores of a frame of runs, row by row of a study, as pictures need them: in percent, over steps, by test group."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mario.errors import MarioError
from mario.report.numbers import counted, metric_title

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from mario.lab.case import Case
    from mario.lab.studies.plan import Plan


def labels_of(runs: "DataFrame") -> "Series":
    """The row of each run: its label, or its method in a frame without labels."""
    return runs["label"] if "label" in runs else runs["method"]


def rows_of(runs: "DataFrame") -> list[str]:
    """The rows that have a run, in the order of appearance."""
    return list(dict.fromkeys(labels_of(runs)))


def chosen_rows(rows: Sequence[str] | None, there: Sequence[str], what: str) -> list[str]:
    """``rows``, or all that are ``there``; an error if one of ``rows`` is not there."""
    chosen = list(there if rows is None else rows)
    if not chosen or any(row not in there for row in chosen):
        raise MarioError(
            f"rows must be among those with {what} ({', '.join(there) or 'none'}), got {', '.join(chosen) or 'none'}"
        )
    return chosen


def in_order(plan: "Plan", rows: Sequence[str]) -> list[str]:
    """``rows`` in the order of the plan."""
    return [row for row in dict.fromkeys([*plan.rows, *rows]) if row in rows]


def where(case: "Case", *, dataset: bool = True) -> str:
    """A case in words, for a title."""
    shift = "no shift" if case.shift == "no_shift" else f"{case.shift} shift"
    return ", ".join([f"{case.dataset}, {case.domain} domain"] * dataset + [shift, case.setting])


def percents(runs: "DataFrame", row: str, score: str) -> np.ndarray:
    """The column ``score`` of every run of a row that has it, in percent."""
    scores: np.ndarray = runs.loc[labels_of(runs) == row, score].dropna().to_numpy(dtype=float)
    return 100 * scores


def group_percents(runs: "DataFrame", row: str, group: str) -> np.ndarray:
    """The score on one test group of every run of a row that has it, in percent."""
    scores = runs.loc[labels_of(runs) == row, "groups"]
    return np.array([100 * found[group] for found in scores if group in found])


def mean_and_sd(values: np.ndarray) -> tuple[float, float]:
    """Mean and sample standard deviation; 0 for a single value, which has no spread to draw."""
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


def groups_of(runs: "DataFrame") -> list[str]:
    """The names of the test groups (T1, T2, ...), in their order; none where the test set is one."""
    return list(dict.fromkeys(name for found in runs["groups"] for name in found))


def band(runs: "DataFrame", row: str, key: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The evaluated steps of the runs of a row, in order, and mean and standard deviation of ``key`` at each."""
    at: dict[int, list[float]] = {}
    for curve in runs.loc[labels_of(runs) == row, "curve"]:
        for point in curve:
            if key in point.scores:
                at.setdefault(point.step, []).append(point.scores[key])
    steps = sorted(at)
    mean, sd = np.array([mean_and_sd(np.asarray(at[step])) for step in steps]).reshape(-1, 2).T
    return np.array(steps), mean, sd


def metric_of(runs: "DataFrame") -> str:
    """The metric's title for an axis."""
    return metric_title(next(iter(runs["metric"].dropna()), "accuracy"))


def runs_per_row(runs: "DataFrame", rows: Iterable[str]) -> str:
    """How many runs a mean is over: "5 runs", or "3 to 5 runs" where rows differ."""
    numbers = [int((labels_of(runs) == row).sum()) for row in rows]
    low, high = min(numbers), max(numbers)
    return counted(high, "run") if low == high else f"{low} to {high} runs"
