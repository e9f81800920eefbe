"""A study's table in LaTeX, with the packages booktabs and graphicx."""

import math
from collections.abc import Sequence

from mario.report.tables.text import cell_text, overall_text
from mario.report.tables.wide import Cell, WideTable

_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "−": r"$-$", "–": "--", "’": "'", "…": r"\dots{}", "γ": r"$\gamma$",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "×": r"$\times$", "\n": " ", '"': "''",
}  # fmt: skip


AT_ONCE = 10
"""Columns beside each other; further cases stand in a second block below."""


def to_latex(table: WideTable) -> str:
    """The table as a ``table*`` environment that stands by itself; ``\\usepackage{booktabs,graphicx}`` is all it needs.

    Each method has two lines: ours, and in small print the paper's. The notes are under the table. What LaTeX cannot
    print without more packages is left out.

    Example:
        >>> from mario.report import to_latex
        >>> from mario.report.tables import WideTable
        >>> none = dict.fromkeys(("columns", "cells", "rows", "overall", "controls", "supervised"), ())
        >>> none |= {"reference": None, "subject": None}
        >>> print(to_latex(WideTable(study="mine", title="100 % mine", paper="", notes=("A note.",), **none)))
        % needs \\usepackage{booktabs,graphicx}
        \\begin{table*}[htp]
        \\caption{100 \\% mine}
        \\label{tab:mine}
        \\centering
        \\resizebox{\\textwidth}{!}{%
        \\begin{tabular}{l}
        \\toprule
        method \\\\
        \\midrule
        \\bottomrule
        \\end{tabular}}
        <BLANKLINE>
        \\vspace{2pt}
        \\parbox{\\textwidth}{\\footnotesize A note.}
        \\end{table*}
        <BLANKLINE>
    """
    parts = _parts(table)
    blocks = (_block(table, part, last=part is parts[-1]) for part in parts)
    notes = r" \\ ".join(escape_latex(note) for note in table.notes)
    lines = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table*}[htp]",
        rf"\caption{{{escape_latex(table.heading)}}}",
        rf"\label{{tab:{''.join(c if c.isascii() and c.isalnum() else '-' for c in table.study)}}}",
        r"\centering",
        "\n\n\\vspace{4pt}\n".join(blocks),
        "",
        r"\vspace{2pt}",
        rf"\parbox{{\textwidth}}{{\footnotesize {notes}}}",
        r"\end{table*}",
        "",
    ]
    return "\n".join(lines)


def _parts(table: WideTable) -> list[list[int]]:
    """The places of the columns of each block, blocks alike in width; a case is never torn apart."""
    total = max(1, len(table.columns))
    widest = math.ceil(total / math.ceil(total / AT_ONCE))
    parts: list[list[int]] = [[]]
    at = 0
    for _, width in table.cases:
        if parts[-1] and len(parts[-1]) + width > widest:
            parts.append([])
        parts[-1] += range(at, at + width)
        at += width
    return parts


def _block(table: WideTable, places: Sequence[int], *, last: bool) -> str:
    overall = table.overall if last else ()
    lines = [
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{l{'c' * (len(places) + bool(overall))}}}",
        r"\toprule",
        *_heads(table, places, bool(overall)),
        r"\midrule",
    ]
    for i, label in enumerate(table.rows):
        if i:
            lines.append(r"\addlinespace[2pt]")
        first, second = [escape_latex(label)], [""]
        for j in places:
            ours, paper = _cell(table.cells[i][j])
            first.append(ours)
            second.append(paper)
        if overall:
            here = overall[i]
            above, below = ("--", "") if here is None else overall_text(here)
            first.append(escape_latex(above))
            second.append(_small(below))
        lines.append(_line(first))
        if any(second):
            lines.append(_line(second))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}"])


def escape_latex(text: str) -> str:
    """``text`` as LaTeX prints it, in ASCII.

    Example:
        >>> from mario.report.tables.latex import escape_latex
        >>> escape_latex("mario_1 & 50 % ± 2")
        'mario\\\\_1 \\\\& 50 \\\\% $\\\\pm$ 2'
    """
    return "".join(_ESCAPED.get(c, c if c.isascii() else "") for c in text)


def _heads(table: WideTable, places: Sequence[int], overall: bool) -> list[str]:
    columns = [table.columns[j] for j in places]
    if not columns:
        return [r"method \\"]
    widths: dict[str, int] = {}
    for column in columns:
        head = table.case_head(column)
        widths[head] = widths.get(head, 0) + 1
    first, rules, at = [""], [], 2
    for head, width in widths.items():
        first.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(head)}}}")
        rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    second = ["method", *(escape_latex(column.head) for column in columns)]
    third = ["", *(_small(f"{column.metric_name} %") for column in columns)]
    if overall:
        first.append("all cases")
        second.append(escape_latex(f"OOD − {table.overall_against}"))
        third.append("")
    return [_line(first), "".join(rules), _line(second), _line(third)]


def _cell(cell: Cell) -> tuple[str, str]:
    text = cell_text(cell)
    score = escape_latex(text.score)
    score = rf"\textbf{{{score}}}" if cell.place == 1 else rf"\underline{{{score}}}" if cell.place == 2 else score
    count = f" ({text.count})" if text.count else ""
    paper = ", ".join(part for part in (text.paper, text.off) if part)
    return score + count + escape_latex(text.arrow), _small(paper)


def _small(text: str) -> str:
    return rf"{{\footnotesize {escape_latex(text)}}}" if text else ""


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
