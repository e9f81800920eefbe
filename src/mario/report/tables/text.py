"""What stands in a cell of a study's table, as plain text that every kind of rendering sets in its own way."""

from dataclasses import dataclass

from mario.report.numbers import p_value, percent, points
from mario.report.tables.wide import Cell, Overall

ARROWS = {"above": "↑", "below": "↓", "": ""}


@dataclass(frozen=True)
class CellText:
    """``score`` ± spread, ``count`` of runs, ``arrow`` of the test, ``paper`` figure and how far ``off`` it we are."""

    score: str
    count: str
    arrow: str
    paper: str
    off: str


def cell_text(cell: Cell) -> CellText:
    """The words of a cell.

    Example:
        >>> from mario.lab.studies.paper import Figure
        >>> from mario.lab.statistics.paired import summarize
        >>> from mario.report.tables.text import cell_text
        >>> from mario.report.tables.wide import Cell
        >>> figure = Figure(mean=91.28, sd=1.1, n=10, table="Table 2")
        >>> cell_text(Cell(ours=summarize([0.9, 0.92]), n=2, asked=5, paper=figure, off=-0.28, off_sd=-0.255))
        CellText(score='91.00 ± 1.41', count='2 of 5', arrow='', paper='91.28 ± 1.10', off='−0.3 sd')
        >>> cell_text(Cell(paper=figure, empty="failed")).score
        'failed'
    """
    return CellText(
        score=cell.empty if cell.ours is None else percent(cell.ours),
        count="" if cell.ours is None else cell.count,
        arrow=ARROWS[cell.direction],
        paper="" if cell.paper is None else str(cell.paper),
        off=_off(cell),
    )


def overall_text(overall: Overall) -> tuple[str, str]:
    """The difference over all cases with its arrow, and the test that it is from."""
    test = overall.pooled.test
    cases = f"{overall.pooled.above} of {len(overall.pooled.cases)} cases above"
    p = f"p = {p_value(overall.p_holm)}".replace("= <", "<") if overall.p_holm is not None else "no test"
    return f"{points(test.mean_difference)} {ARROWS[overall.direction]}".strip(), f"{test.n} pairs, {cases}, {p}"


def _off(cell: Cell) -> str:
    if cell.off_sd is not None:
        text = f"{cell.off_sd:+.1f}"
        return f"{'0.0' if float(text) == 0 else text.replace('-', '−')} sd"
    return "" if cell.off is None else f"{points(cell.off / 100)} points"  # the paper's sd is 0
