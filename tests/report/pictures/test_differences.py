"""Ours beside the paper's: a pair of dots where there is a pair."""

import pytest

from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.statistics.paired import summarize
from mario.lab.studies.paper import Figure
from mario.report import Entry, Score
from mario.report.pictures import differences
from report.pictures.made_up import texts


def row(label: str, ours: float | None, theirs: float | None, score: str = "ood_test") -> Entry:
    summary = None if ours is None else summarize([ours - 0.01, ours + 0.01])
    both = {"id_test": Score(), "ood_test": Score()}
    both[score] = Score(ours=summary, paper=Figure(theirs, 1.5, 10, "Table 2"))
    facts = {"study": "mine", "case": Case.find("good-cbas"), "encoder": "gcn", "metric": "roc_auc", "asked": 2}
    return Entry(label=label, method=label, supervised=False, scores=both, **facts)


ROWS = [row("mario", 0.9, 91.0), row("grace", 0.8, 88.0), row("costa", None, 89.0), row("mvgrl", 0.7, None)]


def test_a_pair_of_dots_per_row_that_both_have() -> None:
    drawing = differences(ROWS)
    (axis,) = drawing.figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["mario", "grace"]
    x = [container.lines[0].get_xdata()[0] for container in axis.containers]
    assert x == pytest.approx([90.0, 91.0, 80.0, 88.0])
    assert {"OOD ROC-AUC, %", "ours", "the paper’s"} <= texts(drawing.figure)
    assert drawing.description.endswith("OOD: mario 90.0 and 91.0, grace 80.0 and 88.0.")


def test_the_order_is_from_the_top_down_and_a_column_that_neither_has_is_left_out() -> None:
    axes = differences([*ROWS, row("erm", 0.5, 52.0, "id_test")]).figure.axes
    assert [axis.get_title(loc="left") for axis in axes] == ["ID ROC-AUC, %", "OOD ROC-AUC, %"]
    assert axes[0].get_ylim()[0] > axes[0].get_ylim()[1]


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(MarioError, match="paper"):
        differences(ROWS[2:])
