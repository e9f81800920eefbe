"""The columns of tables, each declared once: those of a case in a study's table, and those of the long form.

To add a column, add a line to `CASE_COLUMNS` or `LONG_COLUMNS`; every form of the table then has it.
"""

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from mario.lab.statistics.paired import Paired
from mario.report.numbers import p_equals, p_value, percent, points
from mario.report.tables.entries import LEVEL, Entry, Score
from mario.report.tables.table import Cell, Line, Table, TableColumn


@dataclass(frozen=True, kw_only=True)
class CaseColumn:
    """A column of each case in a study's table.

    Attributes:
        head: its head; ``{against}`` becomes the name of the reference.
        cell: the cell of an entry.
        score: the score that it shows; a case in which neither we nor the paper have it has no such column.
        detail: whether only a detailed table has it.
        optional: whether it is left out where there is no room.
    """

    head: str
    cell: Callable[[Entry], Cell]
    score: str
    detail: bool = False
    optional: bool = False


def score_cell(entry: Entry, score: Score, kind: str, *, tested: bool = False) -> Cell:
    """Mean ± sd of our runs and how many, the paper's figure, and the arrow of the test if the score was ``tested``."""
    n = score.ours.n if score.ours else 0
    direction = direction_of(entry.test, entry.p_holm) if tested else ""
    return Cell(
        text=percent(score.ours) if score.ours else _empty(entry),
        sort=f"{100 * score.ours.mean:.4f}" if score.ours else "",
        emphasis={1: "best", 2: "second"}.get(score.place or 0, ""),  # type: ignore[arg-type]
        count=(str(n) if n == entry.asked else f"{n} of {entry.asked}") if n else "",
        short=0 < n < entry.asked,
        direction=direction,  # type: ignore[arg-type]
        test=test_words(direction, entry.against, entry.p_holm),
        paper=str(score.paper or ""),
        off=_off(score),
        far=score.off_sd is not None and abs(score.off_sd) > 2,
        note="; ".join(part for part in (_over_splits(score, n), entry.why) if part),
        kind=kind,
    )


def direction_of(test: Paired | None, p_holm: float | None) -> str:
    """``above`` or ``below`` where the corrected test shows it, else nothing."""
    return {1: "above", -1: "below"}.get(test.shown(p_holm, LEVEL) if test else 0, "")


def test_words(direction: str, against: str | None, p_holm: float | None) -> str:
    return f"{direction} {against}, {p_equals(p_holm)} after Holm’s correction" if direction else ""


def _difference(entry: Entry) -> Cell:
    if entry.test is None:
        return Cell(kind="overall")
    return Cell(
        text=points(entry.test.mean_difference),
        sort=f"{100 * entry.test.mean_difference:.4f}",
        detail=f"{entry.test.n} pairs, {p_equals(entry.p_holm)}",
        kind="overall",
    )


CASE_COLUMNS = [
    CaseColumn(head="ID", score="id_test", cell=lambda e: score_cell(e, e.id, "id"), optional=True),
    CaseColumn(head="OOD", score="ood_test", cell=lambda e: score_cell(e, e.ood, "ood", tested=True)),
    CaseColumn(head="gap", score="gap", cell=lambda e: Cell(text=percent(e.scores["gap"].ours)), detail=True),
    CaseColumn(head="OOD − {against}", score="ood_test", cell=_difference, detail=True),
]
"""The columns of a case in a study's table; a column for each of its test groups comes after them."""


@dataclass(frozen=True)
class LongColumn:
    """A column of the long form: its name and its value, None if there is none. Scores are percent."""

    name: str
    value: Callable[[Entry], Any]


def _of_test(name: str, scale: float = 1) -> Callable[[Entry], Any]:
    def value(entry: Entry) -> Any:
        found = getattr(entry.test, name) if entry.test else None
        return found if found is None or scale == 1 else scale * found

    return value


def _mean_and_sd(name: str, score: str) -> list[LongColumn]:
    return [
        LongColumn(f"{name}_mean", lambda e: 100 * s.mean if (s := e.scores[score].ours) else None),
        LongColumn(f"{name}_sd", lambda e: 100 * s.sd if (s := e.scores[score].ours) and s.sd is not None else None),
    ]


def _by_split(name: str, score: str) -> list[LongColumn]:
    def sd(entry: Entry) -> float | None:
        splits = entry.scores[score].by_split
        return None if splits is None or splits.sd is None else 100 * splits.sd

    return [
        LongColumn(f"{name}_splits", lambda e: s.n_splits if (s := e.scores[score].by_split) else None),
        LongColumn(f"{name}_sd_by_split", sd),
    ]


