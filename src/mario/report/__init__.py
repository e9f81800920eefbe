"""Tables, pictures and one self-contained HTML page from the runs of studies."""

from mario.report.claims import Claim, claims
from mario.report.claims_table import claims_table
from mario.report.page import write_report
from mario.report.tables import (
    Cell,
    Column,
    Entry,
    Line,
    Pooled,
    Score,
    Table,
    entries,
    long_table,
    pool,
    ranking_of,
    runs_to_csv,
    study_table,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    to_rich,
    validation_table,
    verdict,
)

__all__ = [
    "Cell",
    "Claim",
    "Column",
    "Entry",
    "Line",
    "Pooled",
    "Score",
    "Table",
    "claims",
    "claims_table",
    "entries",
    "long_table",
    "pool",
    "ranking_of",
    "runs_to_csv",
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
