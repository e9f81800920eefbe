"""Ours beside the paper's: a dot and a bar of one standard deviation each, row by row."""

from collections.abc import Iterable
from typing import Any

from mario.errors import MarioError
from mario.report.numbers import METRICS
from mario.report.pictures.palette import BLUE, VERMILLION
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.tables.rows import LongRow

_COLUMNS = (("id", "ID"), ("ood", "OOD"))


def differences(rows: Iterable[LongRow], *, title: str = "") -> Drawing:
    """The rows of one case that the paper has too, ID and OOD test: our mean ± sd, and the paper's below it.

    Example:
        >>> from mario.lab.studies.plan import Collected, CollectedCase, make_plan
        >>> from mario.lab.studies.read import find_study
        >>> from mario.report.pictures import differences
        >>> from mario.report.tables import long_rows
        >>> plan = make_plan(find_study("ablation"), datasets=["good-cbas"], seeds=1)
        >>> place = {"name": "good-cbas-concept", "dataset": "good-cbas", "domain": "color", "shift": "concept"}
        >>> result = {"label": "mario", "split_seed": 0, "seed": 0, "scores": {"id_test": 0.94, "ood_test": 0.91}}
        >>> case = CollectedCase(**place, setting="transductive", asked=1, missing=None, results=[result])
        >>> differences(long_rows(Collected(plan, [case]))).description
        'Accuracy in percent, ours and the paper’s. ID: mario 94.0 and 94.4. OOD: mario 91.0 and 91.3.'
    """
    both = list(rows)
    shown = [row for row in both if any(_pair(row, column) for column, _ in _COLUMNS)]
    columns = [(column, name) for column, name in _COLUMNS if any(_pair(row, column) for row in shown)]
    if not shown:
        raise MarioError("rows must hold one with a score of ours and a figure of the paper, got none")
    metric = METRICS.get(shown[0].metric, shown[0].metric)
    sentences = []
    with sheet(PAGE, 0.3 * len(shown) + 0.9) as figure:
        axes = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axis, (column, name) in zip(axes, columns, strict=True):
            words = []
            for at, row in enumerate(shown):
                pair = _pair(row, column)
                if pair:
                    ours, theirs = pair
                    _dot(axis, 100 * ours.mean, 100 * (ours.sd or 0.0), at - 0.14, VERMILLION, "o", True, "ours")
                    _dot(axis, theirs.mean, theirs.sd, at + 0.14, BLUE, "s", False, "the paper’s")
                    words.append(f"{row.label} {100 * ours.mean:.1f} and {theirs.mean:.1f}")
            axis.set_title(f"{name} {metric}, %", loc="left")
            axis.set_yticks(range(len(shown)), [row.label for row in shown])
            axis.set_ylim(len(shown) - 0.5, -0.5)
            axis.tick_params(axis="y", length=0)
            axis.grid(axis="both")
            sentences.append(f"{name}: {', '.join(words)}.")
        keys = dict(zip(*axes[0].get_legend_handles_labels()[::-1], strict=True))
        figure.legend(list(keys.values()), list(keys), loc="outside lower center", ncols=2)
    said = f"{metric[0].upper()}{metric[1:]} in percent, ours and the paper’s. {' '.join(sentences)}"
    return Drawing(figure, title or "Ours beside the paper’s", said)


def _pair(row: LongRow, column: str) -> tuple[Any, Any] | None:
    ours, theirs = getattr(row, column), getattr(row, f"paper_{column}")
    return None if ours is None or theirs is None or theirs.mean is None else (ours, theirs)


def _dot(axis: Any, mean: float, sd: float, y: float, color: str, marker: str, full: bool, label: str) -> None:
    axis.errorbar(
        *(mean, y),
        xerr=sd,
        color=color,
        marker=marker,
        markersize=4.5,
        # Its middle is empty, so that it shows as another kind in gray too.
        markerfacecolor=color if full else "none",
        linewidth=1.2,
        capsize=2,
        linestyle="",
        label=label,
    )
