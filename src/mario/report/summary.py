"""Several studies in a few columns, for a page with little room: a line per case."""

from collections.abc import Sequence

from mario.lab.studies.collect import Collected
from mario.report.numbers import metric_title, p_value, percent, points
from mario.report.tables.entries import Entry, entries
from mario.report.tables.table import Cell, Line, Table, TableColumn

LABELS = ("raw-features", "random-init", "erm", "grace", "mario")
"""The rows that are shown; a study that lacks one has no line."""


def summary_table(studies: Sequence[Collected]) -> Table:
    """OOD scores of the controls, ERM, GRACE and MARIO in every case that has a run, and MARIO minus GRACE.

    The test is Wilcoxon's, for one comparison, not corrected; :func:`mario.report.study_table` has the corrected ones.
    """
    *_, reference, subject = LABELS
    lines: dict[tuple[str, ...], Line] = {}
    for study in studies:
        found = entries(study)
        if not set(LABELS) <= {entry.label for entry in found}:
            continue
        for case in dict.fromkeys(entry.case for entry in found):
            here = {entry.label: entry for entry in found if entry.case == case}
            if any(entry.n for label, entry in here.items() if label in LABELS):
                texts = _texts([here.get(label) for label in LABELS], here[subject])
                lines.setdefault(texts, Line(cells=tuple(Cell(text=text) for text in texts), case=case.name))
    heads = [*LABELS, f"{subject} − {reference}", "pairs", "p", f"the paper’s {subject}"]
    columns = (TableColumn(head="OOD, %", names=True), *(TableColumn(head=head) for head in heads))
    return Table(name="summary", title="", columns=columns, lines=tuple(lines.values()))


def _texts(shown: Sequence[Entry | None], subject: Entry) -> tuple[str, ...]:
    case, test = subject.case, subject.test
    metric = "" if subject.metric == "accuracy" else f" ({metric_title(subject.metric)})"
    return (
        f"{case.dataset} {case.domain} {case.shift}{metric}",
        *map(_score, shown),
        *((points(test.mean_difference), str(test.n), p_value(test.p_wilcoxon)) if test else ("–", "–", "–")),
        str(subject.ood.paper or "–"),
    )


def _score(entry: Entry | None) -> str:
    if entry is None or entry.ood.ours is None:
        return "–"
    n = entry.ood.ours.n
    return percent(entry.ood.ours) + (f" ({n} of {entry.asked})" if n < entry.asked else "")
