"""Score curves: what is drawn, said and refused."""

from typing import Any

import pytest

from mario.errors import MarioError
from mario.report.pictures.curves import SERIES, _percent_band, curves, limits, rows_with_curves
from report.pictures.made_up import SETS, texts


def run(method: str, seed: int, *scores: float) -> dict[str, Any]:
    curve = [{"step": 10 * (i + 1)} | dict.fromkeys(SETS, score) for i, score in enumerate(scores)]
    return {"method": method, "seed": seed, "metric": "accuracy", "curve": curve}


RESULTS = [run("grace", 0, 0.5, 0.7), run("grace", 1, 0.7, 0.9), run("mario", 0, 0.4, 0.8), run("random-init", 0, 0.6)]


def test_band_by_hand() -> None:
    steps, mean, sd = _percent_band(RESULTS, "grace", "ood_test")
    assert list(steps) == [10, 20]
    assert list(mean) == pytest.approx([60.0, 80.0])
    assert list(sd) == pytest.approx([200**0.5, 200**0.5])
    _, _, alone = _percent_band(RESULTS, "mario", "ood_test")
    assert list(alone) == [0.0, 0.0]


def test_a_control_without_training_has_no_curve() -> None:
    assert rows_with_curves(RESULTS) == ["grace", "mario"]


def test_limits_hold_every_band() -> None:
    low, high = limits(RESULTS)
    assert low < 40.0
    assert high > 80.0 + 200**0.5
    assert 0.0 <= low < high <= 100.5


def test_one_panel_a_row_five_lines_and_bands_in_each_on_one_scale() -> None:
    drawing = curves(RESULTS)
    left, right = drawing.figure.axes
    for axis in (left, right):
        assert [line.get_label() for line in axis.lines] == [series.label for series in SERIES]
        assert len(axis.collections) == len(SERIES)
    assert left.get_ylim() == right.get_ylim() == limits(RESULTS)
    assert list(left.lines[-1].get_ydata()) == pytest.approx([60.0, 80.0])
    assert {"grace (n = 2)", "mario (n = 1)", "accuracy, %", "optimizer steps", "OOD test"} <= texts(drawing.figure)
    assert "grace, first to last checkpoint, percent: training 60.0 to 80.0" in drawing.description


def test_a_label_is_the_row() -> None:
    results = [result | {"label": f"{result['method']} w/o ad"} for result in RESULTS]
    assert rows_with_curves(results) == ["grace w/o ad", "mario w/o ad"]


def test_a_set_that_a_dataset_does_not_have_is_left_out() -> None:
    without = [r | {"curve": [{k: v for k, v in p.items() if k != "id_val"} for p in r["curve"]]} for r in RESULTS]
    assert len(curves(without).figure.axes[0].lines) == len(SERIES) - 1


def test_series_differ_in_color_and_in_shape() -> None:
    assert len({series.color for series in SERIES}) == len(SERIES)
    # A print in gray has dashes and markers left.
    assert len({(series.dash, series.marker) for series in SERIES}) == len(SERIES)
    assert {series.key: bool(series.dash) for series in SERIES} == {
        "train": True, "id_val": True, "id_test": False, "ood_val": True, "ood_test": False
    }  # fmt: skip


def test_rows_and_the_legend_can_be_left_out() -> None:
    alone = texts(curves(RESULTS, rows=["mario"], legend=False).figure)
    assert "mario (n = 1)" in alone
    assert not {"grace (n = 2)", "OOD test"} & alone


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(MarioError, match="random-init"):
        curves(RESULTS, rows=["random-init"])
    with pytest.raises(MarioError, match="two points"):
        limits([run("random-init", 0, 0.6)])
