"""Bars: clusters of test groups, or of ID and OOD; means, spreads and positions."""

import pytest

from mario.errors import MarioError
from mario.lab.frame import frame
from mario.report.pictures import bars
from mario.report.pictures.palette import LOOKS
from report.pictures.made_up import run, texts

ROWS = (("erm", 0.6), ("grace", 0.65), ("mario", 0.7))
PLAIN = frame(run(m, s, v + 0.02 * s) for m, v in ROWS for s in range(2))
GROUPED = frame(run(m, s, v, groups=9, metric="f1") for m, v in ROWS for s in range(2))


def heights(figure: object) -> list[float]:
    return [bar.get_height() for bar in figure.axes[0].patches if bar.get_height() == bar.get_height()]  # type: ignore[attr-defined]


def test_id_and_ood_of_each_case() -> None:
    drawing = bars({"good-webkb": PLAIN, "good-cbas": PLAIN})
    axis = drawing.figure.axes[0]
    names = ["good-webkb\nID", "good-webkb\nOOD", "good-cbas\nID", "good-cbas\nOOD"]
    assert [label.get_text() for label in axis.get_xticklabels()] == names
    assert heights(drawing.figure)[:4] == pytest.approx([71.0, 61.0, 71.0, 61.0])
    assert len(heights(drawing.figure)) == 3 * 4
    assert {"71.0", "81.0", "accuracy, %", "mario"} <= texts(drawing.figure)
    assert "good-cbas OOD: erm 61.0 ± 1.4, grace 66.0 ± 1.4, mario 71.0 ± 1.4." in drawing.description


def test_a_cluster_for_each_group() -> None:
    drawing = bars({"elliptic": GROUPED})
    assert [label.get_text() for label in drawing.figure.axes[0].get_xticklabels()] == [f"T{k}" for k in range(1, 10)]
    assert len(heights(drawing.figure)) == 3 * 9
    assert "F1, %" in texts(drawing.figure)
    assert "over 2 runs" in drawing.description


def test_bars_begin_at_zero_and_have_an_error_bar_where_there_is_a_spread() -> None:
    axis = bars({"a": PLAIN}).figure.axes[0]
    assert axis.get_ylim()[0] == 0
    # Room for the figure above the highest bar.
    assert axis.get_ylim()[1] > 81.0 + 2.0
    assert len([c for c in axis.containers if type(c).__name__ == "ErrorbarContainer"]) == 3 * 2
    alone = bars({"a": frame([run("mario", 0, 0.5)])}).figure.axes[0]
    assert not [c for c in alone.containers if type(c).__name__ == "ErrorbarContainer"]


def test_a_method_has_its_color_and_its_hatch() -> None:
    from matplotlib.colors import to_hex

    drawing = bars({"a": PLAIN}, rows=["mario"])
    bar = drawing.figure.axes[0].patches[0]
    assert to_hex(bar.get_facecolor()).upper() == LOOKS["mario"].color
    assert bars({"a": PLAIN}, rows=["grace"]).figure.axes[0].patches[0].get_hatch() == LOOKS["grace"].hatch


def test_no_tick_is_above_100() -> None:
    axis = bars({"a": frame(run("mario", s, 0.88) for s in range(2))}).figure.axes[0]
    assert max(axis.get_yticks()) <= 100 < axis.get_ylim()[1]


def test_a_row_without_a_score_leaves_a_gap() -> None:
    assert len(heights(bars({"a": PLAIN}, rows=["erm", "irm", "mario"]).figure)) == 4
    with pytest.raises(MarioError, match="irm"):
        bars({"a": PLAIN}, rows=["irm"])
