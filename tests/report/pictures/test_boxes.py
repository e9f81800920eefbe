"""Boxes: one for each row and test group, by its quartiles."""

import pytest
from pandas import DataFrame

from mario.errors import MarioError
from mario.lab.frame import frame
from mario.report.pictures import boxes
from mario.report.pictures.boxes import SIDE_BY_SIDE
from mario.report.pictures.palette import LOOKS
from report.pictures.made_up import run, texts

ROWS = (("erm", 0.6), ("eerm", 0.5), ("grace", 0.65), ("mario", 0.7))
RUNS = frame(run(m, s, v + 0.01 * s, groups=3) for m, v in ROWS for s in range(5))


def test_a_box_for_each_row_and_group_side_by_side() -> None:
    drawing = boxes(RUNS)
    (axis,) = drawing.figure.axes
    drawn = [patch for patch in axis.patches if type(patch).__name__ == "PathPatch"]
    assert len(drawn) == 4 * 3
    # The box of erm on T1: quartiles of 61, 62, 63, 64, 65.
    corners = drawn[0].get_path().vertices[:, 1]
    assert (corners.min(), corners.max()) == (pytest.approx(62.0), pytest.approx(64.0))
    assert [label.get_text() for label in axis.get_xticklabels()] == ["T1", "T2", "T3"]
    assert {"erm", "eerm", "grace", "mario", "accuracy, %"} <= texts(drawing.figure)
    assert "erm: T1 63.0, T2 64.0, T3 65.0" in drawing.description
    assert "over 5 runs" in drawing.description


def test_few_runs_are_shown_and_many_are_not() -> None:
    def dots(runs: DataFrame) -> int:
        return sum(len(line.get_xdata()) for line in boxes(runs).figure.axes[0].lines if line.get_marker() == ".")

    assert dots(RUNS) == len(RUNS) * 3
    assert dots(frame(run("mario", s, 0.5 + 0.01 * s, groups=1) for s in range(20))) == 0


def test_a_single_run_has_a_mark_in_the_color_of_its_row() -> None:
    lines = boxes(frame([run("mario", 0, 0.5, groups=2)])).figure.axes[0].lines
    marks = [line for line in lines if line.get_marker() == LOOKS["mario"].marker]
    assert [line.get_ydata()[0] for line in marks] == pytest.approx([51.0, 52.0])
    assert {line.get_markerfacecolor() for line in marks} == {LOOKS["mario"].color}


def test_many_rows_have_a_panel_each_on_one_scale() -> None:
    many = (run(f"row {i}", s, 0.5 + 0.01 * i, groups=2) for i in range(SIDE_BY_SIDE + 1) for s in range(2))
    drawing = boxes(frame(many))
    shown = [axis for axis in drawing.figure.axes if axis.axison]
    assert [axis.get_title(loc="left") for axis in shown] == [f"row {i}" for i in range(7)]
    assert len({axis.get_ylim() for axis in shown}) == 1
    # The lowest panel of each column names the groups.
    assert [axis.xaxis.get_tick_params()["labelbottom"] for axis in shown] == [False] * 3 + [True] * 4


def test_rows_are_chosen_and_refused() -> None:
    assert "eerm" not in texts(boxes(RUNS, rows=["erm", "mario"]).figure)
    with pytest.raises(MarioError, match="costa"):
        boxes(RUNS, rows=["costa"])
    with pytest.raises(MarioError, match="test groups"):
        boxes(frame([run("mario", 0, 0.5)]))
