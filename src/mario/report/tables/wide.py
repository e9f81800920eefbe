"""The table of a study as the paper prints it: a row a method, for each dataset a column in and out of distribution."""

from collections.abc import Sequence
from dataclasses import dataclass

from mario.lab.statistics.paired import BySplit, Paired, Summary, holm
from mario.lab.studies.paper import Figure
from mario.lab.studies.plan import Collected, CollectedCase, Plan
from mario.report.numbers import METRICS
from mario.report.tables.notes import LEVEL, notes
from mario.report.tables.pooled import Pooled, pool
from mario.report.tables.rows import LongRow, long_rows, printed

HEADS = {"id": "ID", "ood": "OOD"}


@dataclass(frozen=True, kw_only=True)
class Column:
    """One score of one case: ``id``, ``ood``, or the name of a test group. ``missing`` says why there is no data."""

    case: str
    dataset: str
    domain: str
    shift: str
    setting: str
    metric: str
    score: str
    missing: str | None = None

    @property
    def head(self) -> str:
        return HEADS.get(self.score, self.score)

    @property
    def metric_name(self) -> str:
        return METRICS.get(self.metric, self.metric)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One score of one row. ``ours`` is a fraction, ``paper`` percent, ``off`` points and ``off_sd`` the paper's sd.

    ``place`` is 1 or 2 for the best and the second of the trained methods without labels, ``against`` the row that
    ``test`` compares with. ``empty`` stands where there is no score, and says in a word why.
    """

    ours: Summary | None = None
    by_split: BySplit | None = None
    asked: int = 0
    n: int = 0
    paper: Figure | None = None
    off: float | None = None
    off_sd: float | None = None
    place: int | None = None
    against: str | None = None
    test: Paired | None = None
    p_holm: float | None = None
    empty: str = "–"
    why: str = ""

    @property
    def direction(self) -> str:
        """``above`` or ``below`` the reference where the corrected test says so; nothing elsewhere."""
        return _direction(self.test, self.p_holm)

    @property
    def count(self) -> str:
        """How many runs: ``5``, or ``3 of 5`` where some are missing."""
        return str(self.n) if self.n == self.asked else f"{self.n} of {self.asked}"


@dataclass(frozen=True, kw_only=True)
class Overall:
    """A row against its reference over all cases, corrected for the rows of the table."""

    pooled: Pooled
    p_holm: float | None

    @property
    def direction(self) -> str:
        return _direction(self.pooled.test, self.p_holm)


@dataclass(frozen=True, kw_only=True)
class WideTable:
    """A study as one table: ``cells[i][j]`` is of ``rows[i]`` and ``columns[j]``. ``notes`` belong under it.

    ``overall[i]`` compares ``rows[i]`` with its reference over all cases; it is empty where there is one case only.
    """

    study: str
    title: str
    paper: str
    reference: str | None
    subject: str | None
    rows: tuple[str, ...]
    controls: frozenset[str]
    supervised: frozenset[str]
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]
    overall: tuple[Overall | None, ...]
    notes: tuple[str, ...]

    @property
    def heading(self) -> str:
        return f"{self.title} ({self.paper} of the paper)" if self.paper else self.title

    @property
    def cases(self) -> list[tuple[str, int]]:
        """The head of each case and how many columns it has."""
        widths: dict[str, int] = {}
        heads = {}
        for column in self.columns:
            heads[column.case] = self.case_head(column)
            widths[column.case] = widths.get(column.case, 0) + 1
        return [(heads[case], width) for case, width in widths.items()]

    def case_head(self, column: Column) -> str:
        """Dataset and domain, and the shift or the setting where the columns of the table differ in it."""
        parts = [column.dataset, column.domain]
        parts += [column.shift] if len({c.shift for c in self.columns}) > 1 else []
        parts += [column.setting] if len({c.setting for c in self.columns}) > 1 else []
        return ", ".join(parts)

    @property
    def overall_against(self) -> str:
        """What ``overall`` compares with: a label, or a word where each row has a reference of its own."""
        named = {overall.pooled.against for overall in self.overall if overall}
        return named.pop() if len(named) == 1 else "its reference"

    def cell(self, row: str, case: str, score: str = "ood") -> Cell:
        """The cell of a row, a case and a score, for whoever wants one figure."""
        place = next(j for j, c in enumerate(self.columns) if (c.case, c.score) == (case, score))
        return self.cells[self.rows.index(row)][place]


def wide_table(collected: Collected) -> WideTable:
    """The table of what a study has come to so far: every label and every case of its plan, whatever is missing.

    Columns are ID and OOD of each case, then its test groups; a column that neither we nor the paper have is left out.

    Example:
        >>> from mario.lab.studies.plan import Collected, CollectedCase, make_plan
        >>> from mario.lab.studies.read import find_study
        >>> from mario.report import wide_table
        >>> plan = make_plan(find_study("ablation"), datasets=["good-cbas"], seeds=1)
        >>> place = {"name": "good-cbas-concept", "dataset": "good-cbas", "domain": "color", "shift": "concept"}
        >>> result = {"label": "mario", "split_seed": 0, "seed": 0, "scores": {"id_test": 0.94, "ood_test": 0.91}}
        >>> case = CollectedCase(**place, setting="transductive", asked=1, missing=None, results=[result])
        >>> table = wide_table(Collected(plan, [case]))
        >>> table.rows, [column.head for column in table.columns]
        (('mario', 'mario w/o ad', 'mario w/o cmi', 'mario w/o cmi, ad'), ['ID', 'OOD'])
        >>> cell = table.cell("mario", "good-cbas-concept")
        >>> cell.ours.mean, str(cell.paper), round(cell.off_sd, 2)
        (0.91, '91.28 ± 1.10', -0.25)
        >>> table.cell("mario w/o ad", "good-cbas-concept").empty
        'not done'
    """
    rows = long_rows(collected)
    there = dict.fromkeys(row.label for row in rows)
    labels = tuple(dict.fromkeys([*(label for label in collected.plan.rows if label in there), *there]))
    columns = tuple(column for case in collected.cases for column in _columns(case, rows))
    by_place = {(row.label, row.case): row for row in rows}
    overall = _overall(collected, rows, labels)
    plan = collected.plan
    return WideTable(
        study=plan.study,
        title=plan.title,
        paper=plan.paper,
        reference=plan.reference,
        subject=plan.subject,
        rows=labels,
        controls=frozenset(row.label for row in rows if row.control),
        supervised=frozenset(row.label for row in rows if row.supervised),
        columns=columns,
        cells=tuple(
            tuple(_cell(by_place.get((label, c.case)), c) or _unasked(plan, label, c) for c in columns)
            for label in labels
        ),
        overall=overall,
        notes=tuple(notes(collected, rows, overall=bool(overall))),
    )


def _direction(test: Paired | None, p_holm: float | None) -> str:
    return {1: "above", -1: "below"}.get(test.shown(p_holm, LEVEL) if test else 0, "")


def _overall(collected: Collected, rows: Sequence[LongRow], labels: Sequence[str]) -> tuple[Overall | None, ...]:
    against = {row.label: row.against for row in rows if row.against}
    found = [pool(collected, label, against[label]) if label in against else None for label in labels]
    if not any(pooled and len(pooled.cases) > 1 for pooled in found):
        return ()
    adjusted = holm([pooled.test.p_wilcoxon if pooled else None for pooled in found])
    return tuple(
        Overall(pooled=pooled, p_holm=p) if pooled else None for pooled, p in zip(found, adjusted, strict=True)
    )


def _columns(case: CollectedCase, rows: Sequence[LongRow]) -> list[Column]:
    here = [row for row in rows if row.case == case.name]
    scores = []
    if any(row.id or row.paper_id for row in here):
        scores.append("id")
    scores.append("ood")
    scores += dict.fromkeys(name for row in here for name in row.groups)
    return [
        Column(
            case=case.name,
            dataset=case.dataset,
            domain=case.domain,
            shift=case.shift,
            setting=case.setting,
            metric=here[0].metric if here else "accuracy",
            score=score,
            missing=case.missing,
        )
        for score in scores
    ]


def _unasked(plan: Plan, label: str, column: Column) -> Cell:
    """The cell of a row that the case does not ask for: the paper's figure alone."""
    run = next(run for case in plan.cases for run in case.runs if run.label == label)
    case = next(case for case in plan.cases if case.name == column.case)
    if column.score not in HEADS:
        return Cell()
    return Cell(paper=printed(plan, case, run, run.job.given.get("encoder"), column.score))


def _cell(row: LongRow | None, column: Column) -> Cell | None:
    if row is None:
        return None
    of_paper = {
        "id": (row.id, row.id_by_split, row.paper_id, row.off_id, row.off_id_sd, row.id_place),
        "ood": (row.ood, row.ood_by_split, row.paper_ood, row.off_ood, row.off_ood_sd, row.ood_place),
    }
    group = (row.groups.get(column.score), None, None, None, None, row.group_places.get(column.score))
    ours, by_split, paper, off, off_sd, place = of_paper.get(column.score, group)
    tested = column.score == "ood"
    return Cell(
        ours=ours,
        by_split=by_split,
        asked=row.asked,
        n=ours.n if ours else 0,
        paper=paper,
        off=off,
        off_sd=off_sd,
        place=place,
        against=row.against if tested else None,
        test=row.test if tested else None,
        p_holm=row.p_holm if tested else None,
        empty=_empty(row, column),
        why=row.why,
    )


def _empty(row: LongRow, column: Column) -> str:
    if column.missing:
        return "no data"
    if row.n:
        return "–"  # there are runs, without this score
    return "failed" if "failed" in row.why else "not done"
