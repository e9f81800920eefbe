"""Bars with error bars: test groups of one case (the paper's Figure 4) or ID and OOD of several (Figures 5 and 6)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mario.errors import MarioError
from mario.report.pictures.palette import looks
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.pictures.registry import Sketch, register_picture
from mario.report.pictures.scores import (
    group_percents,
    groups_of,
    in_order,
    mean_and_sd,
    metric_of,
    percents,
    rows_of,
    runs_per_row,
    where,
)
from mario.report.svg import INK

if TYPE_CHECKING:
    from pandas import DataFrame

    from mario.lab.studies.collect import Collected

_FIGURE_AT = 10.0  # width in points from which a bar has its figure above it


def bars(cases: Mapping[str, "DataFrame"], *, rows: Sequence[str] | None = None, title: str = "") -> Drawing:
    """Mean and standard deviation over runs of every row, in clusters.

    A case whose runs have test groups has a cluster for each of them; any other has one for ID and one for OOD. Bars
    start at zero.

    Example:
        >>> runs = pd.DataFrame({"id_test": 0.9, "ood_test": [0.7, 0.8], "groups": [{}, {}]})
        >>> bars({"good-cbas": runs.assign(method="mario", metric="accuracy")}).description
        'Mean accuracy in percent over 2 runs. good-cbas ID: mario 90.0 ± 0.0. good-cbas OOD: mario 75.0 ± 7.1.'
    """
    every = pd.concat(list(cases.values()))
    shown = list(rows_of(every) if rows is None else rows)
    clusters: list[tuple[str, dict[str, np.ndarray]]] = []
    for case, runs in cases.items():
        if groups := groups_of(runs):
            found = {group: {row: group_percents(runs, row, group) for row in shown} for group in groups}
        else:
            both = {"ID": "id_test", "OOD": "ood_test"}
            found = {f"{case}\n{name}": {row: percents(runs, row, s) for row in shown} for name, s in both.items()}
        clusters += [(name, values) for name, values in found.items() if any(map(len, values.values()))]
    if not clusters:
        raise MarioError(f"cases must have test scores of {', '.join(shown) or 'some row'}, got none")
    look = looks(shown)
    pitch = 0.84 / len(shown)
    points = (PAGE - 0.6) * 72 / len(clusters) * pitch
    highest = 0.0
    with sheet(PAGE, 2.9) as figure:
        axis = figure.subplots()
        for place, row in enumerate(shown):
            for at, (_, values) in enumerate(clusters):
                if not len(values[row]):
                    continue
                mean, sd = mean_and_sd(values[row])
                x = at + (place - (len(shown) - 1) / 2) * pitch
                axis.bar(
                    *(x, mean, 0.92 * pitch),
                    yerr=sd if len(values[row]) > 1 else None,
                    color=look[row].color,
                    hatch=look[row].hatch,
                    edgecolor=INK,
                    linewidth=0.6,
                    error_kw={"ecolor": INK, "elinewidth": 0.9, "capsize": min(2.0, points / 5)},
                )
                highest = max(highest, mean + sd)
                if points >= _FIGURE_AT:
                    text = f"{mean:.1f}"
                    axis.annotate(
                        *(text, (x, mean + sd)),
                        xytext=(0, 3),
                        textcoords="offset points",
                        ha="center",
                        va="bottom",
                        fontsize=8,
                        rotation=0 if points >= 24 else 90,
                    )
            key = {"color": look[row].color, "hatch": look[row].hatch, "edgecolor": INK, "linewidth": 0.6}
            axis.bar([np.nan], [np.nan], label=row, **key)
        # Room for the figures above the highest bar, and no tick above 100.
        top = highest * (1.18 if points >= _FIGURE_AT else 1.04) or 1.0
        axis.set_ylim(0, top)
        axis.set_yticks([tick for tick in axis.get_yticks() if tick <= min(top, 100)])
        axis.set_xticks(range(len(clusters)), [name for name, _ in clusters])
        axis.tick_params(axis="x", length=0)
        axis.set_xlim(-0.5, len(clusters) - 0.5)
        axis.set_ylabel(f"{metric_of(every)}, %")
        axis.grid(axis="y")
        figure.legend(loc="outside lower center", ncols=min(6, len(shown)), handlelength=1.6)
    sentences = []
    for name, values in clusters:
        each = [f"{row} {mean_and_sd(v)[0]:.1f} ± {mean_and_sd(v)[1]:.1f}" for row, v in values.items() if len(v)]
        sentences.append(f"{' '.join(name.split())}: {', '.join(each)}.")
    n = runs_per_row(every, shown) if len(cases) == 1 else "the runs"
    return Drawing(
        figure, title or "Scores in groups", f"Mean {metric_of(every)} in percent over {n}. {' '.join(sentences)}"
    )


@register_picture("bars")
def sketches(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    """A picture for each case with test groups, and one of all the others."""
    plain = []
    for case in study.cases:
        if groups_of(case.frame):
            title = f"Scores by test group, {where(case.case)}"
            shown = in_order(study.plan, rows_of(case.frame))
            yield Sketch(partial(bars, {case.case.dataset: case.frame}, rows=shown, title=title), case.name)
        elif len(case.frame):
            plain.append(case)
    if plain:
        alone = len({case.case.dataset for case in plain}) == len(plain)
        runs = {case.case.dataset if alone else case.name: case.frame for case in plain}
        shown = in_order(study.plan, rows_of(pd.concat(list(runs.values()))))
        under = {where(case.case, dataset=False) for case in plain}
        title = f"ID and OOD scores, {under.pop()}" if len(under) == 1 else "ID and OOD scores"
        yield Sketch(partial(bars, runs, rows=shown, title=title))
