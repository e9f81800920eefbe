"""The grid: a cell for each pair of values, the one to choose framed by validation and not by test."""

import pytest

from mario.errors import MarioError
from mario.lab.frame import frame
from mario.lab.result import RunResult, Scores
from mario.report.pictures import grid
from report.pictures.made_up import run, texts


def cell(gamma: float, clusters: int, validation: float, test: float) -> RunResult:
    settings = {"gamma": gamma, "clusters": clusters, "tau": 0.2}
    return run("mario", 0, test, settings=settings, scores=Scores(ood_val=validation, ood_test=test))


RUNS = frame(
    [
        cell(1.0, 10, 0.30, 0.90),
        cell(0.1, 10, 0.50, 0.40),
        cell(0.1, 10, 0.54, 0.44),
        cell(0.1, 200, 0.40, 0.60),
    ]
)


def test_two_panels_with_the_figures_in_the_cells() -> None:
    drawing = grid(RUNS)
    validation, test = drawing.figure.axes
    assert [label.get_text() for label in validation.get_xticklabels()] == ["10", "200"]
    assert [label.get_text() for label in validation.get_yticklabels()] == ["0.1", "1"]
    values = validation.collections[0].get_array()
    assert values[0].tolist() == pytest.approx([52.0, 40.0])
    assert values.mask.tolist() == [[False, False], [False, True]]
    assert {"52.0\n± 2.8", "42.0\n± 2.8", "–", "OOD validation accuracy, %", "|C| (prototypes)"} <= texts(
        drawing.figure
    )
    assert test.get_title(loc="left") == "OOD test accuracy, %"


def test_validation_chooses_the_cell_that_is_framed_in_both() -> None:
    drawing = grid(RUNS)
    for axis in drawing.figure.axes:
        frames = [patch for patch in axis.patches if not patch.get_fill()]
        # 90.0 at γ = 1 is the best on test, which no choice may see.
        assert {frame.get_xy() for frame in frames} == {(0, 0)}
    assert "Best on OOD validation: gamma 0.1, clusters 10: 52.0 on OOD validation, 42.0 on OOD test." in (
        drawing.description
    )
    assert "OOD test at gamma 1: 90.0, none." in drawing.description


def test_writing_is_seen_on_its_cell() -> None:
    axis = grid(RUNS).figure.axes[0]
    colors = {text.get_text(): text.get_color() for text in axis.texts}
    assert colors["52.0\n± 2.8"] == "#000000"  # on yellow
    assert colors["30.0\n± 0.0"] == "#FFFFFF"  # on dark blue


def test_other_settings_and_none() -> None:
    assert "tau 0.2" in grid(RUNS, down="tau", across="gamma").description
    with pytest.raises(MarioError, match="gamma and ratio"):
        grid(RUNS, across="ratio")


def test_values_may_be_words() -> None:
    runs = [
        run("grace", 0, 0.4, settings={"encoder": encoder, "tau": tau})
        for encoder in ("sage", "gcn", None)
        for tau in (0.5, 0.25)
    ]
    drawing = grid(frame(runs), down="encoder", across="tau")
    labels = [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()]
    assert labels == ["None", "gcn", "sage"]
    assert "OOD test at encoder gcn: 40.0, 40.0." in drawing.description
