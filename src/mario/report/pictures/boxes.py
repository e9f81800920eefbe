"""Box plots over runs, test group by test group, after the paper's Figure 3 (Amazon-Photo, T1 to T8)."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mario.errors import MarioError
from mario.report.pictures.palette import GRAY, LOOKS, Look, looks
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.pictures.rows import (
    Result,
    chosen_rows,
    groups_of,
    metric_of,
    percents,
    row_labels,
    runs_per_row,
)
from mario.report.svg import INK

# More rows than this side by side leave no room for a box; each row then has a panel.
SIDE_BY_SIDE = 6
# So few runs are all shown; a box of three values alone would seem to know more.
_DOTS = 12
# In a panel of its own a row needs no look of its own.
_ANY = Look(GRAY, "o", (), "")


def boxes(results: Iterable[Result], *, rows: Sequence[str] | None = None, title: str = "") -> Drawing:
    """Median, quartiles and whiskers (1.5 interquartile ranges) of the score on each test group, for each row.

    Up to six rows stand side by side at each group; more have a panel each, on one scale.

    Example:
        >>> from mario.report.pictures import boxes
        >>> run = {"method": "mario", "scores": {"ood_test": 0.85, "groups": {"T1": 0.9, "T2": 0.8}}}
        >>> boxes([run, run]).description
        'Median accuracy in percent over 2 runs. mario: T1 90.0, T2 80.0.'
    """
    results = list(results)
    groups = groups_of(results)
    if not groups:
        raise MarioError("results must hold runs with scores of test groups (scores['groups']), got none")
    there = row_labels(result for result in results if (result.get("scores") or {}).get("groups"))
    shown = chosen_rows(rows, there, "scores of test groups")
    values = {row: [percents(results, row, "ood_test", group) for group in groups] for row in shown}
    if len(shown) <= SIDE_BY_SIDE:
        with sheet(PAGE, 2.9) as figure:
            _together(figure.subplots(), values, looks(shown), groups)
            figure.axes[0].set_ylabel(f"{metric_of(results)}, %")
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
                axis.set_ylabel(f"{metric_of(results)}, %")
    medians = "; ".join(
        f"{row}: " + ", ".join(f"{g} {np.median(v):.1f}" for g, v in zip(groups, values[row], strict=True) if len(v))
        for row in shown
    )
    return Drawing(
        figure,
        title or f"Scores on {groups[0]} to {groups[-1]}",
        f"Median {metric_of(results)} in percent over {runs_per_row(results, shown)}. {medians}.",
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
