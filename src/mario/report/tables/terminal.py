"""Tables for a terminal of 100 columns."""

from typing import TYPE_CHECKING

from mario.report.tables.table import Cell, Table, TableColumn

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

AT_MOST = 5
"""Columns side by side; more go into a second table below."""

SUBJECT = "▸ "
"""In front of the row that a study is about; bold is kept for the best score."""


def to_rich(table: Table) -> "Group":
    """The table for a terminal, with its notes. The paper's number is below ours.

    Example:
        >>> from rich.console import Console
        >>> table = Table(name="mine", title="Scores", columns=(TableColumn(head="method", names=True),), lines=())
        >>> Console().print(to_rich(table).renderables[0])
        Scores
    """
    from rich.console import Group
    from rich.text import Text

    notes = list(table.notes)
    optional = dict.fromkeys(column.head for column in table.columns if column.optional)
    if optional and len(table.columns) > AT_MOST:
        table = table.without_optional()
        notes.insert(0, f"{', '.join(optional)}: see the other forms of this table.")
    return Group(
        Text(table.title, style="bold"),
        *(_part(part) for part in table.parts(AT_MOST, whole_groups=False)),
        *(Text(f"· {note}", style="dim") for note in notes),
    )


def _part(table: Table) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    out = RichTable(box=box.SIMPLE, pad_edge=False, collapse_padding=True, padding=(0, 1))
    for column in table.columns:
        left = column.names or column.text
        out.add_column(Text(_head(column)), justify="left" if left else "right", no_wrap=not left)
    for line in table.lines:
        cells = [_cell(cell) for cell in line.cells]
        if line.kind == "subject":
            cells[0] = Text(SUBJECT) + cells[0]
        out.add_row(*cells, style="dim" if line.kind == "control" else None)
    return out


def _head(column: TableColumn) -> str:
    return "\n".join([*column.group.split(", "), *column.head.replace(" − ", " −\n").split("\n"), column.unit]).strip(
        "\n"
    )


def _cell(cell: Cell) -> "Text":
    from rich.text import Text

    style = {"best": "bold", "strong": "bold", "second": "underline", "": ""}[cell.emphasis]
    out = Text("\n".join(cell.items) or cell.text.replace(" ± ", "±"), style=style)
    out.append(f"{cell.arrow}{f' {cell.count}' if cell.short else ''}", style="none")
    if cell.paper:
        off = f" {cell.off}" if cell.off else ""
        out.append(f"\n{cell.paper.partition(' ')[0]}{off}", style="dim")
    elif cell.detail:
        # A terminal has room for the last fact only: the p-value of a test.
        out.append(f"\n{cell.detail.rpartition(', ')[2]}", style="none")
    return out