def _of_paper(name: str, score: str) -> list[LongColumn]:
    return [
        LongColumn(f"paper_{name}_mean", lambda e: f.mean if (f := e.scores[score].paper) else None),
        LongColumn(f"paper_{name}_sd", lambda e: f.sd if (f := e.scores[score].paper) else None),
        LongColumn(f"{name}_difference", lambda e: e.scores[score].off),
        LongColumn(f"{name}_difference_in_sd", lambda e: e.scores[score].off_sd),
    ]


LONG_COLUMNS = [
    LongColumn("study", lambda e: e.study),
    LongColumn("case", lambda e: e.case.name),
    LongColumn("dataset", lambda e: e.case.dataset),
    LongColumn("domain", lambda e: e.case.domain),
    LongColumn("shift", lambda e: e.case.shift),
    LongColumn("setting", lambda e: e.case.setting),
    LongColumn("metric", lambda e: e.metric),
    LongColumn("label", lambda e: e.label),
    LongColumn("method", lambda e: e.method),
    LongColumn("encoder", lambda e: e.encoder),
    LongColumn("asked", lambda e: e.asked),
    LongColumn("n", lambda e: e.n),
    *_mean_and_sd("id", "id_test"),
    *_by_split("id", "id_test"),
    *_mean_and_sd("ood", "ood_test"),
    *_by_split("ood", "ood_test"),
    *_mean_and_sd("ood_by_id_val", "ood_test_by_id_val"),
    *_mean_and_sd("gap", "gap"),
    LongColumn("paper", lambda e: f.table if (f := e.ood.paper or e.id.paper) else None),
    *_of_paper("id", "id_test"),
    *_of_paper("ood", "ood_test"),
    LongColumn("against", lambda e: e.against),
    LongColumn("pairs", _of_test("n")),
    LongColumn("mean_difference", _of_test("mean_difference", 100)),
    LongColumn("ci_low", _of_test("ci_low", 100)),
    LongColumn("ci_high", _of_test("ci_high", 100)),
    LongColumn("wins", _of_test("wins")),
    LongColumn("ties", _of_test("ties")),
    LongColumn("losses", _of_test("losses")),
    LongColumn("p", _of_test("p_wilcoxon")),
    LongColumn("p_holm", lambda e: e.p_holm),
    LongColumn("why", lambda e: e.why),
]
"""The columns of the long form. ``ci`` is the 95 % bootstrap interval, which needs five pairs."""


def long_table(found: Sequence[Entry], *, title: str) -> Table:
    """The long form: a line per case and row, with all columns but the study.

    Example:
        >>> [column.head for column in long_table([], title="Every case").columns[:3]]
        ['case', 'dataset', 'domain']
    """
    shown = [column for column in LONG_COLUMNS if column.name != "study"]
    return Table(
        name="long",
        title=title,
        columns=tuple(TableColumn(head=c.name.replace("_", " "), names=c.name == "label") for c in shown),
        lines=tuple(
            Line(cells=tuple(_long_cell(c, entry) for c in shown), label=entry.label, case=entry.case.name)
            for entry in found
        ),
        style="long",
    )


def to_csv(found: Iterable[Entry]) -> str:
    """The long form as CSV, with the columns of `LONG_COLUMNS`.

    Example:
        >>> print(to_csv([])[:42])
        study,case,dataset,domain,shift,setting,me
    """
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in LONG_COLUMNS])
    for entry in found:
        values = [column.value(entry) for column in LONG_COLUMNS]
        writer.writerow([round(value, 6) if isinstance(value, float) else value for value in values])
    return out.getvalue()


def _long_cell(column: LongColumn, entry: Entry) -> Cell:
    value = column.value(entry)
    if value is None or value == "":
        return Cell()
    text = f"{value:.2f}" if isinstance(value, float) else str(value)
    text = p_value(value) if column.name in ("p", "p_holm") else text
    return Cell(text=text, sort=str(value))


def _empty(entry: Entry) -> str:
    """Why there is no score, in a word."""
    if not entry.asked:
        return "–"
    if entry.missing:
        return "no data"
    if entry.n:
        return "–"  # there are runs, without this score
    return "failed" if "failed" in entry.why else "not done"


def _off(score: Score) -> str:
    if score.off_sd is not None:
        text = f"{score.off_sd:+.1f}"
        return f"{'0.0' if float(text) == 0 else text.replace('-', '−')} sd"
    return "" if score.off is None else f"{points(score.off / 100)} points"  # the paper's sd is 0


def _over_splits(score: Score, n: int) -> str:
    """The spread over splits, where that is not the spread over runs."""
    splits = score.by_split
    if splits is None or splits.sd is None or splits.n_splits == n:
        return ""
    return f"± {100 * splits.sd:.2f} over the means of {splits.n_splits} splits"
