"""HTML from the templates in ``templates/``: every value that reaches a page is escaped unless it is ``Markup``."""

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from mario.report.numbers import counted
from mario.report.tables.table import Table
from mario.untrusted import file_name


def render(template: str, **values: Any) -> Markup:
    """Fill ``templates/{template}.html.j2`` with ``values``.

    Example:
        >>> from mario.report.tables.table import TableColumn, Table
        >>> table = Table(name="mine", title="<script>", columns=(TableColumn(head="method"),), lines=())
        >>> "&lt;script&gt;" in render("table", table=table)
        True
    """
    return Markup(_environment().get_template(f"{template}.html.j2").render(**values))


def to_html(table: Table) -> Markup:
    """The table as an HTML fragment with its notes; ``templates/table.html.j2`` lists its attributes and classes."""
    return render("table", table=table)


def section_id(study: str) -> str:
    """The id of a study's section on a page, which no other part has."""
    return f"study-{file_name(study)}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("mario.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "code": _code,
        "counted": counted,
        "file_name": file_name,
        "section": section_id,
        "study": lambda study: render("study", study=study),
        "table": to_html,
        "unbroken": _unbroken,
    }
    return environment


def _unbroken(text: str) -> Markup:
    """A mean stays on one line with its spread."""
    return Markup(str(escape(text)).replace(" ± ", "&nbsp;±&nbsp;"))


def _code(text: str) -> Markup:
    """What is between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
