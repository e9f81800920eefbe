"""The tables of several studies in a few columns, for a page that has room for no more: a line a case."""

from collections.abc import Sequence

from mario.lab.studies.plan import Collected
from mario.report.numbers import METRICS, p_value, percent, points, to_md
from mario.report.tables.wide import Cell, WideTable, wide_table

LABELS = ("raw-features", "random-init", "erm", "grace", "mario")
"""The rows that are shown, from the least to the most; a study that lacks one has no line."""


def summary_to_markdown(studies: Sequence[Collected]) -> str:
    """OOD scores of the controls, ERM, GRACE and MARIO in every case that has a run, MARIO less GRACE with its test.

    The test is Wilcoxon's, of one comparison and not corrected; :func:`mario.report.wide_table` has the corrected ones.
    """
    tables = [table for table in map(wide_table, studies) if set(LABELS) <= set(table.rows)]
    lines = [_line(table, column.case) for table in tables for column in table.columns if column.score == "ood"]
    *before, reference, subject = LABELS
    heads = ["OOD, %", *before, reference, subject, f"{subject} − {reference}", "pairs", "p", f"the paper’s {subject}"]
    return "\n".join(
        [
            f"| {' | '.join(heads)} |",
            f"|:---|{'---:|' * (len(heads) - 1)}",
            *dict.fromkeys(line for line in lines if line),
        ]
    )


def _line(table: WideTable, case: str) -> str:
    column = next(column for column in table.columns if (column.case, column.score) == (case, "ood"))
    cells = [table.cell(label, case) for label in LABELS]
    if all(cell.ours is None for cell in cells):
        return ""
    subject = cells[-1]
    tested = ["–", "–", "–"]
    if subject.test:
        tested = [points(subject.test.mean_difference), str(subject.test.n), p_value(subject.test.p_wilcoxon)]
    metric = "" if column.metric == "accuracy" else f" ({METRICS.get(column.metric, column.metric)})"
    head = f"{to_md(column.dataset)} {to_md(column.domain)} {column.shift}{metric}"
    figures = [_score(cell) for cell in cells]
    return f"| {' | '.join([head, *figures, *tested, str(subject.paper or '–')])} |"


def _score(cell: Cell) -> str:
    short = f" ({cell.count})" if cell.ours and cell.n < cell.asked else ""
    return percent(cell.ours) + short
