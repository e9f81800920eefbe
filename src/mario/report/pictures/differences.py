"""Our scores beside the paper's: a dot and a bar of one standard deviation each, row by row."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mario.errors import MarioError
from mario.report.numbers import metric_title
from mario.report.pictures.palette import BLUE, VERMILLION
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.pictures.registry import Sketch, register_picture
from mario.report.pictures.scores import where
from mario.report.tables.entries import Entry, entries

if TYPE_CHECKING:
    from mario.lab.studies.collect import Collected

_SCORES = (("id_test", "ID"), ("ood_test", "OOD"))


def differences(found: Iterable[Entry], *, title: str = "") -> Drawing:
    """The rows of one case that the paper also has, ID and OOD test: our mean ± sd, and the paper's below it.

    Example:
        >>> from mario.lab.case import Case
        >>> from mario.lab.statistics.paired import summarize
        >>> from mario.lab.studies.paper import Figure
        >>> from mario.report import Entry, Score
        >>> score = Score(ours=summarize([0.91]), paper=Figure(91.28, 1.1, 10, "Table 2"))
        >>> facts = {"study": "mine", "case": Case.find("good-cbas"), "encoder": "gcn", "metric": "accuracy"}
        >>> facts |= {"supervised": False, "asked": 1, "scores": {"id_test": Score(), "ood_test": score}}
        >>> differences([Entry(label="mario", method="mario", **facts)]).description
        'Accuracy in percent, ours and the paper’s. OOD: mario 91.0 and 91.3.'
    """
    shown = [entry for entry in found if _both(entry)]
    columns = [(score, name) for score, name in _SCORES if any(entry.scores[score].off is not None for entry in shown)]
    if not shown:
        raise MarioError("found must have an entry with a score of ours and a figure of the paper, got none")
    metric = metric_title(shown[0].metric)
    sentences = []
    with sheet(PAGE, 0.3 * len(shown) + 0.9) as figure:
        axes = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axis, (score, name) in zip(axes, columns, strict=True):
            words = []
            for at, entry in enumerate(shown):
                ours, theirs = entry.scores[score].ours, entry.scores[score].paper
                if ours and theirs and theirs.mean is not None:
                    _dot(axis, 100 * ours.mean, 100 * (ours.sd or 0.0), at - 0.14, VERMILLION, "o", True, "ours")
                    _dot(axis, theirs.mean, theirs.sd or 0.0, at + 0.14, BLUE, "s", False, "the paper’s")
                    words.append(f"{entry.label} {100 * ours.mean:.1f} and {theirs.mean:.1f}")
            axis.set_title(f"{name} {metric}, %", loc="left")
            axis.set_yticks(range(len(shown)), [entry.label for entry in shown])
            axis.set_ylim(len(shown) - 0.5, -0.5)
            axis.tick_params(axis="y", length=0)
            axis.grid(axis="both")
            sentences.append(f"{name}: {', '.join(words)}.")
        keys = dict(zip(*axes[0].get_legend_handles_labels()[::-1], strict=True))
        figure.legend(list(keys.values()), list(keys), loc="outside lower center", ncols=2)
    said = f"{metric[0].upper()}{metric[1:]} in percent, ours and the paper’s. {' '.join(sentences)}"
    return Drawing(figure, title or "Ours beside the paper’s", said)


@register_picture("differences")
def sketches(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    found = entries(study)
    for case in study.cases:
        here = [entry for entry in found if entry.case == case.case]
        if any(map(_both, here)):
            yield Sketch(partial(differences, here, title=f"Ours beside the paper’s, {where(case.case)}"), case.name)


def _both(entry: Entry) -> bool:
    return any(entry.scores[score].off is not None for score, _ in _SCORES)


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
