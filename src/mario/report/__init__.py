"""What a person looks at: tables, plots and one self-contained HTML page."""

from mario.report.claims import Claim, claims
from mario.report.claims_text import claims_to_html, claims_to_markdown
from mario.report.page import write_report
from mario.report.tables import (
    LongRow,
    Pooled,
    Row,
    Table,
    WideTable,
    long_rows,
    long_to_html,
    pool,
    ranking_of,
    runs_to_csv,
    tabulate,
    tabulate_all,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    to_rich,
    verdict,
    wide_table,
)

__all__ = [
    "Claim",
    "LongRow",
    "Pooled",
    "Row",
    "Table",
    "WideTable",
    "claims",
    "claims_to_html",
    "claims_to_markdown",
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
    "write_report",
]
