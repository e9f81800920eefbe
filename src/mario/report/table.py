"""The table of one case, under the name that it had before `mario.report.tables`."""

from mario.report.numbers import METRICS, p_value, percent, points
from mario.report.tables import Row, Table, tabulate, tabulate_all, to_html, to_markdown, to_rich, verdict
from mario.report.tables.one_case import CASE, CONTROLS

__all__ = [
    "CASE",
    "CONTROLS",
    "METRICS",
    "Row",
    "Table",
    "p_value",
    "percent",
    "points",
    "tabulate",
    "tabulate_all",
    "to_html",
    "to_markdown",
    "to_rich",
    "verdict",
]
