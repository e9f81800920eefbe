"""`evaluate` and `report`: labels of validation and test nodes reach nothing but the scores."""

import random
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch_geometric.data import Data

import mario
from mario.errors import MarioError
from mario.evaluation import (
    ALLOWED_FOR_CLAIMS,
    SETS,
    LiblinearProbe,
    LinearProbe,
    LogisticProbe,
    Probe,
    calibration_error,
    evaluate,
    evaluate_many,
    fit_temperature,
    invariance,
    predict,
    report,
    score,
    select_checkpoint,
)

every_probe = pytest.mark.parametrize(
    "probe",
    [None, LinearProbe(epochs=20), LinearProbe(solver="optimum"), LiblinearProbe(grid=(0.1, 10.0)), LogisticProbe()],
    ids=["default", "linear", "optimum", "liblinear", "logistic"],
)


def shifted(*, num_classes: int | None = 3) -> Data:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 3
    x = torch.eye(3)[y] + 0.7 * torch.randn(60, 3, generator=generator)
    data = Data(x=x, edge_index=torch.randint(60, (2, 100), generator=generator), y=y, metric="accuracy")
    if num_classes is not None:
        data.num_classes = num_classes
    for i, name in enumerate(SETS):
        data[f"{name}_mask"] = torch.arange(60) // 12 == i
    data.setting = "transductive"
    return data


def raw(data: Data) -> mario.RawFeatures:
    return mario.RawFeatures(epochs=1, steps_per_epoch=1).fit(data)


