"""The outcome in words and tables, the same whichever way it falls."""

import re

from mario.report import outcome, registered_tables, to_html, to_markdown
from mario.report.pictures.forest import sketches as forest_sketches
from mario.report.pictures.registered import registered_lines, registered_picture, sketches
from report.test_registered import GRACE, SUBJECT, even, found, study


def test_three_sentences_with_every_number() -> None:
    said = outcome(found(even(0.1, mario=0.03)))
    assert len(said) == 3
    assert said[0].startswith(
        "Steady embeddings with the strong adversary are 10.10 points above GRACE with the same settings, steps and "
        "head on domains without labels (mario+steady strong minus grace, mean over 21 columns, 95 % interval +10.0"
    )
    assert said[0].endswith("Wilcoxon p < 0.001), so the registered claim holds.")
    assert said[1].startswith("The goal is met: mean over columns at least 8 points above grace, p < 0.01 (+10.10, p")
    assert "the difference is +10.10 points" in said[2]
    assert "domain ids of unlabeled test nodes" in said[2]


def test_a_loss_is_said_in_the_same_words() -> None:
    said = outcome(found(even(-0.05, good_twitch_concept=0.2)))
    assert re.search(r"are 3\.\d\d points below GRACE", said[0])
    assert said[0].endswith("so the registered claim is refuted.")
    assert said[1].startswith("The goal is missed in 4 of its 4 conditions: mean over columns")
    assert "good-cbas-concept −5.00" in said[1]


def test_partial_data_has_a_count_and_no_number() -> None:
    score = even(0.1)
    some = found(lambda c, row, seed: None if c.startswith("coauthor") and row == GRACE else score(c, row, seed))
    (said,) = outcome(some)
    assert said.startswith("13 of 21 columns done of the registered comparison of mario+steady strong with grace")
    assert not re.search(r"\d\.\d", said)
    goal, comparisons, columns, rows = registered_tables(some)
    assert [line.cells[2].text for line in goal.lines] == ["not known yet"] * 2 + ["met"] * 2, "MARIO is done"
    assert comparisons.lines[0].cells[2].text == "13 of 21 columns done"
    assert {cell.text for cell in columns.lines[8].cells[2:]} == {"–"}
    assert columns.lines[8].cells[1].text == "0 pairs so far"
    assert rows.lines[-1].cells[1].text == "13 of 21 columns done"


def test_the_tables_have_every_comparison_and_column() -> None:
    made = found(even(0.1, mario=0.03))
    _, comparisons, columns, rows = registered_tables(made)
    assert len(comparisons.lines) == 1 + 8 + 1
    tested = [line.cells[5].text != "–" for line in comparisons.lines]
    assert tested == [True] * 9 + [False], "the cost has no registered test"
    assert [cell.text for cell in comparisons.lines[0].cells[1:]][0::4] == ["mario+steady strong − grace", "< 0.001"]
    assert len(columns.lines) == 21
    first = [cell.text for cell in columns.lines[0].cells]
    assert first == ["good-cbas-concept", "10", "50.33", "60.33", "+10.00", "+7.00", "+10.00"]
    photo = next(line for line in columns.lines if line.case == "amazon-photo-concept")
    assert photo.cells[-1].text == "–", "no ID test"
    assert next(line for line in rows.lines if line.label == SUBJECT).kind == "subject"
    for table in registered_tables(made):
        assert to_markdown(table).startswith("**")
        assert "<table" in to_html(table)


def test_one_picture_with_one_test() -> None:
    made = found(even(0.1))
    lines = registered_lines(made)
    assert len(lines) == 22
    assert [line.p is None for line in lines] == [True] * 21 + [False]
    assert (lines[-1].pooled, lines[-1].over) == (True, "column")
    assert "all 21 columns: +10.10" in registered_picture(made).description
    whole = study(even(0.1))
    assert len(list(sketches(whole, None))) == 1
    assert list(forest_sketches(whole, None)) == [], "no second test of the same difference"
    nothing = study(lambda *_: None)
    assert list(sketches(nothing, None)) == []
