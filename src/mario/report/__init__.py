"""What a person looks at: tables, plots and one self-contained HTML page."""

from mario.report.curves import plot_curves
from mario.report.embedding_map import plot_embeddings
from mario.report.page import write_page
from mario.report.table import (
    Row,
    Table,
    far_from_paper,
    groups_to_markdown,
    tabulate,
    tabulate_all,
    to_html,
    to_markdown,
    to_rich,
    verdict,
)

__all__ = [
    "Row",
    "Table",
    "far_from_paper",
    "groups_to_markdown",
    "plot_curves",
    "plot_embeddings",
    "tabulate",
    "tabulate_all",
    "to_html",
    "to_markdown",
    "to_rich",
    "verdict",
    "write_page",
]
