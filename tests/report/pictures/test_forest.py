"""A forest plot: a line per column with its interval, and one of all columns."""

import pytest

from made_up import collected
from mario.errors import MarioError
from mario.lab.statistics.paired import paired
from mario.report import entries, study_table
from mario.report.numbers import interval
from mario.report.pictures import ForestLine, forest, forest_lines
from mario.report.pictures.forest import study_lines
from report.pictures.made_up import texts

CBAS = {"grace": [0.80, 0.81, 0.82, 0.80, 0.81], "mario": [0.90, 0.92, 0.91, 0.93, 0.90], "erm": [0.5] * 5}
WEBKB = {"grace": [0.40, 0.41, 0.42], "mario": [0.39, 0.42, 0.42], "erm": [0.3] * 3}


def study(**scores: dict[str, list[float]]):  # type: ignore[no-untyped-def]
    return collected({name.replace("_", "-"): of for name, of in scores.items()})


def test_a_line_per_column_and_one_of_all() -> None:
    lines = forest_lines(study(good_cbas_concept=CBAS, webkb_concept=WEBKB).frame, "mario", "grace")
    assert [(line.name, line.test.n, line.pooled) for line in lines] == [
        ("good-cbas", 5, False),
        ("webkb", 3, False),
        ("both columns", 8, True),
    ]
    assert lines[0].test == paired(CBAS["mario"], CBAS["grace"], splits=[("x", i) for i in range(5)])
    assert lines[0].clear
    assert not lines[1].clear, "three pairs have no interval"
    assert lines[0].p == pytest.approx(2 * 0.0625), "Holm over the columns"


def test_all_columns_can_count_alike() -> None:
    runs = study(good_cbas_concept=CBAS, webkb_concept=WEBKB).frame
    last = forest_lines(runs, "mario", "grace", together="columns")[-1]
    assert (last.test.n, last.over) == (2, "column")
    each = [line.test.mean_difference for line in forest_lines(runs, "mario", "grace")[:2]]
    assert last.test.mean_difference == pytest.approx(sum(each) / 2)
    assert len(forest_lines(runs, "mario", "grace", together="")) == 2
    with pytest.raises(MarioError, match="together"):
        forest_lines(runs, "mario", "grace", together="all")  # type: ignore[arg-type]


def test_columns_of_one_dataset_are_named_by_what_differs() -> None:
    runs = study(good_cbas_concept=CBAS, good_cbas_covariate=CBAS).frame
    names = [line.name for line in forest_lines(runs, "mario", "grace")]
    assert names == ["good-cbas, concept", "good-cbas, covariate", "both columns"]


def test_of_a_study_it_has_the_tests_of_its_table() -> None:
    made = study(good_cbas_concept=CBAS, webkb_concept=WEBKB)
    lines = study_lines(made)
    assert {(line.label, line.against) for line in lines} == {("mario", "grace")}
    by_case = {entry.case.name: entry for entry in entries(made) if entry.label == "mario"}
    assert all(line.p == by_case[line.case].p_holm for line in lines if line.case)
    overall = study_table(made).cell("mario", "OOD − grace")
    assert overall.text == f"+{100 * lines[-1].test.mean_difference:.2f}"
    assert overall.detail.endswith(f"p = {lines[-1].p:.3f}")


def test_without_a_subject_that_is_tested_every_row_is_shown() -> None:
    ablation = collected(
        {"good-cbas-concept": {"mario": [0.9] * 5, "mario w/o ad": [0.8] * 5, "mario w/o cmi": [0.7] * 5}},
        reference="mario",
        subject="mario",
    )
    assert [line.label for line in study_lines(ablation)] == ["mario w/o ad", "mario w/o cmi"]
    assert "mario w/o ad − mario" in texts(forest(study_lines(ablation)).figure)


def test_numbers_stand_beside_the_dots_and_the_caption_says_what_they_are() -> None:
    drawing = forest(forest_lines(study(good_cbas_concept=CBAS, webkb_concept=WEBKB).frame, "mario", "grace"))
    shown = texts(drawing.figure)
    assert {
        "+10.40",
        interval(paired(CBAS["mario"], CBAS["grace"])),
        "5",
        "0.125",
        "good-cbas",
        "both columns",
    } <= shown
    assert "whiskers 95 % bootstrap intervals (none below five pairs)" in drawing.caption
    assert "n is 3 to 5 pairs per line" in drawing.caption
    assert drawing.description.startswith("OOD, mario − grace, points. good-cbas: +10.40, 95 % interval")


def test_a_dot_is_filled_if_the_interval_excludes_zero() -> None:
    clear = ForestLine(name="a", label="m", against="g", test=paired([0.9, 0.91, 0.9, 0.92, 0.9], [0.8] * 5))
    unclear = ForestLine(name="b", label="m", against="g", test=paired([0.9, 0.7, 0.8, 0.95, 0.7], [0.8] * 5))
    (axis, *_) = forest([clear, unclear]).figure.axes
    dots = [line for line in axis.lines if line.get_marker() == "o"]
    assert [dot.get_fillstyle() for dot in dots] == ["full", "none"]


def test_nothing_to_show_is_an_error() -> None:
    with pytest.raises(MarioError, match="lines"):
        forest([])
