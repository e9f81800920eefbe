"""Tables in GitHub's Markdown."""

from mario.report.numbers import to_md
from mario.report.tables.one_case import Table
from mario.report.tables.one_case_text import full, header_notes
from mario.report.tables.text import cell_text, overall_text
from mario.report.tables.wide import Cell, WideTable


def to_markdown(table: Table | WideTable) -> str:
    """The table in GitHub's Markdown, with its title above and its notes below.

    In a study's table the paper's figure, and how far ours is off in units of its sd, stand below ours in each cell.
    """
    return _study(table) if isinstance(table, WideTable) else _one_case(table)


def _study(table: WideTable) -> str:
    heads = ["method"]
    heads += [f"{to_md(table.case_head(column))}<br>{column.head} {column.metric_name} %" for column in table.columns]
    heads += [f"all cases<br>OOD − {to_md(table.overall_against)}"] if table.overall else []
    lines = [f"**{to_md(table.heading)}**", ""]
    lines.append("| " + " | ".join(heads) + " |")
    lines.append("|:---" + "|---:" * (len(heads) - 1) + "|")
    for i, label in enumerate(table.rows):
        cells = [to_md(label), *(_cell(cell) for cell in table.cells[i])]
        if table.overall:
            overall = table.overall[i]
            cells.append("–" if overall is None else "<br>".join(overall_text(overall)))
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    lines += [f"- {to_md(note)}" for note in table.notes]
    return "\n".join(lines) + "\n"


def _cell(cell: Cell) -> str:
    text = cell_text(cell)
    score = f"**{text.score}**" if cell.place == 1 else f"<u>{text.score}</u>" if cell.place == 2 else text.score
    first = " ".join(part for part in (score, f"({text.count})" if text.count else "", text.arrow) if part)
    second = ", ".join(part for part in (text.paper, text.off) if part)
    return f"{first}<br>*{second}*" if second else first


def _one_case(table: Table) -> str:
    heads, rows = full(table)
    lines = [f"**{to_md(table.title)}**", ""]
    lines.append("| " + " | ".join(to_md(head) for head in heads) + " |")
    lines.append("|:---" + "|---:" * (len(heads) - 1) + "|")
    lines += ["| " + " | ".join(to_md(cell) for cell in cells) + " |" for cells in rows]
    lines.append("")
    lines += [f"- {to_md(note)}" for note in header_notes(table) + list(table.notes)]
    return "\n".join(lines) + "\n"
