"""The summary: a line per case, of the studies that have all its rows."""

from made_up import collected
from mario.lab.statistics.paired import paired, summarize
from mario.report import to_markdown
from mario.report.numbers import p_value, percent, points
from mario.report.summary import LABELS, summary_table

OURS = {
    "raw-features": [0.31, 0.32, 0.33],
    "random-init": [0.61, 0.62, 0.63],
    "erm": [0.80, 0.81, 0.82],
    "grace": [0.90, 0.80, 0.85],
    "mario": [0.95, None, 0.86],
}


def lines(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_a_case_is_a_line_with_the_test_of_its_pairs() -> None:
    study = collected({"good-cbas-concept": OURS})
    heads, _, line = lines(to_markdown(summary_table([study])))
    assert heads == ["OOD, %", *LABELS, "mario − grace", "pairs", "p", "the paper’s mario"]
    test = paired([0.95, 0.86], [0.90, 0.85])
    assert line == [
        "good-cbas color concept",
        *(percent(summarize([score for score in OURS[label] if score is not None])) for label in LABELS[:-1]),
        f"{percent(summarize([0.95, 0.86]))} (2 of 3)",
        points(test.mean_difference),
        "2",
        p_value(test.p_wilcoxon),
        "91.28 ± 1.10",
    ]


def test_what_has_no_run_or_lacks_a_row_has_no_line_and_what_two_studies_have_is_there_once() -> None:
    some = {label: scores for label, scores in OURS.items() if label != "erm"}
    studies = [
        collected({"good-cbas-concept": OURS, "webkb-concept": {label: [None] for label in LABELS}}),
        collected({"good-twitch-concept": some}, study="ablation"),
        collected({"good-cbas-concept": OURS}, study="photo"),
    ]
    assert [line[0] for line in lines(to_markdown(summary_table(studies)))[2:]] == ["good-cbas color concept"]


def test_one_run_has_no_test_and_another_metric_is_named() -> None:
    study = collected({"good-twitch-covariate": {label: [0.5] for label in LABELS}}, metric="roc_auc")
    (line,) = lines(to_markdown(summary_table([study])))[2:]
    assert line[0] == "good-twitch language covariate (ROC-AUC)"
    assert line[1:9] == ["50.00"] * 5 + ["0.00", "1", "–"]
