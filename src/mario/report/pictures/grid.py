"""The sensitivity grid: two settings, a cell for each pair of values, after the paper's Figure 7 (γ and |C|)."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mario.errors import MarioError
from mario.report.pictures.palette import SEQUENTIAL, VERMILLION
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.pictures.rows import Result, mean_and_sd, metric_of

NAMES = {"gamma": "γ (weight of L_CMI)", "clusters": "|C| (prototypes)"}
_SCORES = (("ood_val", "OOD validation"), ("ood_test", "OOD test"))


def grid(results: Iterable[Result], *, down: str = "gamma", across: str = "clusters", title: str = "") -> Drawing:
    """Mean and standard deviation at each pair of values of two settings: on OOD validation, and on OOD test beside it.

    The cell best on validation, which is the one to choose, is framed in both panels. Light cells are high, and each
    panel has its own range.

    Example:
        >>> from mario.report.pictures import grid
        >>> def run(gamma, clusters, score):
        ...     settings = {"gamma": gamma, "clusters": clusters}
        ...     return {"method": "mario", "settings": settings, "scores": {"ood_val": score, "ood_test": score - 0.1}}
        >>> grid([run(0.1, 10, 0.4), run(0.1, 100, 0.5), run(1.0, 100, 0.3)]).description[:81]
        'Mean accuracy in percent. Best on OOD validation: gamma 0.1, clusters 100: 50.0 o'
    """
    results = list(results)
    cells: dict[tuple[Any, Any], list[Result]] = {}
    for result in results:
        settings = result.get("settings") or {}
        if down in settings and across in settings:
            cells.setdefault((settings[down], settings[across]), []).append(result)
    if not cells:
        raise MarioError(f"results must hold runs with the settings {down} and {across}, got none")
    downs, acrosses = (sorted({key[axis] for key in cells}, key=_numbers_first) for axis in (0, 1))
    tables = {}
    for score, _ in _SCORES:
        table = np.full((len(downs), len(acrosses), 2), np.nan)
        for (i, j), runs in cells.items():
            values = np.array([100 * v for run in runs if (v := run["scores"].get(score)) is not None])
            if len(values):
                table[downs.index(i), acrosses.index(j)] = mean_and_sd(values)
        tables[score] = table
    means = tables["ood_val"][..., 0]
    best = np.unravel_index(np.nanargmax(means), means.shape) if np.isfinite(means).any() else None
    with sheet(PAGE, 0.42 * len(downs) + 0.95) as figure:
        axes = figure.subplots(1, len(_SCORES), sharey=True)
        for axis, (score, name) in zip(axes, _SCORES, strict=True):
            _heat(axis, tables[score], several=max(map(len, cells.values())) > 1)
            axis.set_title(f"{name} {metric_of(results)}, %", loc="left")
            axis.set_xticks(np.arange(len(acrosses)) + 0.5, [_shown(value) for value in acrosses])
            axis.set_yticks(np.arange(len(downs)) + 0.5, [_shown(value) for value in downs])
            axis.set_xlabel(NAMES.get(across, across))
            if best is not None:
                _frame(axis, best)
        axes[0].set_ylabel(NAMES.get(down, down))
    return Drawing(
        figure,
        title or f"Scores for values of {down} and {across}",
        f"Mean {metric_of(results)} in percent. " + _in_words(tables, best, downs, acrosses, (down, across)),
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


def _in_words(tables: dict[str, np.ndarray], best: Any, downs: list, acrosses: list, names: tuple[str, str]) -> str:
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
