"""Results: the layout of ``result.json``, and errors that name the file and the key."""

from typing import Any

import pytest

from lab import results
from mario.errors import MarioError
from mario.lab.result import CurvePoint, RunResult, Scores, TestScores

FULL = results.result(
    results.spec(3),
    scores=Scores(
        id_test=0.9,
        ood_test=0.8,
        ood_test_by_id_val=0.7,
        id_val=0.6,
        ood_val=0.5,
        groups={"T1": 0.4},
        chosen_on={"id_test": "id_val", "ood_test": "ood_val", "ood_test_by_id_val": "id_val"},
        last=TestScores(0.3, 0.2),
        oracle=TestScores(0.1, 0.9, allowed_for_claims=False),
    ),
    curve=(CurvePoint(10, {"id_val": 0.6, "ood_val": 0.4}), CurvePoint(20, {"id_val": 0.6, "ood_val": 0.5})),
    faults=("a fault",),
)
KEYS = ["dataset", "domain", "shift", "setting", "split_seed", "method", "seed", "encoder", "metric", "steps"]
KEYS += ["checkpoints", "ranks", "seconds", "cpu_seconds", "scores", "curve", "settings", "environment", "faults"]


def test_the_layout_of_result_json() -> None:
    written = FULL.to_dict()
    assert list(written) == [*KEYS, "model"]
    assert written["scores"]["oracle"] == {"id_test": 0.1, "ood_test": 0.9, "allowed_for_claims": False}
    assert written["curve"][1] == {"step": 20, "id_val": 0.6, "ood_val": 0.5}
    assert (written["checkpoints"], written["encoder"], written["model"]) == (2, "gcn", "last")
    assert RunResult.from_dict(written) == FULL
    few = results.result(results.spec()).to_dict()["scores"]
    assert few == {"ood_test": 0.5, "chosen_on": {}}, "scores that do not exist are left out"


def test_the_step_of_a_score_is_that_of_its_checkpoint() -> None:
    assert (FULL.chosen_step("id_test"), FULL.chosen_step("ood_test")) == (10, 20), "the earliest of the best"
    assert results.result(results.spec()).chosen_step("id_test") is None


@pytest.mark.parametrize("key", [key for key in KEYS if key not in ("encoder", "checkpoints")])
def test_a_missing_key_is_named(key: str) -> None:
    written = FULL.to_dict()
    del written[key]
    with pytest.raises(MarioError, match=f"a/result.json has no '{key}'"):
        RunResult.from_dict(written, "a/result.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1.5}, "'seed' must be a whole number, got 1.5"),
        ({"dataset": 3}, "'dataset' must be a text, got 3"),
        ({"scores": [1]}, "'scores' must be an object, got"),
        ({"scores": {"chosen_on": {}, "id_test": None}}, "'scores': 'id_test' must be a number, got None"),
        ({"scores": {"chosen_on": {}, "groups": {"T1": "x"}}}, "'groups': 'T1' must be a number, got 'x'"),
        ({"scores": {"chosen_on": {}, "last": {"id_test": 1.0}}}, "'last' has no 'allowed_for_claims'"),
        ({"settings": [1]}, "'settings' must be an object, got"),
        ({"faults": "none"}, "'faults' must be a list, got 'none'"),
        ({"ranks": True}, "'ranks' must be a whole number, got True"),
        ({"curve": [{"ood_val": 0.5}]}, "'curve' has no 'step'"),
        ({"curve": [{"step": 1, "ood_val": True}]}, "'ood_val' must be a number, got True"),
    ],
)
def test_a_value_of_another_type_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(MarioError, match=f"a/result.json.*{message}"):
        RunResult.from_dict({**FULL.to_dict(), **change}, "a/result.json")
