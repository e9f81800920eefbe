"""Small pieces of markup that several parts of the page have."""

import re
from collections.abc import Sequence
from html import escape


def table_html(caption: str, head: str, rows: Sequence[str], kind: str = "choice") -> str:
    """A table in a box that scrolls; ``choice`` ones can be sorted and filtered."""
    text = escape(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text}"><table class="{kind}">'
        f"<caption>{text}</caption><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def file_name(text: str) -> str:
    """Text as the name of a file.

    Example:
        >>> file_name("Table 2: all/methods")
        'Table-2-all-methods'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "report"


def section_id(study: str) -> str:
    """The id of a study's section, which no other part of the page has."""
    return f"study-{file_name(study)}"
