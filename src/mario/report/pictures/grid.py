"""The sensitivity grid: two settings, a cell for each pair of values, after the paper's Figure 7 (γ and |C|)."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mario.errors import MarioError
from mario.report.pictures.palette import SEQUENTIAL, VERMILLION
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.pictures.registry import Sketch, register_picture
from mario.report.pictures.scores import mean_and_sd, metric_of, where

if TYPE_CHECKING:
    from pandas import DataFrame

    from mario.lab.studies.collect import Collected, CollectedCase

NAMES = {"gamma": "γ (weight of L_CMI)", "clusters": "|C| (prototypes)"}
_SCORES = (("ood_val", "OOD validation"), ("ood_test", "OOD test"))


def grid(runs: "DataFrame", *, down: str = "gamma", across: str = "clusters", title: str = "") -> Drawing:
    """Mean and standard deviation for each pair of values of two settings, on OOD validation and on OOD test.

    The cell best on validation, which is the one to choose, is framed in both panels. Light cells are high, and each
    panel has its own range.

    Example:
        >>> import pandas as pd
        >>> cells = [(0.1, 10, 0.4), (0.1, 100, 0.5), (1.0, 100, 0.3)]
        >>> runs = pd.DataFrame({"ood_val": [score for *_, score in cells], "metric": "accuracy"})
        >>> runs["ood_test"] = runs["ood_val"] - 0.1
        >>> runs["settings"] = [{"gamma": gamma, "clusters": clusters} for gamma, clusters, _ in cells]
        >>> grid(runs).description[:81]
        'Mean accuracy in percent. Best on OOD validation: gamma 0.1, clusters 100: 50.0 o'
    """
    cells: dict[tuple[Any, Any], list[int]] = {}
    for place, settings in enumerate(runs["settings"]):
        if down in settings and across in settings:
            cells.setdefault((settings[down], settings[across]), []).append(place)
    if not cells:
        raise MarioError(f"runs must have the settings {down} and {across}, got none")
    downs, acrosses = (sorted({key[axis] for key in cells}, key=_numbers_first) for axis in (0, 1))
    tables = {}
    for score, _ in _SCORES:
        table = np.full((len(downs), len(acrosses), 2), np.nan)
        for (i, j), places in cells.items():
            values = 100 * runs[score].iloc[places].dropna().to_numpy(dtype=float)
            if len(values):
                table[downs.index(i), acrosses.index(j)] = mean_and_sd(values)
        tables[score] = table
    means = tables["ood_val"][..., 0]
    best = np.unravel_index(np.nanargmax(means), means.shape) if np.isfinite(means).any() else None
    with sheet(PAGE, 0.42 * len(downs) + 0.95) as figure:
        axes = figure.subplots(1, len(_SCORES), sharey=True)
        for axis, (score, name) in zip(axes, _SCORES, strict=True):
            _heat(axis, tables[score], several=max(map(len, cells.values())) > 1)
            axis.set_title(f"{name} {metric_of(runs)}, %", loc="left")
            axis.set_xticks(np.arange(len(acrosses)) + 0.5, [_shown(value) for value in acrosses])
            axis.set_yticks(np.arange(len(downs)) + 0.5, [_shown(value) for value in downs])
            axis.set_xlabel(NAMES.get(across, across))
            if best is not None:
                _frame(axis, best)
        axes[0].set_ylabel(NAMES.get(down, down))
    return Drawing(
        figure,
        title or f"Scores for values of {down} and {across}",
        f"Mean {metric_of(runs)} in percent. " + _in_words(tables, best, downs, acrosses, (down, across)),
    )


def _numbers_first(value: Any) -> tuple[bool, Any]:
    return (False, value) if isinstance(value, int | float) else (True, str(value))


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _heat(axis: Any, table: np.ndarray, several: bool) -> None:
    mean, sd = table[..., 0], table[..., 1]
    heat = axis.pcolormesh(np.ma.masked_invalid(mean), cmap=SEQUENTIAL, edgecolors="face", linewidth=0.3)
    for (i, j), value in np.ndenumerate(mean):
        if np.isnan(value):
            axis.text(j + 0.5, i + 0.5, "–", ha="center", va="center", fontsize=8)
            continue
        # Black or white, whichever is further from the cell; they stay as they are on a dark page, as the cells do.
        color = "#000000" if _luminance(heat.to_rgba(value)) > 0.18 else "#FFFFFF"
        text = f"{value:.1f}\n± {sd[i, j]:.1f}" if several else f"{value:.1f}"
        axis.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=8, color=color, linespacing=1.05)
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)


def _luminance(color: Any) -> float:
    # Relative luminance of sRGB.
    channels = np.asarray(color[:3])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def _frame(axis: Any, cell: Any) -> None:
    from matplotlib.patches import Rectangle

    # White around vermillion is seen on every color of the map.
    for color, width in (("#FFFFFF", 4.0), (VERMILLION, 2.0)):
        axis.add_patch(Rectangle((cell[1], cell[0]), 1, 1, fill=False, edgecolor=color, linewidth=width, clip_on=False))


def _in_words(
    tables: dict[str, np.ndarray], best: Any, downs: list[Any], acrosses: list[Any], names: tuple[str, str]
) -> str:
    sentences = []
    if best is not None:
        i, j = best
        validation, test = (tables[score][i, j, 0] for score, _ in _SCORES)
        sentences.append(
            f"Best on OOD validation: {names[0]} {_shown(downs[i])}, {names[1]} {_shown(acrosses[j])}: "
            f"{validation:.1f} on OOD validation, {test:.1f} on OOD test."
        )
    for i, value in enumerate(downs):
        row = ", ".join(f"{mean:.1f}" if np.isfinite(mean) else "none" for mean in tables["ood_test"][i, :, 0])
        sentences.append(f"OOD test at {names[0]} {_shown(value)}: {row}.")
    return " ".join(sentences)


@register_picture("grid")
def sketches(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    for case in study.cases:
        methods = list(dict.fromkeys(case.frame["method"]))
        for method in methods:
            suffix = method if len(methods) > 1 else ""
            yield Sketch(partial(_of_method, case, method), case.name, suffix)


def _of_method(case: "CollectedCase", method: str) -> Drawing:
    """Over the two settings in which the rows of ``method`` differ."""
    jobs = [job for job in case.planned.jobs if job.spec.method == method]
    varied = [k for k, value in jobs[0].spec.settings.items() if any(job.spec.settings.get(k) != value for job in jobs)]
    varied.sort(key=lambda name: jobs[0].label.find(f"{name}="))  # labels name them in the order of the study
    if len(varied) != 2:
        raise MarioError(f"a grid needs two settings that vary, {method} has {', '.join(varied) or 'none'}")
    runs = case.frame[case.frame["method"] == method]
    title = f"Scores of {method} over a grid of settings, {where(case.case)}"
    return grid(runs, down=varied[0], across=varied[1], title=title)
