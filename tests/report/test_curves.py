"""Score curves: what is drawn, said and refused."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from mario.errors import MarioError
from mario.report.curves import SERIES, _band, limits, methods_with_curves, plot_curves


def run(method: str, seed: int, *scores: float) -> dict[str, Any]:
    keys = ("train", "id_val", "id_test", "ood_val", "ood_test")
    curve = [{"step": 10 * (i + 1)} | dict.fromkeys(keys, score) for i, score in enumerate(scores)]
    return {"method": method, "seed": seed, "metric": "accuracy", "curve": curve}


RESULTS = [run("grace", 0, 0.5, 0.7), run("grace", 1, 0.7, 0.9), run("mario", 0, 0.4, 0.8), run("random-init", 0, 0.6)]


def test_band_by_hand() -> None:
    steps, mean, sd = _band(RESULTS, "grace", "ood_test")
    assert list(steps) == [10, 20]
    assert list(mean) == pytest.approx([60.0, 80.0])
    assert list(sd) == pytest.approx([200**0.5, 200**0.5])
    _, _, alone = _band(RESULTS, "mario", "ood_test")
    assert list(alone) == [0.0, 0.0]


def test_a_control_without_training_has_no_curve() -> None:
    assert methods_with_curves(RESULTS) == ["grace", "mario"]


def test_limits_hold_every_band() -> None:
    low, high = limits(RESULTS)
    assert low < 40.0
    assert high > 80.0 + 200**0.5
    assert 0.0 <= low < high <= 100.5


def test_one_panel_a_method_and_five_lines_in_each() -> None:
    text = plot_curves(RESULTS)
    ET.fromstring(text)
    for label in ("grace", "mario", "optimiser steps", *(series.label for series in SERIES)):
        assert f">{label}<" in text
    assert "grace, first to last checkpoint, percent: training 60.0 to 80.0" in text
    assert ">OOD test<" not in plot_curves(RESULTS, legend=False)
    assert ">grace<" not in plot_curves(RESULTS, methods=["mario"])


def test_series_differ_in_colour_or_dash_twice_over() -> None:
    assert len({series.colour for series in SERIES}) == len(SERIES)
    assert {series.key: bool(series.dash) for series in SERIES} == {
        "train": True, "id_val": True, "id_test": False, "ood_val": True, "ood_test": False
    }  # fmt: skip


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(MarioError, match="random-init"):
        plot_curves(RESULTS, methods=["random-init"])
    with pytest.raises(MarioError, match="two points"):
        limits([run("random-init", 0, 0.6)])
