"""Scores by row: the label before the method, spreads of few values, steps in order."""

import numpy as np
import pytest

from mario.errors import MarioError
from mario.lab.frame import frame
from mario.lab.result import Scores
from mario.report.pictures.scores import (
    band,
    chosen_rows,
    group_percents,
    groups_of,
    mean_and_sd,
    metric_of,
    percents,
    rows_of,
    runs_per_row,
)
from report.pictures.made_up import run


def test_the_label_is_the_row_and_without_labels_the_method() -> None:
    runs = frame([run("mario", 0, 0.5), run("mario", 1, 0.5)])
    assert rows_of(runs) == ["mario"]
    assert rows_of(runs.assign(label=["mario w/o ad", "mario"])) == ["mario w/o ad", "mario"]


def test_scores_in_percent_and_those_that_are_missing_left_out() -> None:
    runs = frame([run("mario", 0, 0.5), run("mario", 1, 0.6, scores=Scores()), run("erm", 0, 0.9)])
    assert percents(runs, "mario", "ood_test") == pytest.approx([50.0])
    grouped = frame([run("mario", 0, 0.5, groups=2), run("mario", 1, 0.6)])
    assert groups_of(grouped) == ["T1", "T2"]
    assert group_percents(grouped, "mario", "T2") == pytest.approx([52.0])


def test_one_value_has_no_spread_and_two_have_n_minus_1() -> None:
    assert mean_and_sd(np.array([3.0])) == (3.0, 0.0)
    assert mean_and_sd(np.array([1.0, 3.0])) == (2.0, pytest.approx(2**0.5))


def test_steps_are_in_order_even_if_runs_were_evaluated_elsewhere() -> None:
    first, second = [{"step": 20, "a": 1.0}, {"step": 30}], [{"step": 10, "a": 3.0}, {"step": 20, "a": 2.0}]
    runs = frame([run("m", 0, 0.5, curve=first), run("m", 1, 0.5, curve=second)])
    steps, mean, _ = band(runs, "m", "a")
    assert (list(steps), list(mean)) == ([10, 20], [3.0, 1.5])
    assert [len(part) for part in band(runs, "m", "b")] == [0, 0, 0]


def test_how_many_runs() -> None:
    results = frame([run("mario", 0, 0.5), run("mario", 1, 0.5), run("erm", 0, 0.5)])
    assert runs_per_row(results, ["mario"]) == "2 runs"
    assert runs_per_row(results, ["erm"]) == "1 run"
    assert runs_per_row(results, ["erm", "mario"]) == "1 to 2 runs"


def test_metrics_by_their_names() -> None:
    assert metric_of(frame([run("m", 0, 0.5, metric="roc_auc")])) == "ROC-AUC"
    assert metric_of(frame([])) == "accuracy"


def test_rows_that_are_not_there_are_named() -> None:
    with pytest.raises(MarioError, match=r"rows must be among those with curves \(erm\), got mario"):
        chosen_rows(["mario"], ["erm"], "curves")
