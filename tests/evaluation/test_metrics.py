"""Metrics, worked by hand and against scikit-learn."""

import subprocess
import sys

import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from torch import Tensor
from torch_geometric.data import Data

import mario
from mario.errors import MarioError
from mario.evaluation import METRICS, Metric, score


def logits_of(predicted: list[int], classes: int) -> Tensor:
    return torch.nn.functional.one_hot(torch.tensor(predicted), classes).float()


class TestByHand:
    def test_accuracy(self) -> None:
        assert score(logits_of([0, 1, 2, 2], 3), torch.tensor([0, 1, 1, 2])) == 0.75

    def test_f1_of_two_classes_is_of_the_second(self) -> None:
        # Of class 1: one hit, one false alarm, two missed: 2·1 / (2·1 + 1 + 2).
        logits = logits_of([1, 1, 0, 0, 0], 2)
        assert score(logits, torch.tensor([1, 0, 1, 1, 0]), "f1") == pytest.approx(0.4)

    def test_f1_of_more_is_the_mean_over_classes(self) -> None:
        # Class 0: 1 hit, 1 false alarm → 2/3; class 1: 1 hit, 1 missed → 2/3; class 2: all → 1.
        logits = logits_of([0, 1, 0, 2], 3)
        assert score(logits, torch.tensor([0, 1, 1, 2]), "f1") == pytest.approx(7 / 9)

    def test_f1_without_any_hit_is_zero(self) -> None:
        assert score(logits_of([0, 0], 2), torch.tensor([1, 1]), "f1") == 0.0

    def test_roc_auc_counts_pairs_in_order(self) -> None:
        # Pairs (of class 1, of class 0): 3 over 1, 3 over 2, 2 with 2 counts half, 2 over 1: 3.5 of 4.
        logits = torch.tensor([[0.0, 3.0], [0.0, 2.0], [0.0, 2.0], [0.0, 1.0]])
        assert score(logits, torch.tensor([1, 1, 0, 0]), "roc_auc") == pytest.approx(3.5 / 4)

    def test_roc_auc_looks_at_the_difference_of_the_logits(self) -> None:
        logits = torch.tensor([[5.0, 6.0], [-7.0, -7.5]])
        assert score(logits, torch.tensor([1, 0]), "roc_auc") == 1.0

    def test_roc_auc_does_not_drown_in_large_logits(self) -> None:
        # As probabilities in single precision both would be 1.
        logits = torch.tensor([[0.0, 200.0], [0.0, 100.0]])
        assert score(logits, torch.tensor([1, 0]), "roc_auc") == 1.0


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("metric", ["accuracy", "f1", "roc_auc"])
def test_equals_scikit_learn(metric: str, classes: int, generator: torch.Generator) -> None:
    logits = torch.randn(60, classes, generator=generator)
    y = torch.randint(classes, (60,), generator=generator)
    truth, predicted = y.numpy(), logits.argmax(1).numpy()
    probability = logits.double().softmax(1).numpy()
    expected = {
        "accuracy": lambda: accuracy_score(truth, predicted),
        "f1": lambda: f1_score(truth, predicted, average="binary" if classes == 2 else "macro"),
        "roc_auc": lambda: (
            roc_auc_score(truth, probability[:, 1])
            if classes == 2
            else roc_auc_score(truth, probability, multi_class="ovr")
        ),
    }[metric]()
    found = score(logits, y, metric)
    assert isinstance(found, float)
    assert found == pytest.approx(expected)


def test_roc_auc_of_a_set_without_one_of_the_classes() -> None:
    logits = torch.tensor([[3.0, 0.0, 9.0], [2.0, 1.0, 0.0], [0.0, 2.0, 0.0]])
    y = torch.tensor([0, 0, 1])
    # Class 0 against 1: probabilities of 0 are about .00, .67, .11, one of two pairs in order; of 1 both are.
    assert score(logits, y, "roc_auc") == pytest.approx((0.5 + 1.0) / 2)


def test_errors_say_what_is_wrong() -> None:
    logits, y = torch.zeros(3, 2), torch.tensor([1, 1, 1])
    with pytest.raises(MarioError, match="metric must be one of accuracy, roc_auc, f1, got 'recall'"):
        score(logits, y, "recall")
    with pytest.raises(MarioError, match="there is no node to compute the accuracy of"):
        score(logits[:0], y[:0])
    with pytest.raises(MarioError, match="ROC-AUC needs nodes of two classes, all 3 are of class 1"):
        score(logits, y, "roc_auc")
    with pytest.raises(MarioError, match="metric must be one of"):
        score(logits, y, ["f1"])  # type: ignore[arg-type]
    with pytest.raises(MarioError, match="the predictions hold NaN"):
        score(torch.tensor([[0.0, float("nan")]]), torch.tensor([1]))


def test_a_metric_is_declared_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry, and data that names it is scored by it."""

    def error_free(logits: Tensor, y: Tensor) -> float:
        return float((logits.argmax(1) == y).all())

    monkeypatch.setitem(METRICS, "error_free", Metric("no error at all", error_free))
    logits, y = logits_of([0, 1, 1], 2), torch.tensor([0, 1, 1])
    assert score(logits, y, "error_free") == 1.0
    data = Data(x=torch.eye(3), edge_index=torch.empty(2, 0, dtype=torch.long), y=y)
    data.train_mask, data.ood_test_mask = torch.tensor([True, True, False]), torch.tensor([False, False, True])
    data.metric = "error_free"
    scores = mario.evaluate(mario.RawFeatures(epochs=1).fit(data), data)
    assert scores.keys() == {"train", "ood_test"}
    assert scores["train"] == 1.0


def test_titles_are_there_without_torch() -> None:
    code = "import sys, mario.evaluation.metrics as m; print(m.METRICS['roc_auc'].title, 'torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["ROC-AUC", "False"]
