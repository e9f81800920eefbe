"""Tables as HTML fragments that a script can sort and a screen reader can read.

A study's table is ``<div class="scroll" role="region" tabindex="0"><table class="wide">`` (the long form's ``long``)
with a caption and ``scope`` on every head; a ``<ul class="notes">`` comes after it. For a script:

- every head that a column can be sorted by has ``data-column`` (its place, from 0); heads that span several columns
  have none;
- every cell of the body has ``data-sort``, a number; an empty one belongs last, whichever way is sorted. The head of a
  row has none: it is sorted by name;
- every row has ``data-label``, the long form's rows and the wide form's heads of cases ``data-case``, to filter by.

For a style sheet: rows are ``subject``, ``control``, ``supervised`` or ``compared``. Cells are ``id``, ``ood``,
``group`` or ``overall``, with ``best`` or ``second`` beside it, ``short`` where runs are missing and ``empty`` where
all are. In them stand ``ours``, ``n``, ``arrow`` (with ``above`` or ``below``), ``paper`` and in it ``off`` (with
``far`` beyond two of the paper's sd). ``sr`` is for screen readers alone.
"""

from collections.abc import Sequence
from html import escape

from mario.report.numbers import METRICS, p_value
from mario.report.tables.long_form import COLUMNS, values
from mario.report.tables.one_case import CONTROLS, Row, Table
from mario.report.tables.one_case_text import CHOSEN, header_notes, paper_cells, score_cells, test_cells
from mario.report.tables.rows import LongRow
from mario.report.tables.text import cell_text, overall_text
from mario.report.tables.wide import Cell, Column, Overall, WideTable


def to_html(table: Table | WideTable) -> str:
    """The table as an HTML fragment with its notes; of one case, the paired tests are in a second table.

    Tables scroll in themselves on a narrow screen. The head of this file says what a script finds in a study's table.
    """
    return _study(table) if isinstance(table, WideTable) else _one_case(table)


def _study(table: WideTable) -> str:
    body = "\n".join(_row(table, i) for i in range(len(table.rows)))
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    return _framed("wide", table.heading, _groups(table), _heads(table), body) + f'\n<ul class="notes">{notes}</ul>'


def long_to_html(rows: Sequence[LongRow], *, caption: str) -> str:
    """The long form as one sortable table, with the columns of :data:`~mario.report.tables.long_form.COLUMNS`.

    Example:
        >>> from mario.report import long_to_html
        >>> long_to_html([], caption="Every case")[:71]
        '<div class="scroll" role="region" tabindex="0" aria-label="Every case">'
    """
    shown = [name for name in COLUMNS if name != "study"]
    heads = "".join(
        f'<th scope="col" data-column="{i}">{escape(name.replace("_", " "))}</th>' for i, name in enumerate(shown)
    )
    body = "\n".join(_long_row(row, shown) for row in rows)
    return _framed("long", caption, "", f"<tr>{heads}</tr>", body)


_WORDS = ("case", "dataset", "domain", "shift", "setting", "metric", "label", "method", "encoder", "against", "why")


def _framed(kind: str, caption: str, groups: str, heads: str, body: str) -> str:
    text = escape(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text}"><table class="{kind}">\n'
        f"<caption>{text}</caption>\n{groups}<thead>{heads}</thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _groups(table: WideTable) -> str:
    spans = [1, *(width for _, width in table.cases), *([1] if table.overall else [])]
    return "".join(f'<colgroup span="{span}"></colgroup>' for span in spans) + "\n"


def _heads(table: WideTable) -> str:
    top = ['<th scope="col" rowspan="2" data-column="0">Method</th>']
    at = 0
    for head, width in table.cases:
        metric = escape(table.columns[at].metric_name)
        case = escape(table.columns[at].case)
        top.append(
            f'<th scope="colgroup" colspan="{width}" data-case="{case}">{escape(head)} <small>{metric}, %</small></th>'
        )
        at += width
    below = [
        f'<th scope="col" data-column="{i}">{escape(column.head)}</th>'
        for i, column in enumerate(table.columns, start=1)
    ]
    if table.overall:
        top.append('<th scope="colgroup">all cases</th>')
        against = escape(table.overall_against)
        below.append(f'<th scope="col" data-column="{at + 1}">OOD − {against}</th>')
    return f"<tr>{''.join(top)}</tr>\n<tr>{''.join(below)}</tr>"


def _row(table: WideTable, i: int) -> str:
    label = table.rows[i]
    cells = [_cell(cell, column) for cell, column in zip(table.cells[i], table.columns, strict=True)]
    if table.overall:
        cells.append(_overall(table.overall[i]))
    kind = "control" if label in table.controls else "supervised" if label in table.supervised else "compared"
    kind = "subject" if label == table.subject else kind
    name = escape(label)
    return f'<tr class="{kind}" data-label="{name}"><th scope="row">{name}</th>{"".join(cells)}</tr>'


