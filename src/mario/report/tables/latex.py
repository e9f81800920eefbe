"""Tables in LaTeX, with the packages booktabs and graphicx."""

from collections.abc import Iterable

from mario.report.tables.table import Cell, Table

_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "−": r"$-$", "–": "--", "’": "'", "…": r"\dots{}", "γ": r"$\gamma$",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "×": r"$\times$", "\n": " ", '"': "''",
}  # fmt: skip

AT_MOST = 10
"""Columns side by side; more cases go into a second block below."""


def to_latex(table: Table) -> str:
    """The table as a ``table*`` environment; it needs only ``\\usepackage{booktabs,graphicx}``.

    Each method has two lines: ours, and in small print the paper's. The notes are below the table. Characters that
    LaTeX cannot print without more packages are left out.

    Example:
        >>> from mario.report.tables.table import TableColumn, Table
        >>> columns = (TableColumn(head="method", names=True),)
        >>> print(to_latex(Table(name="mine", title="100 % mine", columns=columns, lines=(), notes=("A note.",))))
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
    notes = r" \\ ".join(escape_latex(note) for note in table.notes)
    lines = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table*}[htp]",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\label{{tab:{''.join(c if c.isascii() and c.isalnum() else '-' for c in table.name)}}}",
        r"\centering",
        "\n\n\\vspace{4pt}\n".join(_block(part) for part in table.parts(AT_MOST)),
        "",
        r"\vspace{2pt}",
        rf"\parbox{{\textwidth}}{{\footnotesize {notes}}}",
        r"\end{table*}",
        "",
    ]
    return "\n".join(lines)


def escape_latex(text: str) -> str:
    """``text`` as LaTeX prints it, in ASCII.

    Example:
        >>> escape_latex("mario_1 & 50 % ± 2")
        'mario\\\\_1 \\\\& 50 \\\\% $\\\\pm$ 2'
    """
    return "".join(_ESCAPED.get(c, c if c.isascii() else "") for c in text)


def _block(table: Table) -> str:
    lines = [
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{''.join('l' if c.names or c.text else 'c' for c in table.columns)}}}",
        r"\toprule",
        *_heads(table),
        r"\midrule",
    ]
    for place, line in enumerate(table.lines):
        lines += [r"\addlinespace[2pt]"] if place else []
        lines.append(_line(map(_first, line.cells)))
        if any(cell.second_line for cell in line.cells):
            lines.append(_line(_small(cell.second_line) for cell in line.cells))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}"])


def _heads(table: Table) -> list[str]:
    heads = _line(escape_latex(column.head) for column in table.columns)
    if not table.grouped:
        return [heads]
    above, rules, at = [], [], 1
    for column, width in table.spans:
        group = escape_latex(column.group)
        above.append(rf"\multicolumn{{{width}}}{{c}}{{{group}}}" if width > 1 else group)
        rules += [rf"\cmidrule(lr){{{at}-{at + width - 1}}}"] if width > 1 else []
        at += width
    return [_line(above), "".join(rules), heads, _line(_small(column.unit) for column in table.columns)]


def _first(cell: Cell) -> str:
    text = escape_latex("; ".join(cell.items) or cell.text)
    commands = {"best": r"\textbf{%s}", "strong": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}
    count = f" ({cell.count})" if cell.count else ""
    return commands[cell.emphasis] % text + count + escape_latex(cell.arrow)


def _small(text: str) -> str:
    return rf"{{\footnotesize {escape_latex(text)}}}" if text else ""


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
