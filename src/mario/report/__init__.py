"""What a person looks at: tables, plots and one self-contained HTML page."""

from mario.report.curves import curves
from mario.report.embedding_map import embedding_map
from mario.report.page import write_page
from mario.report.table import Row, Table, tabulate, tabulate_all, to_html, to_markdown, to_rich, verdict

__all__ = [
    "Row",
    "Table",
    "curves",
    "embedding_map",
    "tabulate",
    "tabulate_all",
    "to_html",
    "to_markdown",
    "to_rich",
    "verdict",
    "write_page",
]
