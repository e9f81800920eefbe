"""Metric score curves over training, as the paper's Figures 9 and 11 to 14 show them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mario.errors import MarioError
from mario.report.svg import BLUE, INK, ORANGE, SKY, VERMILLION, style, to_svg
from mario.report.table import METRICS


@dataclass(frozen=True)
class Series:
    """How one of the five scores is drawn: blue in distribution, orange out of it, dashed for validation."""

    key: str
    label: str
    colour: str
    dash: tuple[float, ...]


SERIES = (
    Series("train", "training", INK, (1.0, 1.5)),
    Series("id_val", "ID validation", SKY, (4.0, 1.5)),
    Series("id_test", "ID test", BLUE, ()),
    Series("ood_val", "OOD validation", ORANGE, (4.0, 1.5)),
    Series("ood_test", "OOD test", VERMILLION, ()),
)


def methods_with_curves(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Methods that were looked at more than once while training; a control has a single point and no curve."""
    return list(dict.fromkeys(r["method"] for r in results if len(r.get("curve") or ()) > 1))


def limits(results: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """A range of percent that holds every mean ± sd of every method, so that panels can be compared."""
    results = list(results)
    ends = []
    for method in methods_with_curves(results):
        for series in SERIES:
            _, mean, sd = _band(results, method, series.key)
            ends += [*(mean - sd), *(mean + sd)]
    if not ends:
        raise MarioError("results must hold at least one run whose curve has two points or more")
    low, high = min(ends), max(ends)
    margin = 0.04 * max(high - low, 1.0)
    return max(0.0, low - margin), min(100.5, high + margin)


def plot_curves(
    results: Iterable[Mapping[str, Any]],
    *,
    methods: Sequence[str] | None = None,
    ylim: tuple[float, float] | None = None,
    legend: bool = True,
    name: str = "curves",
) -> str:
    """An SVG with one panel a method: mean over runs, and a band of one standard deviation.

    Example:
        >>> from mario.report import plot_curves
        >>> scores = {"train": 0.9, "id_val": 0.8, "id_test": 0.8, "ood_val": 0.7, "ood_test": 0.6}
        >>> run = {"method": "grace", "metric": "accuracy", "curve": [scores | {"step": 10}, scores | {"step": 20}]}
        >>> plot_curves([run])[:4]
        '<svg'
    """
    import matplotlib
    from matplotlib.figure import Figure

    results = list(results)
    there = methods_with_curves(results)
    shown = list(methods) if methods is not None else there
    missing = [method for method in shown if method not in there]
    if missing or not shown:
        raise MarioError(f"methods must be among those with a curve of two points or more ({there}), got {shown}")
    low, high = ylim or limits(results)
    metric = results[0].get("metric", "accuracy")
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    with matplotlib.rc_context(style(name)):
        figure = Figure(figsize=(3.6 * columns, 2.7 * lines + (0.4 if legend else 0.0)), layout="constrained")
        axes = figure.subplots(lines, columns, squeeze=False).flat
        for index, axis in enumerate(axes):
            if index >= len(shown):
                axis.set_axis_off()
                continue
            _draw(axis, results, shown[index])
            axis.set_ylim(low, high)
            axis.set_title(shown[index], loc="left")
            axis.set_xlabel("optimiser steps")
            axis.set_ylabel(f"{METRICS.get(metric, metric)}, %" if index % columns == 0 else "")
            axis.grid(axis="y")
        if legend:
            handles, labels = figure.axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=min(5, 2 * columns + 1), fontsize=9)
        return to_svg(
            figure,
            name=name,
            title=f"Score curves of {', '.join(shown)}",
            description=_in_words(results, shown),
        )


def _draw(axis: Any, results: Sequence[Mapping[str, Any]], method: str) -> None:
    for series in SERIES:
        steps, mean, sd = _band(results, method, series.key)
        if not len(steps):
            continue
        # The bands of the two test scores are what the eye is to compare; the others stay faint behind them.
        alpha = 0.05 if series.dash else 0.16
        axis.fill_between(steps, mean - sd, mean + sd, color=series.colour, alpha=alpha, linewidth=0)
        dashes = {"dashes": series.dash} if series.dash else {}
        width = 2.0 if not series.dash else 1.4
        axis.plot(steps, mean, color=series.colour, linewidth=width, label=series.label, **dashes)


def _band(results: Iterable[Mapping[str, Any]], method: str, key: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    at: dict[int, list[float]] = {}
    for result in results:
        if result["method"] == method:
            for point in result.get("curve") or ():
                if point.get(key) is not None:
                    at.setdefault(point["step"], []).append(100 * point[key])
    steps = sorted(at)
    mean = np.array([np.mean(at[step]) for step in steps])
    sd = np.array([np.std(at[step], ddof=1) if len(at[step]) > 1 else 0.0 for step in steps])
    return np.array(steps), mean, sd


def _in_words(results: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> str:
    sentences = []
    for method in methods:
        ends = []
        for series in SERIES:
            steps, mean, _ = _band(results, method, series.key)
            if len(steps):
                ends.append(f"{series.label} {mean[0]:.1f} to {mean[-1]:.1f}")
        sentences.append(f"{method}, first to last checkpoint, percent: {', '.join(ends)}.")
    return " ".join(sentences)
