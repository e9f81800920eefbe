"""The table of a study as the paper prints it: a line per method, and columns in and out of distribution per case."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from mario.lab.case import Case
from mario.lab.statistics.paired import holm
from mario.lab.studies.collect import Collected, CollectedCase
from mario.report.numbers import metric_title, p_equals, percent, points
from mario.report.tables.columns import CASE_COLUMNS, CaseColumn, direction_of, score_cell, test_words
from mario.report.tables.entries import Entry, Score, entries, summary_of, unplanned
from mario.report.tables.notes import notes
from mario.report.tables.pooled import Pooled, pool
from mario.report.tables.table import Cell, Line, Table, TableColumn


def study_table(study: Collected, *, detail: bool = False) -> Table:
    """The table of a study so far: every row and every case of its plan, whether or not they were run.

    Columns are ID and OOD of each case, then its test groups; a column that neither we nor the paper have is left out.
    The last column compares each row with its reference over all cases, if there are several. With ``detail`` each case
    also has the gap between ID and OOD and the difference from the reference.

    Example:
        >>> from pathlib import Path
        >>> from mario.lab.studies.collect import collect
        >>> from mario.lab.studies.plan import make_plan
        >>> from mario.lab.studies.read import find_study
        >>> plan = make_plan(find_study("ablation"), datasets=["good-cbas"], seeds=1)
        >>> table = study_table(collect(plan, Path("no runs yet")))
        >>> [line.label for line in table.lines], [column.head for column in table.columns]
        (['mario', 'mario w/o ad', 'mario w/o cmi', 'mario w/o cmi, ad'], ['method', 'ID', 'OOD'])
        >>> cell = table.cell("mario", "OOD")
        >>> cell.text, cell.paper
        ('not done', '91.28 ± 1.10')
    """
    plan, found = study.plan, entries(study)
    there = dict.fromkeys(entry.label for entry in found)
    labels = list(dict.fromkeys([*(label for label in plan.rows if label in there), *there]))
    by_place = {(entry.label, entry.case): entry for entry in found}
    for case in study.cases:
        for label in labels:
            if (label, case.case) not in by_place:
                by_place[label, case.case] = unplanned(plan, case, label)
    columns = [
        (case.case, column)
        for case in study.cases
        for column in _case_columns([by_place[label, case.case] for label in labels], detail)
    ]
    overall = overall_of(study, found)
    heads = [TableColumn(head="method", names=True), *_heads(columns, by_place, labels)]
    if overall:
        heads.append(TableColumn(head=f"OOD − {_against(found)}", group="all cases"))
    return Table(
        name=plan.study,
        title=f"{plan.title} ({plan.paper} of the paper)" if plan.paper else plan.title,
        columns=tuple(heads),
        lines=tuple(
            Line(
                cells=(
                    Cell(text=label),
                    *(column.cell(by_place[label, case]) for case, column in columns),
                    *([_overall(overall.get(label))] if overall else []),
                ),
                label=label,
                kind=_kind(found, label),
            )
            for label in labels
        ),
        notes=tuple(notes(study, found, overall=bool(overall))),
        style="wide",
    )


def overall_of(study: Collected, found: Sequence[Entry]) -> dict[str, Pooled]:
    """Each row that has a reference, compared with it over all cases; nothing if there is only one case."""
    against = {entry.label: entry.against for entry in found if entry.against}
    pooled = {label: pool(study.frame, label, other) for label, other in against.items()}
    known = {label: one for label, one in pooled.items() if one is not None}
    if not any(len(one.cases) > 1 for one in known.values()):
        return {}
    adjusted = holm([one.test.p_wilcoxon for one in known.values()])
    return {label: replace(one, p_holm=p) for (label, one), p in zip(known.items(), adjusted, strict=True)}


def validation_table(case: CollectedCase) -> Table:
    """Rows by their validation scores only, for choices that must not look at a test set."""
    shown = {"ID validation": "id_val", "OOD validation": "ood_val"}
    lines = []
    for label in dict.fromkeys(case.frame["label"]):
        runs = case.frame[case.frame["label"] == label]
        cells = [_plain(percent(summary_of(runs[name]))) for name in shown.values()]
        lines.append(Line(cells=(Cell(text=label), _plain(str(len(runs))), *cells), label=label))
    return Table(
        name=case.name,
        title=f"{case.name}: validation scores, percent, mean ± sd",
        columns=(
            TableColumn(head="variant", names=True),
            TableColumn(head="n"),
            *(TableColumn(head=head) for head in shown),
        ),
        lines=tuple(lines),
    )


def _plain(text: str) -> Cell:
    return Cell(text=text, sort="" if text == "–" else text.partition(" ")[0])


def _case_columns(of_case: Sequence[Entry], detail: bool) -> list[CaseColumn]:
    def known(column: CaseColumn) -> bool:
        scores = [entry.scores[column.score] for entry in of_case]
        return any(score.ours or score.paper for score in scores) or column.head == "OOD"

    groups = dict.fromkeys(name for entry in of_case for name in entry.groups)
    return [
        *(column for column in CASE_COLUMNS if (detail or not column.detail) and known(column)),
        *(CaseColumn(head=name, score="groups", cell=_group_cell(name)) for name in groups),
    ]


def _group_cell(name: str) -> Callable[[Entry], Cell]:
    return lambda entry: score_cell(entry, entry.groups.get(name, Score()), "group")


def _heads(
    columns: Sequence[tuple[Case, CaseColumn]], by_place: Mapping[tuple[str, Case], Entry], labels: Sequence[str]
) -> list[TableColumn]:
    cases = list(dict.fromkeys(case for case, _ in columns))
    metrics = {case: entry.metric for (_, case), entry in by_place.items()}
    metrics |= {case: case.card.metric for case in cases if case not in metrics}
    return [
        TableColumn(
            head=column.head.replace("{against}", _against(by_place[label, case] for label in labels)),
            unit="points" if column.detail else f"{metric_title(metrics[case])} %",
            group=case_head(case, cases),
            case=case.name,
            optional=column.optional,
        )
        for case, column in columns
    ]


def _against(found: Iterable[Entry]) -> str:
    named = {entry.against for entry in found if entry.against}
    return named.pop() if len(named) == 1 else "its reference"


def case_head(case: Case, cases: Sequence[Case]) -> str:
    """Dataset and domain, and the shift or the setting where ``cases`` differ in it."""
    parts = [case.dataset, case.domain]
    parts += [case.shift] if len({other.shift for other in cases}) > 1 else []
    parts += [case.setting] if len({other.setting for other in cases}) > 1 else []
    return ", ".join(parts)


def _kind(found: Sequence[Entry], label: str) -> str:
    entry = next(entry for entry in found if entry.label == label)
    if any(entry.subject for entry in found if entry.label == label):
        return "subject"
    return "control" if entry.control else "supervised" if entry.supervised else "compared"


def _overall(pooled: Pooled | None) -> Cell:
    if pooled is None:
        return Cell(kind="overall")
    test = pooled.test
    direction = direction_of(test, pooled.p_holm)
    return Cell(
        text=points(test.mean_difference),
        sort=f"{100 * test.mean_difference:.4f}",
        direction=direction,  # type: ignore[arg-type]
        test=test_words(direction, pooled.against, pooled.p_holm),
        detail=f"{test.n} pairs, {pooled.above} of {len(pooled.cases)} cases above, {p_equals(pooled.p_holm)}",
        kind="overall",
    )
