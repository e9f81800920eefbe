"""Tables for a terminal."""

from typing import TYPE_CHECKING

from mario.report.numbers import METRICS, p_value
from mario.report.tables.one_case import CONTROLS, Table
from mario.report.tables.one_case_text import header_notes, narrow_cells
from mario.report.tables.text import cell_text, overall_text
from mario.report.tables.wide import Cell, Column, WideTable

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

AT_ONCE = 5
"""Columns beside each other; further ones stand in a second table below."""


def to_rich(table: Table | WideTable) -> "RenderableType":
    """The table for a terminal, with its notes: of one case for 80 columns, of a study for 100.

    The other forms have more columns. A study's has OOD and, below it in small, the paper's figure.
    """
    return _study(table) if isinstance(table, WideTable) else _one_case(table)


def _study(table: WideTable) -> "Group":
    from rich.console import Group
    from rich.text import Text

    shown = [j for j, column in enumerate(table.columns) if column.score != "id"]
    parts = [shown[i : i + AT_ONCE] for i in range(0, len(shown), AT_ONCE)] or [[]]
    notes = ["OOD and test groups only; the other forms have ID too.", *table.notes]
    return Group(
        Text(table.heading, style="bold"),
        *(_part(table, part, last=part is parts[-1]) for part in parts),
        *(Text(f"· {note}", style="dim") for note in notes),
    )


def _part(table: WideTable, places: list[int], *, last: bool) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    out = RichTable(box=box.SIMPLE, pad_edge=False, collapse_padding=True, padding=(0, 1))
    out.add_column("")
    for j in places:
        out.add_column(Text(_head(table, table.columns[j])), justify="right", no_wrap=True)
    overall = table.overall if last else ()
    if overall:
        out.add_column(Text(f"all cases\nOOD −\n{table.overall_against}"), justify="right")
    for i, label in enumerate(table.rows):
        style = "dim" if label in table.controls else None
        cells = [
            Text(label, style="bold" if label == table.subject else ""),
            *(_cell(table.cells[i][j]) for j in places),
        ]
        if overall:
            here = overall[i]
            text = "–" if here is None else f"{overall_text(here)[0]}\np {p_value(here.p_holm)}"
            cells.append(Text(text))
        out.add_row(*cells, style=style)
    return out


def _head(table: WideTable, column: Column) -> str:
    name = column.head if column.score != "ood" else f"OOD {column.metric_name}"
    return "\n".join([*table.case_head(column).split(", "), name])


def _cell(cell: Cell) -> "Text":
    from rich.text import Text

    text = cell_text(cell)
    style = {1: "bold", 2: "underline", None: ""}[cell.place]
    out = Text(text.score.replace(" ± ", "±"), style=style)
    short = f" {text.count}" if cell.ours is not None and cell.n < cell.asked else ""
    out.append(f"{text.arrow}{short}", style="none")
    if text.paper:
        off = f" {text.off}" if text.off else ""
        out.append(f"\n{text.paper.partition(' ')[0]}{off}", style="dim")
    return out


def _one_case(table: Table) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    metric = METRICS.get(table.metric, table.metric)
    heads = ["method", "n", "ID\nby id_val", f"OOD\nby {table.chosen_on}", "gap", "paper\nID", "paper\nOOD"]
    if table.reference:
        heads.append(f"OOD −\n{table.reference}")
    caption = Text("\n".join(header_notes(table) + list(table.notes)))
    out = RichTable(
        title=Text(f"{table.title}: {metric}, %"),
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE,
        pad_edge=False,
        collapse_padding=True,
    )
    for index, head in enumerate(heads):
        out.add_column(Text(head), justify="left" if index == 0 else "right", no_wrap=index == 0)
    for row in table.rows:
        style = "bold" if row.method == "mario" else ("dim" if row.method in CONTROLS else None)
        out.add_row(*(Text(cell) for cell in narrow_cells(row, table.reference)), style=style)
    return out
