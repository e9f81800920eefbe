"""Tables in GitHub's Markdown."""

from mario.report.numbers import to_md
from mario.report.tables.table import Cell, Table, TableColumn


def to_markdown(table: Table) -> str:
    """The table in GitHub's Markdown, with its title above and its notes below.

    The paper's number and our distance from it are below ours in each cell.

    Example:
        >>> from mario.report.tables.table import Cell, TableColumn, Line, Table
        >>> line = Line(cells=(Cell(text="mario"), Cell(text="91.00", emphasis="best", paper="91.28")))
        >>> columns = (TableColumn(head="method"), TableColumn(head="OOD"))
        >>> print(to_markdown(Table(name="t", title="", columns=columns, lines=(line,))))
        | method | OOD |
        |---:|---:|
        | mario | **91.00**<br>*91.28* |
        <BLANKLINE>
    """
    lines = [f"**{to_md(table.title)}**", ""] if table.title else []
    lines.append(f"| {' | '.join(map(_head, table.columns))} |")
    lines.append("|" + "".join(":---|" if column.names or column.text else "---:|" for column in table.columns))
    lines += [f"| {' | '.join(map(_cell, line.cells))} |" for line in table.lines]
    lines += ["", *(f"- {to_md(note)}" for note in table.notes)] if table.notes else []
    return "\n".join(lines) + "\n"


def _head(column: TableColumn) -> str:
    head = " ".join(part for part in (column.head, column.unit) if part)
    return "<br>".join(to_md(part) for part in (column.group, head) if part)


def _cell(cell: Cell) -> str:
    if cell.items:
        return "<br>".join(map(to_md, cell.items))
    text = to_md(cell.text)
    text = {"best": f"**{text}**", "strong": f"**{text}**", "second": f"<u>{text}</u>", "": text}[cell.emphasis]
    first = " ".join(part for part in (text, f"({cell.count})" if cell.count else "", cell.arrow) if part)
    second = to_md(cell.second_line)
    return f"{first}<br>{f'*{second}*' if cell.paper else second}" if second else first
