"""Tables as HTML fragments that a script can sort and a screen reader can read."""

from markupsafe import Markup

from mario.report.html import render
from mario.report.tables.table import Table


def to_html(table: Table) -> Markup:
    """The table as an HTML fragment with its notes; ``templates/table.html.j2`` lists its attributes and classes.

    Example:
        >>> from mario.report.tables.html import to_html
        >>> from mario.report.tables.table import Column, Table
        >>> to_html(Table(name="mine", title="Every case", columns=(Column(head="method"),), lines=()))[:71]
        Markup('<div class="scroll" role="region" tabindex="0" aria-label="Every case">')
    """
    return render("table", table=table)
