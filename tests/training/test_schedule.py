"""The learning rate, worked by hand."""

import pytest

from mario.training import learning_rate_factor


def course(total: int, **settings: object) -> list[float]:
    return [learning_rate_factor(step, total, **settings) for step in range(total)]  # type: ignore[arg-type]


def test_constant() -> None:
    assert course(4) == [1, 1, 1, 1]


def test_steps_multiply_at_each_milestone_whatever_their_order() -> None:
    expected = [1, 1, 0.1, 0.1, 0.01, 0.01]
    assert course(6, schedule="steps", milestones=[2, 4]) == pytest.approx(expected)
    assert course(6, schedule="steps", milestones=[4, 2]) == pytest.approx(expected)
    assert course(3, schedule="steps") == [1, 1, 1]


def test_milestones_count_only_for_steps() -> None:
    assert course(3, milestones=[1]) == [1, 1, 1]


def test_cosine_goes_from_one_towards_zero() -> None:
    half = 0.5**0.5
    assert course(4, schedule="cosine") == pytest.approx([1, (1 + half) / 2, 0.5, (1 - half) / 2])


@pytest.mark.parametrize("schedule", ["constant", "cosine", "steps"])
def test_warmup_rises_to_the_base_rate(schedule: str) -> None:
    assert course(8, schedule=schedule, warmup=4)[:5] == pytest.approx([0.25, 0.5, 0.75, 1, 1])


def test_cosine_after_a_warmup_covers_what_is_left() -> None:
    assert course(4, schedule="cosine", warmup=2) == pytest.approx([0.5, 1, 1, 0.5])


def test_milestones_count_from_the_first_step_of_all() -> None:
    assert course(5, schedule="steps", warmup=2, milestones=[3]) == pytest.approx([0.5, 1, 1, 0.1, 0.1])


@pytest.mark.parametrize("schedule", ["constant", "cosine", "steps"])
def test_a_warmup_longer_than_the_run_never_ends(schedule: str) -> None:
    assert course(2, schedule=schedule, warmup=4) == pytest.approx([0.25, 0.5])
