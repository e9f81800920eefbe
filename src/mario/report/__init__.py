"""Tables, pictures and one self-contained HTML page from the runs of studies."""

from mario.report.claims import Claim, claims
from mario.report.claims_table import claims_table
from mario.report.html import to_html
from mario.report.outcome import outcome
from mario.report.page import write_report
from mario.report.registered import Registered, registered
from mario.report.tables.columns import long_table, to_csv
from mario.report.tables.entries import Entry, Score, entries
from mario.report.tables.latex import to_latex
from mario.report.tables.markdown import to_markdown
from mario.report.tables.pooled import Pooled, pool
from mario.report.tables.ranking import ranking_of
from mario.report.tables.registered import registered_tables
from mario.report.tables.study import study_table, validation_table
from mario.report.tables.table import Cell, Line, Table, TableColumn
from mario.report.tables.terminal import to_rich
from mario.report.tables.verdict import verdict

__all__ = [
    "Cell",
    "Claim",
    "Entry",
    "Line",
    "Pooled",
    "Registered",
    "Score",
    "Table",
    "TableColumn",
    "claims",
    "claims_table",
    "entries",
    "long_table",
    "outcome",
    "pool",
    "ranking_of",
    "registered",
    "registered_tables",
    "study_table",
    "to_csv",
    "to_html",
    "to_latex",
    "to_markdown",
    "to_rich",
    "validation_table",
    "verdict",
    "write_report",
]
