"""Box plots over runs, test group by test group, after the paper's Figure 3 (Amazon-Photo, T1 to T8)."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mario.errors import MarioError
from mario.report.pictures.palette import GRAY, LOOKS, Look, looks
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.pictures.registry import Sketch, register_picture
from mario.report.pictures.scores import (
    chosen_rows,
    group_percents,
    groups_of,
    in_order,
    metric_of,
    rows_of,
    runs_per_row,
    where,
)
from mario.report.svg import INK

if TYPE_CHECKING:
    from pandas import DataFrame

    from mario.lab.studies.collect import Collected

SIDE_BY_SIDE = 6
"""More rows than this leave no room for boxes side by side; each row then has a panel."""
_DOTS = 12  # up to this many runs, each is shown as a dot: a box of three values hides how few there are
_ANY = Look(GRAY, "o", (), "")  # a row with its own panel needs no look of its own
_PAPER = ("erm", "eerm", "grace", "mario")  # the rows of the paper's Figure 3


def boxes(runs: "DataFrame", *, rows: Sequence[str] | None = None, title: str = "") -> Drawing:
    """Median, quartiles and whiskers (1.5 interquartile ranges) of the score on each test group, for each row.

    Up to six rows are side by side at each group; more have a panel each, on one scale.

    Example:
        >>> import pandas as pd
        >>> runs = pd.DataFrame({"method": "mario", "metric": "accuracy", "groups": [{"T1": 0.9, "T2": 0.8}] * 2})
        >>> boxes(runs).description
        'Median accuracy in percent over 2 runs. mario: T1 90.0, T2 80.0.'
    """
    groups = groups_of(runs)
    if not groups:
        raise MarioError("runs must have scores of test groups, got none")
    shown = chosen_rows(rows, rows_of(runs[runs["groups"].map(bool).astype(bool)]), "scores of test groups")
    values = {row: [group_percents(runs, row, group) for group in groups] for row in shown}
    if len(shown) <= SIDE_BY_SIDE:
        with sheet(PAGE, 2.9) as figure:
            _together(figure.subplots(), values, looks(shown), groups)
            figure.axes[0].set_ylabel(f"{metric_of(runs)}, %")
            figure.legend(loc="outside lower center", ncols=len(shown), handlelength=1.6)
    else:
        columns = 4
        lines = -(-len(shown) // columns)
        with sheet(PAGE, 1.5 * lines) as figure:
            axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
            for axis in axes.flat[len(shown) :]:
                axis.set_axis_off()
            for axis, row in zip(axes.flat, shown, strict=False):
                _boxes(axis, values[row], np.arange(len(groups)), 0.6, LOOKS.get(row, _ANY))
                axis.set_title(row, loc="left")
                axis.grid(axis="y")
            for axis in axes.flat[: len(shown)]:
                axis.set_xticks(range(len(groups)), groups)
                # The lowest panel of a column carries the names of the groups.
                axis.tick_params(labelbottom=list(axes.flat).index(axis) + columns >= len(shown))
            for axis in axes[:, 0]:
                axis.set_ylabel(f"{metric_of(runs)}, %")
    medians = "; ".join(
        f"{row}: " + ", ".join(f"{g} {np.median(v):.1f}" for g, v in zip(groups, values[row], strict=True) if len(v))
        for row in shown
    )
    return Drawing(
        figure,
        title or f"Scores on {groups[0]} to {groups[-1]}",
        f"Median {metric_of(runs)} in percent over {runs_per_row(runs, shown)}. {medians}.",
    )


def _together(axis: Any, values: dict[str, list[np.ndarray]], look: dict[str, Look], groups: list[str]) -> None:
    pitch = 0.8 / len(values)
    for place, (row, columns) in enumerate(values.items()):
        positions = np.arange(len(groups)) + (place - (len(values) - 1) / 2) * pitch
        _boxes(axis, columns, positions, 0.82 * pitch, look[row])
        axis.bar([np.nan], [np.nan], label=row, color=look[row].color, hatch=look[row].hatch, edgecolor=INK, lw=0.6)
    for between in np.arange(len(groups) - 1) + 0.5:
        axis.axvline(between, color=INK, alpha=0.15, linewidth=0.6)
    axis.set_xticks(range(len(groups)), groups)
    axis.tick_params(axis="x", length=0)
    axis.set_xlim(-0.5, len(groups) - 0.5)
    axis.grid(axis="y")


def _boxes(axis: Any, columns: list[np.ndarray], positions: np.ndarray, width: float, look: Look) -> None:
    few = max(map(len, columns)) <= _DOTS
    drawn = axis.boxplot(
        columns,
        positions=positions,
        widths=width,
        patch_artist=True,
        manage_ticks=False,
        showfliers=not few,
        boxprops={"facecolor": look.color, "edgecolor": INK, "linewidth": 0.7, "hatch": look.hatch},
        medianprops={"color": INK, "linewidth": 1.6, "solid_capstyle": "butt"},
        whiskerprops={"color": INK, "linewidth": 0.7},
        capprops={"color": INK, "linewidth": 0.7},
        flierprops={"marker": look.marker, "markersize": 3, "markeredgecolor": INK, "markerfacecolor": look.color},
    )
    for box in drawn["boxes"]:
        box.set_zorder(2)
    for position, column in zip(positions, columns, strict=True):
        if len(column) == 1:
            # The box of a single run is a line without a color.
            key = {"markerfacecolor": look.color, "markeredgecolor": INK, "markeredgewidth": 0.5}
            axis.plot([position], column, look.marker, markersize=6, zorder=4, **key)
        elif few:
            axis.plot([position] * len(column), column, ".", color=INK, markersize=2.5, zorder=4)


@register_picture("boxes")
def sketches(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    for case in study.cases:
        if not groups_of(case.frame):
            continue
        shown, there = in_order(study.plan, rows_of(case.frame)), where(case.case)
        paper = [row for row in _PAPER if row in shown]
        if len(shown) > SIDE_BY_SIDE and len(paper) > 1:
            title = f"Scores by test group, the paper’s rows, {there}"
            yield Sketch(partial(boxes, case.frame, rows=paper, title=title), case.name, "paper")
        yield Sketch(partial(boxes, case.frame, rows=shown, title=f"Scores by test group, {there}"), case.name)
