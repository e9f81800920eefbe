"""Tables in GitHub's Markdown."""

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
    lines = [f"**{escape_markdown(table.title)}**", ""] if table.title else []
    lines.append(f"| {' | '.join(map(_head, table.columns))} |")
    lines.append("|" + "".join(":---|" if column.names or column.text else "---:|" for column in table.columns))
    lines += [f"| {' | '.join(map(_cell, line.cells))} |" for line in table.lines]
    lines += ["", *(f"- {escape_markdown(note)}" for note in table.notes)] if table.notes else []
    return "\n".join(lines) + "\n"


def _head(column: TableColumn) -> str:
    head = " ".join(part for part in (column.head, column.unit) if part)
    return "<br>".join(escape_markdown(part) for part in (column.group, head) if part)


def _cell(cell: Cell) -> str:
    if cell.items:
        return "<br>".join(map(escape_markdown, cell.items))
    text = escape_markdown(cell.text)
    text = {"best": f"**{text}**", "strong": f"**{text}**", "second": f"<u>{text}</u>", "": text}[cell.emphasis]
    first = " ".join(part for part in (text, f"({cell.count})" if cell.count else "", cell.arrow) if part)
    second = escape_markdown(cell.second_line)
    return f"{first}<br>{f'*{second}*' if cell.paper else second}" if second else first


def escape_markdown(text: str) -> str:
    """``text`` in one line, escaped for a cell of a Markdown table.

    Example:
        >>> escape_markdown("a|b <c>")
        'a\\\\|b &lt;c>'
    """
    for mark in ("\\", "|", "*", "<", "`"):
        text = text.replace(mark, "&lt;" if mark == "<" else "\\" + mark)
    return text.replace("\n", " ")
