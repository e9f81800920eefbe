"""A study's table in LaTeX, with the packages booktabs and graphicx."""

from collections.abc import Sequence

from mario.report.tables.text import cell_text, overall_text
from mario.report.tables.wide import Cell, WideTable

_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "−": r"$-$", "–": "--", "’": "'", "…": r"\dots{}", "γ": r"$\gamma$",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "×": r"$\times$", "\n": " ", '"': "''",
}  # fmt: skip


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
    extra = 1 if table.overall else 0
    lines = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table*}[htp]",
        rf"\caption{{{escape_latex(table.heading)}}}",
        rf"\label{{tab:{''.join(c if c.isascii() and c.isalnum() else '-' for c in table.study)}}}",
        r"\centering",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{l{'c' * (len(table.columns) + extra)}}}",
        r"\toprule",
        *_heads(table),
        r"\midrule",
    ]
    for i, label in enumerate(table.rows):
        if i:
            lines.append(r"\addlinespace[2pt]")
        first, second = [escape_latex(label)], [""]
        for cell in table.cells[i]:
            ours, paper = _cell(cell)
            first.append(ours)
            second.append(paper)
        if table.overall:
            overall = table.overall[i]
            above, below = ("--", "") if overall is None else overall_text(overall)
            first.append(escape_latex(above))
            second.append(_small(below))
        lines.append(_line(first))
        if any(second):
            lines.append(_line(second))
    notes = r" \\ ".join(escape_latex(note) for note in table.notes)
    lines += [
        r"\bottomrule",
        r"\end{tabular}}",
        "",
        r"\vspace{2pt}",
        rf"\parbox{{\textwidth}}{{\footnotesize {notes}}}",
    ]
    return "\n".join([*lines, r"\end{table*}", ""])


def escape_latex(text: str) -> str:
    """``text`` as LaTeX prints it, in ASCII.

    Example:
        >>> from mario.report.tables.latex import escape_latex
        >>> escape_latex("mario_1 & 50 % ± 2")
        'mario\\\\_1 \\\\& 50 \\\\% $\\\\pm$ 2'
    """
    return "".join(_ESCAPED.get(c, c if c.isascii() else "") for c in text)


def _heads(table: WideTable) -> list[str]:
    if not table.columns:
        return [r"method \\"]
    first, rules, at = [""], [], 2
    for head, width in table.cases:
        first.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(head)}}}")
        rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    second = ["method", *(escape_latex(column.head) for column in table.columns)]
    metric = [f"{column.metric_name} %" for column in table.columns]
    third = ["", *(_small(text) for text in metric)]
    if table.overall:
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
