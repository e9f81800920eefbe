"""Results by row: which row of a study a run is of, and its scores in percent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mario.errors import MarioError
from mario.report.numbers import METRICS

Result = Mapping[str, Any]


def row_of(result: Result) -> str:
    """The label of the run's row, which is its method if nothing else was said."""
    return result.get("label") or result["method"]


def row_labels(results: Iterable[Result]) -> list[str]:
    """The rows that have a run, in the order of appearance."""
    return list(dict.fromkeys(row_of(result) for result in results))


def chosen_rows(rows: Sequence[str] | None, there: Sequence[str], what: str) -> list[str]:
    """``rows``, or all that are ``there``; what is asked for and is not there is an error."""
    asked = list(there if rows is None else rows)
    missing = [row for row in asked if row not in there]
    if missing or not asked:
        raise MarioError(
            f"rows must be among those with {what} ({', '.join(there) or 'none'}), got {', '.join(asked) or 'none'}"
        )
    return asked


def percents(results: Iterable[Result], row: str, score: str, group: str | None = None) -> np.ndarray:
    """``score`` of every run of a row, in percent; with ``group`` its score on that test group."""
    found = []
    for result in results:
        if row_of(result) == row:
            scores = result.get("scores") or {}
            value = (scores.get("groups") or {}).get(group) if group else scores.get(score)
            if value is not None:
                found.append(100 * value)
    return np.array(found)


def mean_and_sd(values: np.ndarray) -> tuple[float, float]:
    """Mean and sample standard deviation, which is 0 of a single value: there is no spread to draw."""
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


def groups_of(results: Iterable[Result]) -> list[str]:
    """The test groups (T1, T2, ...) of the results, in their order; none where the test set is one."""
    return list(dict.fromkeys(name for result in results for name in (result.get("scores") or {}).get("groups") or {}))


def over_steps(results: Iterable[Result], row: str, key: str) -> dict[int, list[float]]:
    """The values of ``key`` at each step that the runs of a row were looked at, in order."""
    at: dict[int, list[float]] = {}
    for result in results:
        if row_of(result) == row:
            for point in result.get("curve") or ():
                if point.get(key) is not None:
                    at.setdefault(point["step"], []).append(point[key])
    return dict(sorted(at.items()))


def band(at: Mapping[int, Sequence[float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps, and mean and standard deviation of the values at each."""
    both = [mean_and_sd(np.asarray(values)) for values in at.values()]
    mean, sd = np.array(both).reshape(-1, 2).T
    return np.array(list(at)), mean, sd


def metric_of(results: Iterable[Result]) -> str:
    """The metric as an axis names it."""
    metric = next((result["metric"] for result in results if result.get("metric")), "accuracy")
    return METRICS.get(metric, metric)


def counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def runs_per_row(results: Iterable[Result], rows: Iterable[str]) -> str:
    """How many runs a mean is of: "5 runs", or "3 to 5 runs" where rows differ."""
    every = list(results)
    numbers = [sum(row_of(result) == row for result in every) for row in rows]
    low, high = min(numbers), max(numbers)
    return counted(high, "run") if low == high else f"{low} to {high} runs"