class Spy:
    """A probe that remembers what it was given."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe

    def fit_predict(self, z: Tensor, y: Tensor, z_all: Tensor, classes: int, seed: int = 0) -> Tensor:
        self.given = (z.clone(), y.clone(), z_all.clone(), classes, seed)
        self.logits = self.probe.fit_predict(z, y, z_all, classes, seed)
        return self.logits


def test_scores_are_those_of_the_probe_on_each_set() -> None:
    data = shifted()
    scores = evaluate(raw(data), data, seed=5)
    logits = LinearProbe().fit_predict(data.x[data.train_mask], data.y[data.train_mask], data.x, 3, 5)
    assert scores == {name: score(logits[data[f"{name}_mask"]], data.y[data[f"{name}_mask"]]) for name in SETS}


def test_the_probe_is_given_labels_of_training_nodes_alone() -> None:
    data = shifted()
    spy = Spy(LinearProbe())
    evaluate(raw(data), data, probe=spy, seed=2)  # type: ignore[arg-type]
    z, y, z_all, classes, seed = spy.given
    assert torch.equal(z, data.x[:12])
    assert torch.equal(y, data.y[:12])
    assert torch.equal(z_all, data.x)
    assert (classes, seed) == (3, 2)


@pytest.mark.parametrize("num_classes", [3, None], ids=["classes-known", "classes-counted"])
@pytest.mark.parametrize("garbage", [0, 2, 7])
@pytest.mark.parametrize(
    "kind",
    [LinearProbe(), LinearProbe(solver="optimum"), LiblinearProbe(grid=(0.1, 10.0))],
    ids=["linear", "optimum", "liblinear"],
)
def test_garbage_in_other_labels_changes_no_prediction(kind: Probe, garbage: int, num_classes: int | None) -> None:
    if num_classes is not None and garbage >= num_classes:
        num_classes = garbage + 1  # a graph whose labels exceed its classes is refused before
    clean, poisoned = shifted(num_classes=num_classes), shifted(num_classes=num_classes)
    poisoned.y[~poisoned.train_mask] = garbage
    model = raw(clean)
    one, two = Spy(kind), Spy(kind)
    before = evaluate(model, clean, probe=one)  # type: ignore[arg-type]
    after = evaluate(model, poisoned, probe=two)  # type: ignore[arg-type]
    assert torch.equal(one.logits, two.logits)
    assert after["train"] == before["train"]
    assert after["ood_test"] == pytest.approx((one.logits[48:].argmax(1) == garbage).double().mean().item())


def test_garbage_in_other_labels_changes_no_prediction_of_a_supervised_method() -> None:
    clean, poisoned = shifted(), shifted()
    poisoned.y[~poisoned.train_mask] = 1
    settings: dict[str, Any] = {"hidden_channels": 8, "num_layers": 1, "epochs": 2, "steps_per_epoch": 2}
    one, two = (mario.ERM(**settings).fit(data, seed=0) for data in (clean, poisoned))
    assert torch.equal(one.predict(clean), two.predict(poisoned))
    assert evaluate(one, clean)["train"] == evaluate(two, poisoned)["train"]


def test_a_supervised_method_is_judged_by_its_own_head() -> None:
    data = shifted()
    model = mario.ERM(hidden_channels=8, num_layers=1, epochs=2, steps_per_epoch=2).fit(data)
    logits = model.predict(data)
    assert evaluate(model, data)["ood_val"] == score(logits[36:48], data.y[36:48])


@every_probe
def test_nothing_global_is_touched_and_the_graph_is_left_alone(probe: Probe | None) -> None:
    data, before = shifted(), shifted()
    model = raw(data)
    state = torch.get_rng_state()
    assert evaluate(model, data, probe=probe) == evaluate(model, data, probe=probe)
    assert torch.equal(torch.get_rng_state(), state)
    assert sorted(data.keys()) == sorted(before.keys())
    assert torch.equal(data.x, before.x)
    assert torch.equal(data.y, before.y)


def test_sets_that_are_not_there_have_no_score() -> None:
    data = shifted()
    model = raw(data)
    for name in ("id_val", "id_test", "ood_val"):
        del data[f"{name}_mask"]
    assert sorted(evaluate(model, data)) == ["ood_test", "train"]


def test_a_test_mask_that_is_not_read_is_told() -> None:
    data = shifted()
    model = raw(data)
    data.test_mask = data.ood_test_mask
    assert "ood_test" in evaluate(model, data)  # without a word, as there is a test set
    del data.id_test_mask, data.ood_test_mask
    with pytest.warns(UserWarning, match="test_mask is not read: name it id_test_mask or ood_test_mask"):
        evaluate(model, data)


def test_the_metric_is_that_of_the_dataset() -> None:
    data = shifted()
    data.metric = "f1"
    spy = Spy(LinearProbe())
    scores = evaluate(raw(data), data, probe=spy)  # type: ignore[arg-type]
    assert scores["ood_test"] == score(spy.logits[48:], data.y[48:], "f1")


def grouped(metric: str = "accuracy") -> Data:
    data = shifted()
    data.y, data.num_classes, data.metric = torch.arange(60) % 2, 2, metric
    data.group_id = torch.full((60,), -1)
    data.group_id[48:51], data.group_id[51:60] = 0, 1  # ood_test is 48 to 59
    data.group_id[:12] = 2  # training nodes are in no test group's score
    data.groups = ["T1", "T2", "T3"]
    return data


@pytest.mark.parametrize("metric", ["accuracy", "f1", "roc_auc"])
def test_each_group_has_its_score_and_ood_test_is_their_mean(metric: str) -> None:
    data = grouped(metric)
    spy = Spy(LinearProbe())
    scores = evaluate(raw(data), data, probe=spy)  # type: ignore[arg-type]
    one, two = (score(spy.logits[rows], data.y[rows], metric) for rows in (slice(48, 51), slice(51, 60)))
    assert (scores["T1"], scores["T2"]) == (one, two)
    assert scores["ood_test"] == pytest.approx((one + two) / 2)
    assert "T3" not in scores
    assert one != two


def test_a_group_of_one_class_has_no_roc_auc_and_no_part_in_the_mean() -> None:
    data = grouped("roc_auc")
    data.y[48:51] = 1
    scores = evaluate(raw(data), data)
    assert "T1" not in scores
    assert scores["ood_test"] == scores["T2"]
    data.metric = "f1"
    data.y[48:51] = 0
    assert evaluate(raw(data), data)["T1"] == 0.0
    data.metric = "roc_auc"
    data.group_id[51:60] = -1
    with pytest.raises(MarioError, match="the roc_auc is undefined for every test group"):
        evaluate(raw(data), data)


def test_graphs_without_what_an_evaluation_needs() -> None:
    data = shifted()
    model = raw(data)
    without_labels, without_mask = shifted(), shifted()
    del without_labels.y
    del without_mask.train_mask
    for bad in (without_labels, without_mask):
        with pytest.raises(MarioError, match="an evaluation needs labels y and a train_mask"):
            evaluate(model, bad)
    for num_classes in (3, None):
        empty = shifted(num_classes=num_classes)
        empty.train_mask[:] = False
        with pytest.raises(MarioError, match="train_mask is empty"):
            evaluate(model, empty)


def test_a_group_with_the_name_of_a_score_does_not_overwrite_it() -> None:
    data = grouped()
    model = raw(data)
    data.groups = ["T1", "id_val", "T3"]
    with pytest.raises(MarioError, match="'id_val', the name of another score"):
        evaluate(model, data)


def test_f1_with_a_third_class_among_test_nodes() -> None:
    data = grouped("f1")
    data.y[48] = 2
    del data.num_classes
    with pytest.raises(MarioError, match="F1 of the second class needs labels 0 and 1, the labels reach 2"):
        evaluate(raw(data), data)
    data.num_classes = 3
    assert 0 <= evaluate(raw(data), data)["T1"] <= 1


@pytest.mark.parametrize("seed", [True, 1.0, -1, "0"])
def test_seeds_are_whole_numbers(seed: Any) -> None:
    data = shifted()
    model = raw(data)
    for call in (
        lambda: evaluate(model, data, seed=seed),
        lambda: evaluate_many([data.x], data, seeds=[seed]),
        lambda: invariance(model, data, seed=seed),
        lambda: raw(data).fit(data, seed=seed),
    ):
        with pytest.raises(MarioError, match="seed must be a whole number"):
            call()


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_scores_do_not_depend_on_the_mode(off: type[torch.no_grad]) -> None:
    data = shifted()
    model = mario.RandomInit(hidden_channels=8, epochs=1).fit(data)
    due = evaluate(model, data), invariance(model, data)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (evaluate(model, data), invariance(model, data)) == due
    with off():
        assert (evaluate(model, data), invariance(model, data)) == due
        assert (evaluate(model, data.clone()), invariance(model, data.clone())) == due


class TestLogisticProbe:
    def test_scores_are_of_the_c_that_each_validation_set_chose(self) -> None:
        data = shifted()
        grid = (0.003, 0.1, 1.0, 30.0)
        logits = {}
        for c in grid:  # written out with scikit-learn
            model = LogisticRegression(C=c, tol=1e-12, max_iter=1000, solver="newton-cholesky")
            model.fit(data.x[:12].double().numpy(), data.y[:12].numpy())
            logits[c] = torch.from_numpy(model.decision_function(data.x.double().numpy()))
        rows = {name: data[f"{name}_mask"] for name in SETS}

        def of(name: str, c: float) -> float:
            return score(logits[c][rows[name]], data.y[rows[name]])

        by_id, by_ood = (max(grid, key=lambda c, name=name: (of(name, c), -c)) for name in ("id_val", "ood_val"))
        found = evaluate(raw(data), data, probe=LogisticProbe(grid=grid))
        assert {name: found[name] for name in SETS} == {
            name: of(name, by_ood if name.startswith("ood") else by_id) for name in SETS
        }
        assert found["ood_test_by_id_val"] == of("ood_test", by_id)
        for name, c, val in (("id_test", by_id, "id_val"), ("ood_test", by_ood, "ood_val")):
            temperature = fit_temperature(logits[c][rows[val]], data.y[rows[val]])
            p = (logits[c][rows[name]] / temperature).softmax(1)
            due = calibration_error(p, data.y[rows[name]])
            assert found[f"calibration_{name}"] == pytest.approx(due, abs=1e-3)

    def test_the_two_sets_can_choose_differently(self) -> None:
        data = shifted()
        data.y[data.ood_val_mask] = data.y[data.train_mask].mode().values  # a constant is best there
        found = evaluate(raw(data), data, probe=LogisticProbe(grid=(1e-6, 1.0)))
        assert found["ood_test"] != found["ood_test_by_id_val"]

    @pytest.mark.parametrize("garbage", [0, 2])
    def test_test_labels_change_no_prediction(self, garbage: int) -> None:
        clean, poisoned = shifted(), shifted()
        poisoned.y[poisoned.id_test_mask | poisoned.ood_test_mask] = garbage
        for without in ((), ("id_val",), ("ood_val",), ("id_val", "ood_val")):
            for data in (clean, poisoned):
                for name in without:
                    data.pop(f"{name}_mask", None)
            one, two = (predict(clean.x, data, probe=LogisticProbe(), seed=3) for data in (clean, poisoned))
            assert torch.equal(one, two)
            before, after = (evaluate(raw(clean), data, probe=LogisticProbe(), seed=3) for data in (clean, poisoned))
            for name in ("train", "id_val", "ood_val"):
                assert before.get(name) == after.get(name)

    def test_labels_of_validation_nodes_only_choose(self) -> None:
        clean, poisoned = shifted(), shifted()
        poisoned.y[poisoned.id_val_mask | poisoned.ood_val_mask] = 1
        probe = LogisticProbe(grid=(1.0,))  # nothing to choose
        assert torch.equal(predict(clean.x, clean, probe=probe), predict(clean.x, poisoned, probe=probe))

    def test_without_validation_sets_c_is_chosen_on_held_out_training_rows(self) -> None:
        data = shifted()
        model = raw(data)
        del data.id_val_mask, data.ood_val_mask
        found = evaluate(model, data, probe=LogisticProbe(), seed=1)
        assert found["ood_test"] == found["ood_test_by_id_val"]
        logits = LogisticProbe().fit_predict(data.x[:12], data.y[:12], data.x, 3, seed=1)
        assert found["ood_test"] == score(logits[48:], data.y[48:])

    def test_groups_and_their_mean(self) -> None:
        data = grouped("roc_auc")
        found = evaluate(raw(data), data, probe=LogisticProbe())
        assert found["ood_test"] == pytest.approx((found["T1"] + found["T2"]) / 2)
        assert 0 <= found["ood_test_by_id_val"] <= 1

    def test_a_class_that_only_validation_nodes_have(self) -> None:
        data = shifted(num_classes=4)
        data.y[data.ood_val_mask] = 3
        found = evaluate(raw(data), data, probe=LogisticProbe())
        assert found["ood_val"] == 0
        assert found["ood_test"] > 0.3

    def test_a_supervised_method_is_calibrated_too(self) -> None:
        data = shifted()
        model = mario.ERM(hidden_channels=8, num_layers=1, epochs=2, steps_per_epoch=2).fit(data)
        found = evaluate(model, data, probe=LogisticProbe())
        assert {name: found[name] for name in SETS} == evaluate(model, data)
        assert 0 <= found["calibration_ood_test"] <= 1


class TestMany:
    def test_embeddings_are_matrices_of_finite_numbers(self) -> None:
        data = shifted()
        for z in (data.x[:, 0], data.x / 0, None):
            with pytest.raises(MarioError, match="an embedding must be a matrix of finite numbers"):
                evaluate_many([z], data)  # type: ignore[list-item]

    @every_probe
    @pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
    def test_scores_are_those_of_each_alone(self, probe: Probe | None, metric: str) -> None:
        data = grouped(metric)
        models = [
            mario.RandomInit(hidden_channels=6, num_layers=2, epochs=1, steps_per_epoch=1).fit(data, seed=seed)
            for seed in range(3)
        ]
        embeddings = [model.transform(data) for model in models]
        found = evaluate_many(embeddings, data, probe=probe, seeds=[5, 6, 5])
        alone = [evaluate(m, data, probe=probe, seed=seed) for m, seed in zip(models, [5, 6, 5], strict=True)]
        assert found == alone
        assert any(scores != found[0] for scores in found)

    @every_probe
    def test_one_embedding_for_all_seeds(self, probe: Probe | None) -> None:
        data = shifted()
        model = raw(data)
        found = evaluate_many([model.transform(data)], data, probe=probe, seeds=range(4))
        assert found == [evaluate(model, data, probe=probe, seed=seed) for seed in range(4)]

    def test_graphs_without_what_an_evaluation_needs(self) -> None:
        data = shifted()
        with pytest.raises(MarioError, match="for 2 seeds"):
            evaluate_many([data.x] * 3, data, seeds=[0, 1])
        with pytest.raises(MarioError, match=r"an embedding has 59 rows for 60 in data; use transform\(data\)"):
            evaluate_many([data.x[1:]], data)
        data.train_mask[:] = False
        with pytest.raises(MarioError, match="train_mask is empty"):
            evaluate_many([data.x], data)
        del data.y
        with pytest.raises(MarioError, match="an evaluation needs labels y and a train_mask"):
            evaluate_many([data.x], data)


CURVE = [
    {"step": 10, "train": 0.5, "id_val": 0.60, "id_test": 0.61, "ood_val": 0.50, "ood_test": 0.99},
    {"step": 20, "train": 0.6, "id_val": 0.80, "id_test": 0.71, "ood_val": 0.55, "ood_test": 0.52},
    {"step": 30, "train": 0.7, "id_val": 0.70, "id_test": 0.81, "ood_val": 0.65, "ood_test": 0.63},
    {"step": 40, "train": 0.8, "id_val": 0.75, "id_test": 0.73, "ood_val": 0.60, "ood_test": 0.44},
]


class TestReport:
    def test_worked_by_hand(self) -> None:
        # id_val is best at step 20, ood_val at step 30, the test score of the oracle at step 10.
        assert report(CURVE) == {
            "id_test": 0.71,
            "ood_test": 0.63,
            "ood_test_by_id_val": 0.52,
            "id_val": 0.80,
            "ood_val": 0.65,
            "last": {"id_test": 0.73, "ood_test": 0.44, "allowed_for_claims": True},
            "oracle": {"id_test": 0.61, "ood_test": 0.99, "allowed_for_claims": False},
            "chosen_on": {"id_test": "id_val", "ood_test": "ood_val", "ood_test_by_id_val": "id_val"},
        }

    def test_poisoned_test_scores_change_no_choice(self) -> None:
        draw = random.Random(1)
        for _ in range(50):
            poisoned = [{**point, "id_test": draw.random(), "ood_test": draw.random()} for point in CURVE]
            found = report(poisoned)
            assert found["id_test"] == poisoned[1]["id_test"]
            assert found["ood_test"] == poisoned[2]["ood_test"]
            assert found["ood_test_by_id_val"] == poisoned[1]["ood_test"]
            assert found["last"]["ood_test"] == poisoned[3]["ood_test"]
            assert (found["id_val"], found["ood_val"]) == (0.80, 0.65)
            assert found["oracle"]["ood_test"] == max(point["ood_test"] for point in poisoned)

    def test_rules_allowed_for_claims_are_not_shown_a_test_score(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shown: dict[str, set[str]] = {}

        def spy(rule: str, scores: Sequence[Mapping[str, float]]) -> int:
            shown[rule] = set().union(*scores)
            return select_checkpoint(rule, scores)

        # The function hides the module of the same name.
        monkeypatch.setattr(sys.modules["mario.evaluation.scoring"], "select_checkpoint", spy)
        report(CURVE)
        assert shown == {**{rule: {"id_val", "ood_val"} for rule in ALLOWED_FOR_CLAIMS}, "oracle": {"ood_test"}}

    def test_a_penalty_chosen_on_id_val_has_its_own_score(self) -> None:
        curve = [{**point, "ood_test_by_id_val": 0.01 * i} for i, point in enumerate(CURVE)]
        found = report(curve)
        assert (found["ood_test"], found["ood_test_by_id_val"]) == (0.63, 0.01)
        assert found["chosen_on"]["ood_test_by_id_val"] == "id_val"
        assert "calibration" not in found

    def test_calibration_is_of_the_chosen_checkpoints(self) -> None:
        curve = [
            {**point, "calibration_id_test": 0.1 * i, "calibration_ood_test": 0.2 * i} for i, point in enumerate(CURVE)
        ]
        assert report(curve)["calibration"] == {"id_test": 0.1, "ood_test": 0.4}

    def test_without_validation_sets_only_what_can_be_said(self) -> None:
        curve = [{"step": 10, "train": 0.5, "ood_test": 0.4}, {"step": 20, "train": 0.6, "ood_test": 0.3}]
        assert report(curve) == {
            "ood_test": 0.3,
            "last": {"ood_test": 0.3, "allowed_for_claims": True},
            "oracle": {"ood_test": 0.4, "allowed_for_claims": False},
            "chosen_on": {"ood_test": "last"},
        }

    def test_without_an_ood_set(self) -> None:
        curve = [{k: v for k, v in point.items() if not k.startswith("ood")} for point in CURVE]
        expected = {"id_test": 0.71, "id_val": 0.80, "last": {"id_test": 0.73, "allowed_for_claims": True}}
        assert report(curve) == {**expected, "chosen_on": {"id_test": "id_val"}}

    def test_groups_are_of_the_checkpoint_that_ood_val_chose(self) -> None:
        curve = [
            {"step": 10, "ood_val": 0.5, "ood_test": 0.8, "T1": 0.9, "T2": 0.7},
            {"step": 20, "ood_val": 0.6, "ood_test": 0.3, "T1": 0.2, "T2": 0.4},
            {"step": 30, "ood_val": 0.4, "ood_test": 0.6, "T1": 0.5, "T2": 0.7},
        ]
        found = report(curve, groups=["T1", "T2", "T3"])
        assert found["groups"] == {"T1": 0.2, "T2": 0.4}
        assert (found["ood_test"], found["chosen_on"]) == (0.3, {"ood_test": "ood_val"})
        for point in curve:
            del point["ood_val"]
        found = report(curve, groups=["T1", "T2"])
        assert found["groups"] == {"T1": 0.5, "T2": 0.7}
        assert (found["ood_test"], found["chosen_on"]) == (0.6, {"ood_test": "last"})
        assert "groups" not in report(curve)

    def test_no_checkpoint_is_an_error(self) -> None:
        with pytest.raises(MarioError, match="there is no checkpoint to select from"):
            report([])
