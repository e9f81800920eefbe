"""Whether runs had still something to gain when their schedule ended."""

from typing import Any

import pandas as pd

from made_up import changed, collected, points
from mario.lab.studies.collect import Collected
from mario.report import to_markdown
from mario.report.convergence import convergence, convergence_table


def with_curves(curves: dict[str, list[dict[str, float]]], case: str = "good-cbas-concept") -> Collected:
    made = {label: [{"step": 20 * (i + 1), **p} for i, p in enumerate(curve)] for label, curve in curves.items()}
    return changed(
        collected({case: {label: [0.5] for label in curves}}),
        lambda job, _: {"curve": points(made[job.label]), "steps": 20 * len(made[job.label]), "chosen_on": {}},
    )


def curve(values: list[float], key: str = "id_val") -> list[dict[str, float]]:
    return [{key: value, "ood_val": 1 - value} for value in values]


def test_gains_of_the_last_three_of_ten_by_hand() -> None:
    flat = [0.1, 0.2, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.55, 0.5]
    rising = [i / 20 for i in range(10)]
    (found,) = convergence(with_curves({"grace": curve(flat), "mario": curve(rising)}).frame)
    assert found.rising == ("mario",)
    assert (found.runs, found.steps, found.checkpoints) == (2, (200,), (10,))
    gains: dict[str, Any] = {key: round(gain, 6) for key, gain in found.gains.items()}
    assert gains == {"id_val": round((-0.05 + 0.15) / 2, 6), "ood_val": round((-0.4 - 0.35) / 2, 6)}
    assert found.best == 0.1  # ood_val chooses the first of both
    assert "| good-cbas-concept | 200 | 10 | 2 | 10 % | +5.0 | -37.5 | mario |" in to_markdown(
        convergence_table([found])
    )


def test_controls_and_runs_of_few_checkpoints_are_left_out() -> None:
    short = {"mario": curve([0.1, 0.2, 0.3, 0.4]), "random-init": curve([0.1] * 10)}
    assert convergence(with_curves(short).frame) == []


def test_without_a_validation_set_nothing_is_said() -> None:
    made = with_curves({"graph|cl": [{"train": 0.5}] * 10})
    (found,) = convergence(made.frame)
    assert (found.best, found.rising) == (None, ())
    assert to_markdown(convergence_table([found])).endswith("| – | – | – | no validation set |\n")


def test_a_run_that_two_studies_share_counts_once() -> None:
    one = with_curves({"mario": curve([0.5] * 10)})
    assert [found.runs for found in convergence(pd.concat([one.frame, one.frame]))] == [1]
