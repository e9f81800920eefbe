"""Rules of selection: what they look at, and what they do not."""

import random

import pytest

from mario.errors import MarioError
from mario.evaluation import ALLOWED_FOR_CLAIMS, RULES, select_checkpoint

CURVE = [
    {"train": 0.9, "id_val": 0.6, "id_test": 0.1, "ood_val": 0.3, "ood_test": 0.2},
    {"train": 0.8, "id_val": 0.8, "id_test": 0.4, "ood_val": 0.5, "ood_test": 0.3},
    {"train": 0.7, "id_val": 0.8, "id_test": 0.9, "ood_val": 0.7, "ood_test": 0.1},
    {"train": 0.6, "id_val": 0.5, "id_test": 0.8, "ood_val": 0.7, "ood_test": 0.9},
    {"train": 0.5, "id_val": 0.4, "id_test": 0.7, "ood_val": 0.6, "ood_test": 0.9},
]


@pytest.mark.parametrize(("rule", "chosen"), [("id_val", 1), ("ood_val", 2), ("last", 4), ("oracle", 3)])
def test_each_rule_with_ties_to_the_earliest(rule: str, chosen: int) -> None:
    assert select_checkpoint(rule, CURVE) == chosen


def test_oracle_is_the_only_rule_that_is_not_allowed_for_claims() -> None:
    assert set(RULES) - set(ALLOWED_FOR_CLAIMS) == {"oracle"}


@pytest.mark.parametrize("rule", ALLOWED_FOR_CLAIMS)
def test_poisoned_test_scores_change_no_choice(rule: str) -> None:
    draw = random.Random(0)
    for _ in range(100):
        poisoned = [{**scores, "id_test": draw.random(), "ood_test": draw.random()} for scores in CURVE]
        assert select_checkpoint(rule, poisoned) == select_checkpoint(rule, CURVE)
    hidden = [{k: v for k, v in scores.items() if not k.endswith("test")} for scores in CURVE]
    assert select_checkpoint(rule, hidden) == select_checkpoint(rule, CURVE)


def test_one_checkpoint_is_chosen_by_all() -> None:
    assert [select_checkpoint(rule, CURVE[:1]) for rule in RULES] == [0] * 4


@pytest.mark.parametrize(("rule", "needs"), [("id_val", "id_val"), ("ood_val", "ood_val"), ("oracle", "ood_test")])
def test_a_score_that_is_missing_once_is_an_error(rule: str, needs: str) -> None:
    curve = [*CURVE[:-1], {k: v for k, v in CURVE[-1].items() if k != needs}]
    with pytest.raises(MarioError, match=f"selection rule '{rule}' needs the score '{needs}' of every checkpoint"):
        select_checkpoint(rule, curve)


def test_unknown_rule_and_no_checkpoint() -> None:
    with pytest.raises(MarioError, match="selection rule must be one of id_val, ood_val, last, oracle, got 'test'"):
        select_checkpoint("test", CURVE)
    with pytest.raises(MarioError, match="there is no checkpoint to select from"):
        select_checkpoint("last", [])
