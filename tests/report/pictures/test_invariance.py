"""Invariance curves: average beside worst case, on one scale, of the runs that measured it."""

import pytest

from mario.errors import MarioError
from mario.lab.frame import frame
from mario.lab.result import RunResult
from mario.report.pictures import invariance_curves
from mario.report.pictures.invariance import rows_with_invariance
from report.pictures.made_up import run, texts


def measured(method: str, seed: int, mean: float) -> RunResult:
    curve = [{"step": s, "align_mean": mean / s, "align_worst": 2 * mean / s} for s in (1, 2, 4)]
    return run(method, seed, 0.5, curve=curve)


RUNS = frame([measured("erm", 0, 0.4), measured("mario", 0, 0.1), measured("mario", 1, 0.3), run("grace", 0, 0.9)])


def test_a_line_and_a_band_per_row_in_both_panels() -> None:
    drawing = invariance_curves(RUNS)
    average, worst = drawing.figure.axes
    for axis in (average, worst):
        assert [line.get_label() for line in axis.lines] == ["erm", "mario"]
        assert len(axis.collections) == 2
    assert list(average.lines[1].get_ydata()) == pytest.approx([0.2, 0.1, 0.05])
    assert list(worst.lines[1].get_ydata()) == pytest.approx([0.4, 0.2, 0.1])
    assert average.get_ylim() == worst.get_ylim()
    assert average.get_ylim()[0] == 0
    assert average.get_ylim()[1] > 0.8
    assert {"average over views", "worst case", "alignment (low: invariant)", "mario"} <= texts(drawing.figure)
    assert drawing.description.endswith("erm 0.100 and 0.200; mario 0.050 and 0.100.")


def test_rows_that_did_not_measure_it_have_no_line() -> None:
    assert rows_with_invariance(RUNS) == ["erm", "mario"]
    with pytest.raises(MarioError, match="alignment"):
        invariance_curves(RUNS, rows=["grace"])
