"""Tables: of one case, of a study as the paper prints it, in long form, and all of them as text of several kinds."""

from mario.report.tables.html import long_to_html, to_html
from mario.report.tables.latex import to_latex
from mario.report.tables.long_form import runs_to_csv, to_csv
from mario.report.tables.markdown import to_markdown
from mario.report.tables.one_case import Row, Table, tabulate, tabulate_all
from mario.report.tables.one_case_text import verdict
from mario.report.tables.pooled import Pooled, pool
from mario.report.tables.ranks import ranking_of
from mario.report.tables.rows import LongRow, long_rows
from mario.report.tables.terminal import to_rich
from mario.report.tables.wide import Cell, Column, Overall, WideTable, wide_table

__all__ = [
    "Cell",
    "Column",
    "LongRow",
    "Overall",
    "Pooled",
    "Row",
    "Table",
    "WideTable",
    "long_rows",
    "long_to_html",
    "pool",
    "ranking_of",
    "runs_to_csv",
    "tabulate",
    "tabulate_all",
    "to_csv",
    "to_html",
    "to_latex",
    "to_markdown",
    "to_rich",
    "verdict",
    "wide_table",
]
