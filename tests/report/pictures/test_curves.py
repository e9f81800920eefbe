"""Score curves: what is drawn, said and refused."""

import pytest

from mario.errors import MarioError
from mario.lab.frame import frame
from mario.lab.result import RunResult
from mario.report.pictures.curves import SERIES, curves, limits, rows_with_curves
from mario.report.pictures.scores import band
from report.pictures.made_up import SETS, run as make, texts


def run(method: str, seed: int, *scores: float, sets: tuple[str, ...] = SETS) -> RunResult:
    return make(
        method, seed, 0.5, curve=[{"step": 10 * (i + 1)} | dict.fromkeys(sets, s) for i, s in enumerate(scores)]
    )


SCORES = (("grace", 0, 0.5, 0.7), ("grace", 1, 0.7, 0.9), ("mario", 0, 0.4, 0.8), ("random-init", 0, 0.6))
RUNS = frame(run(*scores) for scores in SCORES)


def test_band_by_hand() -> None:
    steps, mean, sd = band(RUNS, "grace", "ood_test")
    assert list(steps) == [10, 20]
    assert list(mean) == pytest.approx([0.6, 0.8])
    assert list(sd) == pytest.approx([0.02**0.5, 0.02**0.5])
    _, _, alone = band(RUNS, "mario", "ood_test")
    assert list(alone) == [0.0, 0.0]


def test_a_control_without_training_has_no_curve() -> None:
    assert rows_with_curves(RUNS) == ["grace", "mario"]


def test_limits_hold_every_band() -> None:
    low, high = limits(RUNS)
    assert low < 40.0
    assert high > 80.0 + 200**0.5
    assert 0.0 <= low < high <= 100.5


def test_one_panel_per_row_five_lines_and_bands_in_each_on_one_scale() -> None:
    drawing = curves(RUNS)
    left, right = drawing.figure.axes
    for axis in (left, right):
        assert [line.get_label() for line in axis.lines] == [series.label for series in SERIES]
        assert len(axis.collections) == len(SERIES)
    assert left.get_ylim() == right.get_ylim() == limits(RUNS)
    assert list(left.lines[-1].get_ydata()) == pytest.approx([60.0, 80.0])
    assert {"grace (n = 2)", "mario (n = 1)", "accuracy, %", "optimizer steps", "OOD test"} <= texts(drawing.figure)
    assert "grace, first to last checkpoint, percent: training 60.0 to 80.0" in drawing.description


def test_a_label_is_the_row() -> None:
    runs = RUNS.assign(label=RUNS["method"] + " w/o ad")
    assert rows_with_curves(runs) == ["grace w/o ad", "mario w/o ad"]


def test_a_set_that_a_dataset_does_not_have_is_left_out() -> None:
    sets = tuple(name for name in SETS if name != "id_val")
    without = frame(run(*scores, sets=sets) for scores in SCORES)
    assert len(curves(without).figure.axes[0].lines) == len(SERIES) - 1


def test_series_differ_in_color_and_in_shape() -> None:
    assert len({series.color for series in SERIES}) == len(SERIES)
    # A print in gray has dashes and markers left.
    assert len({(series.dash, series.marker) for series in SERIES}) == len(SERIES)
    assert {series.key: bool(series.dash) for series in SERIES} == {
        "train": True, "id_val": True, "id_test": False, "ood_val": True, "ood_test": False
    }  # fmt: skip


def test_rows_and_the_legend_can_be_left_out() -> None:
    alone = texts(curves(RUNS, rows=["mario"], legend=False).figure)
    assert "mario (n = 1)" in alone
    assert not {"grace (n = 2)", "OOD test"} & alone


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(MarioError, match="random-init"):
        curves(RUNS, rows=["random-init"])
    with pytest.raises(MarioError, match="two points"):
        limits(frame([run("random-init", 0, 0.6)]))
