"""Calibration by hand."""

import math

import pytest
import torch

from mario.errors import MarioError
from mario.evaluation import calibration_error, fit_temperature


def test_the_temperature_of_a_constant_prediction_by_hand() -> None:
    logits = torch.tensor([[3.0, 0.0]]).expand(9, 2)
    y = torch.tensor([0] * 7 + [1] * 2)
    # A tenth of each label is spread: the first class has (7 · 0.9 + 9 · 0.05) / 9 = 0.75, whose log-odds are log 3.
    assert fit_temperature(logits, y) == pytest.approx(3 / math.log(3), rel=1e-8)


def test_the_temperature_is_the_best_of_a_fine_grid(generator: torch.Generator) -> None:
    logits = 5 * torch.randn(200, 4, generator=generator, dtype=torch.float64)
    y = (logits + 6 * torch.randn(200, 4, generator=generator, dtype=torch.float64)).argmax(1)

    def loss(temperature: float) -> float:
        p = (logits / temperature).log_softmax(1)
        spread = 1 / (len(y) + 1)
        return -float(((1 - spread) * p[torch.arange(200), y] + spread * p.mean(1)).mean())

    found = fit_temperature(logits, y)
    assert loss(found) <= min(loss(found * 1.01**k) for k in range(-300, 300)) + 1e-12


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_the_temperature_is_finite_where_all_rows_are_right_or_all_wrong(size: float) -> None:
    logits = size * torch.eye(3)
    for y in (torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0])):
        assert 1e-3 <= fit_temperature(logits, y) <= 1e3


def test_a_class_that_was_not_learned_is_left_out() -> None:
    logits = torch.tensor([[3.0, -torch.inf, 0.0]]).expand(9, 3)
    due = fit_temperature(logits[:, [0, 2]], torch.tensor([0] * 7 + [1] * 2))
    labels = torch.tensor([0] * 7 + [2] * 2)
    assert fit_temperature(logits, labels) == pytest.approx(due)
    more = torch.cat([labels, torch.tensor([1, 5])])
    assert fit_temperature(torch.cat([logits, logits[:2]]), more) == pytest.approx(due)
    assert fit_temperature(logits[:2], torch.tensor([1, 1])) == 1.0


def test_the_calibration_error_by_hand() -> None:
    p = torch.tensor([[0.9, 0.1], [0.92, 0.08], [0.4, 0.6], [0.5, 0.5]])  # right, wrong, right, right
    # Bins of 1/15: 0.9 and 0.92 share one (13/15 to 14/15), 0.6 and 0.5 are in bins of their own.
    due = (abs(1 - 0.9 - 0.92) + (1 - 0.6) + (1 - 0.5)) / 4
    assert calibration_error(p, torch.tensor([0, 1, 1, 0])) == pytest.approx(due)
    assert calibration_error(torch.eye(2), torch.tensor([0, 1])) == 0.0
    assert calibration_error(torch.eye(2), torch.tensor([1, 0])) == 1.0
    with pytest.raises(MarioError, match="got 2 rows and 1 labels"):
        calibration_error(p[:2], torch.tensor([0]))