def _cell(cell: Cell, column: Column) -> str:
    text = cell_text(cell)
    kinds = [column.score if column.score in ("id", "ood") else "group"]
    if cell.ours is None:
        kinds.append("empty")
    elif cell.n < cell.asked:
        kinds.append("short")
    score = f'<span class="ours">{_spaced(text.score)}</span>'
    if cell.place:
        kinds.append("best" if cell.place == 1 else "second")
        tag, said = ("b", "best") if cell.place == 1 else ("u", "second")
        score = f'<span class="ours"><{tag}>{_spaced(text.score)}</{tag}><span class="sr">, {said}</span></span>'
    parts = [score]
    if text.count:
        parts.append(f'<span class="n" title="runs">{text.count}</span>')
    if cell.direction and cell.test is not None:
        parts.append(_arrow(cell.direction, text.arrow, cell.against or "", cell.p_holm))
    if text.paper:
        off = f' <span class="off{_far(cell)}">{escape(text.off)}</span>' if text.off else ""
        parts.append(f'<span class="paper"><span class="sr">paper: </span>{_spaced(text.paper)}{off}</span>')
    sort = "" if cell.ours is None else f"{100 * cell.ours.mean:.4f}"
    said = "; ".join(part for part in (_by_split(cell), cell.why) if part)
    title = f' title="{escape(said)}"' if said else ""
    return f'<td class="{" ".join(kinds)}" data-sort="{sort}"{title}>{" ".join(parts)}</td>'


def _overall(overall: Overall | None) -> str:
    if overall is None:
        return '<td class="overall empty" data-sort="">–</td>'
    difference, test = overall_text(overall)
    arrow = ""
    if overall.direction:
        difference, _, mark = difference.partition(" ")
        arrow = " " + _arrow(overall.direction, mark, overall.pooled.against, overall.p_holm)
    return (
        f'<td class="overall" data-sort="{100 * overall.pooled.test.mean_difference:.4f}">'
        f'<span class="ours">{difference}</span>{arrow} <span class="paper">{escape(test)}</span></td>'
    )


def _arrow(direction: str, mark: str, against: str, p: float | None) -> str:
    said = escape(f"{direction} {against}, p = {p_value(p)} after Holm’s correction".replace("= <", "<"))
    marked = f'<span aria-hidden="true">{mark}</span><span class="sr">{said}</span>'
    return f'<span class="arrow {direction}" title="{said}">{marked}</span>'


def _by_split(cell: Cell) -> str:
    """The spread over splits, where that is not the spread over runs."""
    splits = cell.by_split
    if splits is None or splits.sd is None or splits.n_splits == cell.n:
        return ""
    return f"± {100 * splits.sd:.2f} over the means of {splits.n_splits} splits"


def _far(cell: Cell) -> str:
    return " far" if cell.off_sd is not None and abs(cell.off_sd) > 2 else ""


def _spaced(text: str) -> str:
    return escape(text).replace(" ± ", "&nbsp;±&nbsp;")


def _long_row(row: LongRow, shown: Sequence[str]) -> str:
    found = values(row)
    cells = []
    for name in shown:
        value = found[name]
        text = "–" if value is None or value == "" else f"{value:.2f}" if isinstance(value, float) else str(value)
        if name in ("p", "p_holm") and isinstance(value, float):
            text = p_value(value)
        if name == "label":
            cells.append(f'<th scope="row">{escape(text)}</th>')
        else:
            cells.append(f'<td data-sort="{"" if value is None else escape(str(value))}">{escape(text)}</td>')
    return f'<tr data-label="{escape(row.label)}" data-case="{escape(row.case)}">{"".join(cells)}</tr>'


def _one_case(table: Table) -> str:
    metric = METRICS.get(table.metric, table.metric)
    top = (
        '<tr><th rowspan="2" scope="col">Method</th><th rowspan="2" scope="col">n</th>'
        f'<th colspan="4" scope="colgroup">Ours, {escape(metric)} %</th>'
        '<th colspan="4" scope="colgroup">The paper’s, and ours less the paper’s</th></tr>\n'
    )
    heads = [f"{column} <small>chosen on {rule}</small>" for column, rule in CHOSEN]
    if table.chosen_on != "ood_val":
        heads[1] = f"OOD <small>{escape(table.chosen_on)} checkpoint</small>"
    heads += ["Gap <small>ID − OOD</small>", "ID", "diff.", "OOD", "diff."]
    main = _html_table(
        f"Results: {table.title}",
        top + _html_heads(heads),
        [(row, [row.label, str(row.n), *score_cells(row), *paper_cells(row)]) for row in table.rows],
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in header_notes(table) + list(table.notes))
    tests = ""
    if table.reference and any(row.test for row in table.rows):
        heads = ["Method", "pairs", "difference", "95 % interval", "won / tied / lost", "p", "p <small>Holm</small>"]
        heads.append("difference <small>averaged by split</small>")
        tests = _html_table(
            f"OOD {metric} less that of {table.reference}, same split and seed, in points",
            _html_heads(heads),
            [(row, [row.label, *test_cells(row)]) for row in table.rows if row.test],
        )
    return f'{main}\n{tests}\n<ul class="notes">{notes}</ul>'


def _html_heads(heads: Sequence[str]) -> str:
    return "<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>"


def _html_table(caption: str, head: str, body: Sequence[tuple[Row, Sequence[str]]]) -> str:
    rows = []
    for row, (label, *cells) in body:
        kind = "subject" if row.method == "mario" else ("control" if row.method in CONTROLS else "compared")
        data = "".join(f"<td>{escape(cell).replace(' ± ', '&nbsp;±&nbsp;')}</td>" for cell in cells)
        rows.append(f'<tr class="{kind}"><th scope="row">{escape(label)}</th>{data}</tr>')
    text = escape(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text}"><table>\n<caption>{text}</caption>\n'
        f"<thead>{head}</thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>"
    )
