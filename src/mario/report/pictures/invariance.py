"""Invariance over training: average alignment of views against worst-case alignment (the paper's Section 3.1)."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mario.report.pictures.palette import looks
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.pictures.registry import Sketch, register_picture
from mario.report.pictures.scores import band, chosen_rows, in_order, rows_of, where

if TYPE_CHECKING:
    from pandas import DataFrame

    from mario.lab.studies.collect import Collected

_PANELS = (("align_mean", "average over views"), ("align_worst", "worst case"))


def rows_with_invariance(runs: "DataFrame") -> list[str]:
    """Rows whose runs measured alignment at two checkpoints or more (the setting ``invariance``)."""
    return rows_of(
        runs[runs["curve"].map(lambda curve: sum("align_worst" in point.scores for point in curve) > 1).astype(bool)]
    )


def invariance_curves(runs: "DataFrame", *, rows: Sequence[str] | None = None, title: str = "") -> Drawing:
    """Two panels on one scale, average and worst case; a line per row, mean over runs with a band of one sd.

    Alignment is a squared distance: low means invariant.

    Example:
        >>> import pandas as pd
        >>> from mario.lab.result import CurvePoint
        >>> curve = tuple(CurvePoint(s, {"align_mean": 0.1 * s, "align_worst": 0.2 * s}) for s in (1, 2))
        >>> invariance_curves(pd.DataFrame({"method": ["mario"], "curve": [curve]})).description
        'At the last checkpoint, average and worst case: mario 0.200 and 0.400.'
    """
    shown = chosen_rows(rows, rows_with_invariance(runs), "alignment at two checkpoints or more")
    look = looks(shown)
    ends: dict[str, list[float]] = {}
    top = 0.0
    with sheet(PAGE, 2.7) as figure:
        axes = figure.subplots(1, len(_PANELS), sharey=True)
        for axis, (key, name) in zip(axes, _PANELS, strict=True):
            for row in shown:
                steps, mean, sd = band(runs, row, key)
                axis.fill_between(steps, mean - sd, mean + sd, color=look[row].color, alpha=0.13, linewidth=0)
                axis.plot(
                    *(steps, mean),
                    color=look[row].color,
                    label=row,
                    linewidth=1.6,
                    marker=look[row].marker,
                    markersize=4,
                    markevery=max(1, len(steps) // 6),
                    **({"dashes": look[row].dash} if look[row].dash else {}),
                )
                ends.setdefault(row, []).append(float(mean[-1]))
                top = max(top, float((mean + sd).max()))
            axis.set_title(name, loc="left")
            axis.set_xlabel("optimizer steps")
            axis.locator_params(axis="x", nbins=5)
            axis.grid(axis="y")
        axes[0].set_ylim(0, 1.05 * top or 1.0)
        axes[0].set_ylabel("alignment (low: invariant)")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(shown)), handlelength=2.6)
    each = "; ".join(f"{row} {average:.3f} and {worst:.3f}" for row, (average, worst) in ends.items())
    return Drawing(
        figure,
        title or f"Invariance of {', '.join(shown)}",
        f"At the last checkpoint, average and worst case: {each}.",
    )


@register_picture("invariance")
def sketches(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    for case in study.cases:
        if rows := in_order(study.plan, rows_with_invariance(case.frame)):
            title = f"Average and worst-case alignment, {where(case.case)}"
            yield Sketch(partial(invariance_curves, case.frame, rows=rows, title=title), case.name)
