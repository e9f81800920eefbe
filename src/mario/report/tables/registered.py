"""The tables of a registered study: its goal, its comparisons, its columns and its rows."""

from statistics import fmean

from mario.report.numbers import interval, p_value, points
from mario.report.registered import Contrast, Registered
from mario.report.tables.table import Cell, Line, Table, TableColumn

_MET = {True: "met", False: "missed", None: "not known yet"}


def registered_tables(found: Registered) -> list[Table]:
    """All of them, in the order of a reader: what was wanted, what was compared, where, and every row."""
    return [goal_table(found), comparisons_table(found), columns_table(found), rows_table(found)]


def goal_table(found: Registered) -> Table:
    """Each condition of the goal and what was found."""
    return Table(
        name=f"{found.study}-goal",
        title="The goal",
        columns=(
            TableColumn(head="condition", names=True),
            TableColumn(head="found", text=True),
            TableColumn(head="", text=True),
        ),
        lines=tuple(
            Line(
                cells=(
                    Cell(text=condition.wanted),
                    Cell(text=condition.found),
                    Cell(text=_MET[condition.met], emphasis="strong" if condition.met is False else ""),
                )
            )
            for condition in found.goal
        ),
    )


def comparisons_table(found: Registered) -> Table:
    """The primary comparison, the secondary ones, the cost on ID, and the primary one at equal CPU time."""
    lines = [
        _comparison("primary", found.primary),
        *(_comparison("secondary", one) for one in found.secondary),
        _comparison("cost, ID test", found.cost),
    ]
    if found.equal_cpu:
        lines.append(_comparison("equal CPU time", found.equal_cpu))
    return Table(
        name=f"{found.study}-comparisons",
        title="The registered comparisons: mean over columns, points",
        columns=(
            TableColumn(head="", names=True),
            TableColumn(head="comparison", text=True),
            TableColumn(head="difference"),
            TableColumn(head="95 % interval"),
            TableColumn(head="columns above"),
            TableColumn(head="p"),
        ),
        lines=tuple(lines),
        notes=(
            "OOD test unless said otherwise. One value per column, the mean over its pairs; interval and Wilcoxon’s "
            "signed-rank test are over columns. p of the secondary comparisons has Holm’s correction. The cost on ID "
            "and equal CPU time have no registered test.",
        ),
    )


def _comparison(kind: str, one: Contrast) -> Line:
    name = Cell(text=f"{one.label} − {one.against}")
    if one.over is None or one.found is None:
        return Line(cells=(Cell(text=kind), name, Cell(text=one.state), Cell(), Cell(), Cell()))
    p = {"primary": one.over.p_wilcoxon, "secondary": one.p_holm}.get(kind)
    difference = _points(one.over.mean_difference)
    above = Cell(text=f"{one.over.wins} of {one.over.n}", sort=str(one.over.wins))
    return Line(cells=(Cell(text=kind), name, difference, Cell(text=interval(one.over)), above, Cell(text=p_value(p))))


def columns_table(found: Registered) -> Table:
    """The primary difference in each column with its interval, the one from the method as published, and that on ID."""
    label, against = found.protocol.primary
    lines = []
    for name in found.primary.asked:
        test = found.primary.column(name)
        if test is None or found.primary.found is None:
            cells = [Cell(text=f"{found.primary.pairs[name]} pairs so far"), *[Cell()] * 5]
        else:
            pairs = found.primary.found.pairs[name]
            cells = [
                Cell(text=str(test.n), sort=str(test.n)),
                _percent(pairs.b),
                _percent(pairs.a),
                Cell(
                    text=points(test.mean_difference),
                    sort=f"{100 * test.mean_difference:.4f}",
                    detail=interval(test),
                ),
                _difference(found.published, name),
                _difference(found.cost, name),
            ]
        lines.append(Line(cells=(Cell(text=name), *cells), case=name))
    return Table(
        name=f"{found.study}-columns",
        title=f"{label} − {against}, column by column",
        columns=(
            TableColumn(head="column", names=True),
            TableColumn(head="pairs"),
            TableColumn(head=against, unit="OOD %"),
            TableColumn(head=label, unit="OOD %"),
            TableColumn(head="difference", unit="points, 95 % interval"),
            TableColumn(head=f"− {found.protocol.published}", unit="OOD points"),
            TableColumn(head=f"− {against}", unit="ID points"),
        ),
        lines=tuple(lines),
        notes=("Accuracy; ROC-AUC on GOOD-Twitch. Intervals are over the pairs of a column.",),
    )


def rows_table(found: Registered) -> Table:
    """Every row minus the reference, over the columns that have it and are done. No test is made of them."""
    reference = found.protocol.primary[1]
    lines = []
    for one in found.rows:
        if one.over is None or one.found is None:
            cells = [Cell(text=one.state), Cell(), Cell(), Cell()]
        else:
            mean = fmean(fmean(pairs.a) for pairs in one.found.pairs.values())
            cells = [
                Cell(text=str(one.over.n), sort=str(one.over.n)),
                Cell(text=f"{100 * mean:.2f}", sort=f"{100 * mean:.4f}"),
                _points(one.over.mean_difference),
                Cell(text=interval(one.over)),
            ]
        lines.append(
            Line(
                cells=(Cell(text=one.label), *cells),
                label=one.label,
                kind="subject" if one.label == found.protocol.primary[0] else "",
            )
        )
    return Table(
        name=f"{found.study}-rows",
        title=f"Every row minus {reference}, OOD",
        columns=(
            TableColumn(head="row", names=True),
            TableColumn(head="columns"),
            TableColumn(head="mean", unit="%"),
            TableColumn(head=f"− {reference}", unit="points"),
            TableColumn(head="95 % interval"),
        ),
        lines=tuple(lines),
        notes=("Means of rows with other numbers of columns cannot be compared. Nothing is tested in this table.",),
    )


def _points(difference: float) -> Cell:
    return Cell(text=points(difference), sort=f"{100 * difference:.4f}")


def _percent(values: tuple[float, ...]) -> Cell:
    text = f"{100 * fmean(values):.2f}"
    return Cell(text=text, sort=text)


def _difference(one: Contrast, name: str) -> Cell:
    if one.found is None or name not in one.found.means:
        return Cell()
    return _points(one.found.means[name])
