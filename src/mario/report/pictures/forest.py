"""A forest plot (Lewis & Clarke, 2001): a difference per column with its 95 % interval, and all columns below."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mario.errors import MarioError
from mario.graphs.rules import choose
from mario.lab.statistics.paired import Paired, holm, paired
from mario.report.numbers import counted, interval, p_value, points
from mario.report.pictures.palette import BLUE, VERMILLION
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.pictures.registry import Sketch, register_picture
from mario.report.registered import registered
from mario.report.svg import INK
from mario.report.tables.entries import Entry, entries
from mario.report.tables.pooled import pool
from mario.report.tables.study import overall_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from mario.lab.studies.collect import Collected

_LINE, _TOP, _BOTTOM = 0.2, 0.3, 0.5  # inches of a line, and above and below all of them
_FROM, _TO = 2.15, PAGE - 2.55  # inches of the axis
_COLUMNS = (("points", PAGE - 2.0), ("95 % interval", PAGE - 0.82), ("n", PAGE - 0.5), ("p", PAGE - 0.02))


@dataclass(frozen=True, kw_only=True)
class ForestLine:
    """One line: ``label`` minus ``against`` in one column, or over all of them if it is ``pooled``.

    Attributes:
        name: the column.
        test: the paired differences, as fractions.
        p: the p-value that is shown, corrected or not; None for no test.
        case: the name of its case, by which a page filters; empty for a pooled line.
        over: what n counts: pairs of runs, or columns.
    """

    name: str
    label: str
    against: str
    test: Paired
    p: float | None = None
    case: str = ""
    pooled: bool = False
    over: Literal["pair", "column"] = "pair"

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        low, high = self.test.ci_low, self.test.ci_high
        return low is not None and high is not None and (low > 0 or high < 0)


def forest_lines(
    runs: "DataFrame",
    label: str,
    against: str,
    *,
    score: str = "ood_test",
    together: Literal["pairs", "columns", ""] = "pairs",
) -> list[ForestLine]:
    """A line for each case of a labeled frame that has both rows, and one of all cases if there are several.

    Args:
        runs: the frame of a study (:attr:`mario.lab.studies.collect.Collected.frame`), or of several joined.
        label: the row whose difference from the row ``against`` is shown.
        score: a column of the frame.
        together: what the last line is over: all ``pairs``, the means of ``columns``, or nothing.

    p of a case is corrected by Holm's method over the cases; that of the last line is one test.

    Example:
        >>> from mario.lab.studies.collect import labeled_frame
        >>> forest_lines(labeled_frame([]), "mario", "grace")
        []
    """
    choose("together", together, ("pairs", "columns", ""))
    names = column_names(runs)
    found = {case: pool(runs[runs["case"] == case], label, against, score=score) for case in names}
    known = {case: one.test for case, one in found.items() if one is not None}
    adjusted = holm([test.p_wilcoxon for test in known.values()])
    facts: dict[str, Any] = {"label": label, "against": against}
    lines = [
        ForestLine(name=names[case], test=test, p=p, case=case, **facts)
        for (case, test), p in zip(known.items(), adjusted, strict=True)
    ]
    everything = pool(runs, label, against, score=score)
    if len(lines) < 2 or not together or everything is None:
        return lines
    test = everything.test
    if together == "columns":
        test = paired([one.mean_difference for one in known.values()], [0.0] * len(known))
    over: Literal["pair", "column"] = "column" if together == "columns" else "pair"
    name = _all_of(len(lines))
    return [*lines, ForestLine(name=name, test=test, p=test.p_wilcoxon, pooled=True, over=over, **facts)]


def column_names(runs: "DataFrame") -> dict[str, str]:
    """Each case of a labeled frame by dataset, and by domain, shift and setting where a dataset has several.

    Example:
        >>> import pandas as pd
        >>> runs = pd.DataFrame({"case": ["a", "b"], "dataset": "webkb", "shift": ["concept", "covariate"]})
        >>> column_names(runs.assign(domain="university", setting="transductive"))
        {'a': 'webkb, concept', 'b': 'webkb, covariate'}
    """
    cases = runs.drop_duplicates("case")
    several = {name: cases[name].nunique() > 1 for name in ("shift", "setting")}
    domains = cases.groupby("dataset", sort=False)["domain"].transform("nunique") > 1
    found = {}
    for one, apart in zip(cases.to_dict("records"), domains, strict=True):
        parts = [one["dataset"], *([one["domain"]] if apart else []), *(one[n] for n, yes in several.items() if yes)]
        found[str(one["case"])] = ", ".join(map(str, parts))
    return found


def forest(lines: Sequence[ForestLine], *, title: str = "", score: str = "OOD") -> Drawing:
    """The lines from the top down; lines of another pair of rows get a heading of their own.

    A dot is filled if its interval excludes zero. Below five pairs there is no interval.

    Example:
        >>> test = paired([0.92, 0.90, 0.95, 0.91, 0.93], [0.90, 0.89, 0.91, 0.89, 0.90])
        >>> line = ForestLine(name="good-cbas", label="mario", against="grace", test=test, p=0.0625)
        >>> forest([line]).description
        'OOD, mario − grace, points. good-cbas: +2.40, 95 % interval +1.20 to +3.80, n = 5 pairs, p = 0.062.'
    """
    if not lines:
        raise MarioError("lines must hold at least one difference, got none")
    groups: dict[tuple[str, str], list[ForestLine]] = {}
    for line in lines:
        groups.setdefault((line.label, line.against), []).append(line)
    rows: list[str | ForestLine] = []
    for (label, against), group in groups.items():
        rows += [*([f"{label} − {against}"] if len(groups) > 1 else []), *group]
    height = _TOP + _LINE * len(rows) + _BOTTOM
    with sheet(PAGE, height, layout=None) as figure:
        axis = figure.add_axes((_FROM / PAGE, _BOTTOM / height, (_TO - _FROM) / PAGE, _LINE * len(rows) / height))
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.axvline(0, color=INK, linewidth=1.0, zorder=1)
        for name, at in _COLUMNS:
            figure.text(at / PAGE, 1 - (_TOP - 0.1) / height, name, ha="right", va="bottom", fontweight="bold", size=8)
        for place, row in enumerate(rows):
            y = 1 - (_TOP + _LINE * (place + 0.5)) / height
            if isinstance(row, str):
                figure.text(0.02 / PAGE, y, row, ha="left", va="center", fontweight="bold", size=8)
                continue
            _mark(axis, row, place)
            weight = "bold" if row.pooled else "normal"
            figure.text((_FROM - 0.1) / PAGE, y, row.name, ha="right", va="center", size=8, fontweight=weight)
            for text, (_, at) in zip(_texts(row), _COLUMNS, strict=True):
                figure.text(at / PAGE, y, text, ha="right", va="center", size=8, fontweight=weight)
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
        axis.margins(x=0.06)
        axis.locator_params(axis="x", nbins=6)
        axis.grid(axis="x")
        axis.set_xlabel(f"{score}, points: above 0, {_higher(groups)} is higher")
    pairs = ", ".join(f"{label} − {against}" for label, against in groups)
    return Drawing(
        figure,
        title or f"{score} score, {pairs}",
        f"{score}, " + " ".join(_in_words(pair, group) for pair, group in groups.items()),
        _caption(lines),
    )


def study_lines(study: "Collected") -> list[ForestLine]:
    """The lines of a study, with the tests of its table: the subject's, or every row's if the subject has none.

    Rows that are the subject on another encoder or host come too, each beside its own reference.
    """
    found = entries(study)
    tested = [entry for entry in found if entry.test is not None]
    marked = {entry.label for entry in tested if entry.subject} or {entry.label for entry in tested}
    overall = overall_of(study, found)
    names = column_names(study.frame)
    lines = []
    for label in dict.fromkeys(entry.label for entry in tested if entry.label in marked):
        here = [_line(entry, names) for entry in tested if entry.label == label]
        lines += here
        if (together := overall.get(label)) and len(here) > 1:
            name, test = _all_of(len(together.cases)), together.test
            lines.append(replace(here[0], name=name, test=test, p=together.p_holm, case="", pooled=True))
    return lines


def _all_of(columns: int) -> str:
    return "both columns" if columns == 2 else f"all {columns} columns"


def _line(entry: Entry, names: Mapping[str, str]) -> ForestLine:
    if entry.test is None or entry.against is None:
        raise MarioError(f"{entry.label} on {entry.case.name} has nothing to be compared with")
    name = names[entry.case.name]
    return ForestLine(
        name=name, label=entry.label, against=entry.against, test=entry.test, p=entry.p_holm, case=entry.case.name
    )


def _mark(axis: Any, line: ForestLine, y: int) -> None:
    test = line.test
    middle = 100 * test.mean_difference
    color = INK if not line.clear else VERMILLION if middle > 0 else BLUE
    if test.ci_low is not None and test.ci_high is not None:
        axis.plot([100 * test.ci_low, 100 * test.ci_high], [y, y], color=color, linewidth=1.6, zorder=2)
    axis.plot(
        [middle],
        [y],
        "D" if line.pooled else "o",
        markersize=6.5 if line.pooled else 5.5,
        # Empty in the middle where nothing is shown, so that a gray print has the difference too.
        color=color,
        fillstyle="full" if line.clear else "none",
        markeredgewidth=1.4,
        zorder=3,
    )


def _texts(line: ForestLine) -> tuple[str, ...]:
    test = line.test
    return points(test.mean_difference), interval(test), str(test.n), p_value(line.p)


def _higher(groups: Mapping[tuple[str, str], Any]) -> str:
    labels = list(dict.fromkeys(label for label, _ in groups))
    return labels[0] if len(labels) == 1 else "the first"


def _in_words(pair: tuple[str, str], group: Sequence[ForestLine]) -> str:
    said = []
    for line in group:
        difference, between, n, p = _texts(line)
        within = f", 95 % interval {between}" if line.test.ci_low is not None else ""
        tested = "no test" if line.p is None else f"p = {p}".replace("= <", "<")
        said.append(f"{line.name}: {difference}{within}, n = {counted(int(n), line.over)}, {tested}")
    return f"{' − '.join(pair)}, points. {'; '.join(said)}."


def _caption(lines: Sequence[ForestLine]) -> str:
    said = ["Dots are mean differences over pairs of the same split and seed, whiskers 95 % bootstrap intervals"]
    said[0] += " (none below five pairs)." if any(line.test.ci_low is None for line in lines) else "."
    pooled = [line for line in lines if line.pooled]
    if pooled:
        what = "pairs of all columns" if pooled[0].over == "pair" else "means of the columns"
        said.append(f"The diamond is over all {what}.")
    said.append("Filled: the interval excludes zero.")
    counts = sorted({line.test.n for line in lines if not line.pooled})
    if counts:
        n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        said.append(f"n is {n} pairs per line; p is Wilcoxon’s, with Holm’s correction.")
    return " ".join(said)


@register_picture("forest")
def sketches(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    # A registered study has one test, and a picture of its own.
    if not registered(study) and (lines := study_lines(study)):
        yield Sketch(partial(forest, lines, title=f"Differences per column: {study.plan.title}"))
