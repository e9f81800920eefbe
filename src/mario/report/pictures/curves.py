"""Metric score curves over training, as the paper's Figures 9 and 11 to 14 show them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mario.errors import MarioError
from mario.report.pictures.palette import BLUE, ORANGE, SKY, VERMILLION
from mario.report.pictures.picture import COLUMN, PAGE, Drawing, sheet
from mario.report.pictures.registry import Sketch, register_picture
from mario.report.pictures.scores import (
    band,
    chosen_rows,
    in_order,
    labels_of,
    metric_of,
    rows_of,
    where,
)
from mario.report.svg import INK

if TYPE_CHECKING:
    from pandas import DataFrame

    from mario.lab.studies.collect import Collected


@dataclass(frozen=True)
class Series:
    """How one of the five scores is drawn: blue squares ID, orange dots OOD, dashed for validation."""

    key: str
    label: str
    color: str
    dash: tuple[float, ...]
    marker: str


SERIES = (
    Series("train", "training", INK, (1.0, 1.5), ""),
    Series("id_val", "ID validation", SKY, (4.0, 1.5), "s"),
    Series("id_test", "ID test", BLUE, (), "s"),
    Series("ood_val", "OOD validation", ORANGE, (4.0, 1.5), "o"),
    Series("ood_test", "OOD test", VERMILLION, (), "o"),
)


def rows_with_curves(runs: "DataFrame") -> list[str]:
    """Rows that were evaluated more than once during training; a control has a single point and no curve."""
    return rows_of(runs[runs["curve"].map(len) > 1])


def limits(runs: "DataFrame", rows: Sequence[str] | None = None) -> tuple[float, float]:
    """A range in percent that contains mean ± sd of every row, so that panels can be compared."""
    ends = []
    for row in rows_with_curves(runs) if rows is None else rows:
        for series in SERIES:
            _, mean, sd = _percent_band(runs, row, series.key)
            ends += [*(mean - sd), *(mean + sd)]
    if not ends:
        raise MarioError("runs must hold at least one run whose curve has two points or more")
    low, high = min(ends), max(ends)
    margin = 0.04 * max(high - low, 1.0)
    return max(0.0, low - margin), min(100.5, high + margin)


def curves(runs: "DataFrame", *, rows: Sequence[str] | None = None, legend: bool = True, title: str = "") -> Drawing:
    """One panel per row: the mean over runs, with a band of one standard deviation; all panels have one scale.

    Example:
        >>> import pandas as pd
        >>> from mario.lab.result import CurvePoint
        >>> scores = {"train": 0.9, "id_val": 0.8, "id_test": 0.8, "ood_val": 0.7, "ood_test": 0.6}
        >>> curve = tuple(CurvePoint(step, scores) for step in (10, 20))
        >>> curves(pd.DataFrame({"method": ["grace"], "metric": "accuracy", "curve": [curve]})).title
        'Score curves of grace'
    """
    shown = chosen_rows(rows, rows_with_curves(runs), "a curve of two points or more")
    low, high = limits(runs, shown)
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    width, room = (COLUMN, 0.6) if columns == 1 else (PAGE, 0.3)
    with sheet(width, 2.35 * lines + (room if legend else 0)) as figure:
        axes = figure.subplots(lines, columns, squeeze=False, sharey=True).flat
        for index, axis in enumerate(axes):
            if index >= len(shown):
                axis.set_axis_off()
                continue
            _draw(axis, runs, shown[index])
            axis.set_ylim(low, high)
            n = int((labels_of(runs) == shown[index]).sum())
            axis.set_title(f"{shown[index]} (n = {n})", loc="left")
            axis.set_xlabel("optimizer steps")
            axis.locator_params(axis="x", nbins=5)
            axis.set_ylabel(f"{metric_of(runs)}, %" if index % columns == 0 else "")
            axis.grid(axis="y")
        if legend:
            keys: dict[str, Any] = {}
            for axis in figure.axes:
                keys |= dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
            ncols = 5 if columns > 1 else 2
            figure.legend(list(keys.values()), list(keys), loc="outside lower center", ncols=ncols, handlelength=2.6)
    return Drawing(figure, title or f"Score curves of {', '.join(shown)}", _in_words(runs, shown))


def _draw(axis: Any, runs: "DataFrame", row: str) -> None:
    for series in SERIES:
        steps, mean, sd = _percent_band(runs, row, series.key)
        if not len(steps):
            continue
        # The bands of the two test scores are what the eye is to compare; the others stay faint behind them.
        alpha = 0.05 if series.dash else 0.16
        axis.fill_between(steps, mean - sd, mean + sd, color=series.color, alpha=alpha, linewidth=0)
        dashes = {"dashes": series.dash} if series.dash else {}
        width = 2.0 if not series.dash else 1.4
        axis.plot(
            *(steps, mean),
            color=series.color,
            linewidth=width,
            label=series.label,
            marker=series.marker,
            markersize=3.5,
            markevery=max(1, len(steps) // 6),
            **dashes,
        )


def _percent_band(runs: "DataFrame", row: str, key: str) -> tuple[Any, Any, Any]:
    steps, mean, sd = band(runs, row, key)
    return steps, 100 * mean, 100 * sd


def _in_words(runs: "DataFrame", rows: Sequence[str]) -> str:
    sentences = []
    for row in rows:
        ends = []
        for series in SERIES:
            steps, mean, _ = _percent_band(runs, row, series.key)
            if len(steps):
                ends.append(f"{series.label} {mean[0]:.1f} to {mean[-1]:.1f}")
        sentences.append(f"{row}, first to last checkpoint, percent: {', '.join(ends)}.")
    return " ".join(sentences)


@register_picture("curves")
def sketches(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    for case in study.cases:
        if rows := in_order(study.plan, rows_with_curves(case.frame)):
            title = f"Scores during training, {where(case.case)}"
            yield Sketch(partial(curves, case.frame, rows=rows, title=title), case.name)
