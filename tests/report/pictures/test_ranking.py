"""Critical-difference diagrams: places on the line, bars over groups, names that do not run into each other."""

import pytest

from mario.lab.statistics.ranking import Ranking
from mario.report.pictures import critical_difference
from mario.report.pictures.palette import VERMILLION
from report.pictures.made_up import texts


def ranking(average: dict[str, float], groups: tuple[tuple[str, ...], ...], difference: float) -> Ranking:
    return Ranking(
        methods=tuple(average),
        average=tuple(average.values()),
        blocks=("a", "b", "c"),
        left_out={},
        chi2=5.0,
        p_friedman=0.08,
        alpha=0.05,
        critical_difference=difference,
        groups=groups,
    )


FOUR = ranking({"mario": 1.0, "grace": 2.5, "costa": 2.5, "erm": 4.0}, (("mario", "grace", "costa"),), 1.5)


def lines(figure: object, width: float) -> list:
    return [line for line in figure.axes[0].lines if line.get_linewidth() == width]  # type: ignore[attr-defined]


def test_methods_are_at_their_ranks() -> None:
    figure = critical_difference(FOUR).figure
    dots = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    first, last = dots[0], dots[-1]
    assert dots[1] == dots[2] == pytest.approx((first + last) / 2)
    assert {"1", "2", "3", "4", "mario  1.00", "grace  2.50", "2.50  costa", "4.00  erm"} <= texts(figure)


def test_a_bar_spans_each_group_and_the_difference_has_its_length() -> None:
    figure = critical_difference(FOUR).figure
    (bar,) = lines(figure, 3)
    dots = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert bar.get_xdata() == pytest.approx([dots[0] - 0.05, dots[1] + 0.05])
    long = max(lines(figure, 1.4), key=lambda line: line.get_xdata()[1] - line.get_xdata()[0])
    assert long.get_xdata()[1] - long.get_xdata()[0] == pytest.approx((dots[-1] - dots[0]) / 3 * 1.5)
    assert "CD = 1.50" in texts(figure)


def test_a_difference_wider_than_the_line_is_said() -> None:
    few = ranking({"mario": 1.2, "erm": 1.8}, (("mario", "erm"),), 1.39)
    assert "CD = 1.39, more than the whole line: no two can differ" in texts(critical_difference(few).figure)


def test_the_subject_is_in_color() -> None:
    assert [line.get_color() for line in lines(critical_difference(FOUR).figure, 1.6)] == [VERMILLION]
    assert lines(critical_difference(FOUR, subject=None).figure, 1.6) == []


def test_in_words() -> None:
    said = critical_difference(FOUR, over="case").description
    assert said.startswith("Average rank over 3 cases, 1 is best: mario 1.00, grace 2.50")
    assert "groups that do not differ: mario, grace, costa. Friedman's p = 0.08." in said
