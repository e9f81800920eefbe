"""The classifier against scikit-learn's, against itself in other forms, and against bad input."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import Tensor

import mario.evaluation.optimum as optimum
from mario.errors import MarioError
from mario.evaluation import BlockClassifier, logistic_optimum, score
from mario.graphs import Block, BlockMatrix
from mario.graphs.paging import map_array


@parametrize_with_checks([BlockClassifier(), BlockClassifier(fusion="late", C=1.0)])
def test_scikit_learns_own_checks(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


def problem(classes: int, n: int = 90, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    """A sparse block and a dense one that each say something of the class."""
    draws = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % classes
    words = (torch.rand(n, 40, generator=draws) < 0.1 + 0.3 * F.one_hot(y, 40).double()).double()
    graph = 2 * torch.eye(classes, 6)[y].double() + torch.randn(n, 6, generator=draws, dtype=torch.float64)
    return {"x": words, "graph": graph}, y


def side_by_side(z: dict[str, Tensor]) -> np.ndarray:
    return torch.cat(list(z.values()), 1).numpy()


@pytest.fixture(params=["spectrum", "products"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small matrices are written out; sparse and wide ones are only multiplied with."""
    if request.param == "products":
        monkeypatch.setattr(optimum, "PRODUCTS", 0)
        monkeypatch.setattr(optimum, "WHITENED", 10)
    return str(request.param)


FORMS: dict[str, Any] = {
    "array": side_by_side,
    "tensor": lambda z: torch.from_numpy(side_by_side(z)),
    "scipy": lambda z: sparse.csr_matrix(side_by_side(z)),
    "csr": lambda z: torch.from_numpy(side_by_side(z)).to_sparse_csr(),
    "dict": lambda z: z,
    "dict-sparse": lambda z: {"x": sparse.coo_matrix(z["x"].numpy()), "graph": z["graph"].numpy()},
    "blocks": lambda z: BlockMatrix({"x": Block(z["x"].to_sparse_csr()), "graph": Block(z["graph"])}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_optimum_is_scikit_learns(classes: int, C: float, form: str, route: str) -> None:
    z, y = problem(classes)
    new, truth = problem(classes, seed=1)
    due = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(side_by_side(z), y.numpy())
    head = BlockClassifier(C=C).fit(FORMS[form](z), y, validation=(FORMS[form](new), truth))
    coef = np.concatenate(list(head.coef_.values()), 1) if isinstance(head.coef_, dict) else head.coef_
    assert coef.shape == due.coef_.shape
    # Its loss is within 1e-7 of the minimum.
    np.testing.assert_allclose(
        head.decision_function(FORMS[form](new)), due.decision_function(side_by_side(new)), atol=5e-2
    )
    np.testing.assert_array_equal(head.predict(FORMS[form](new)), due.predict(side_by_side(new)))
    assert (head.C_, head.n_features_in_, head.classes_.tolist()) == (C, 46, list(range(classes)))


def slow_loss(z: Tensor, y: Tensor, weight: Tensor, bias: Tensor, l2: float) -> Tensor:
    logits = z @ weight.T + bias
    return (logits.exp().sum(1).log() - logits[torch.arange(len(y)), y]).mean() + 0.5 * l2 * (weight * weight).sum()


def slow_optimum(z: Tensor, y: Tensor, classes: int, l2: float) -> tuple[Tensor, Tensor]:
    weight = torch.zeros(classes, z.size(1), dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    descent = torch.optim.LBFGS(
        [weight, bias], max_iter=5000, tolerance_grad=1e-12, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        descent.zero_grad()
        loss = slow_loss(z, y, weight, bias, l2)
        loss.backward()
        return loss

    descent.step(closure)
    return weight.detach(), bias.detach()


class TestOptimumOfBlocks:
    @pytest.mark.parametrize("form", ["dense", "sparse", "centered", "sparse-centered", "mapped", "all-wide"])
    @pytest.mark.parametrize("l2", [1.0, 1e-2, 1e-4])
    def test_equals_a_slow_version(self, form: str, l2: float, route: str, tmp_path: Path) -> None:
        z, y = problem(3)
        x, group, centers = z["x"], torch.arange(90) % 2, None
        if "centered" in form:
            centers = torch.stack([x[group == g].mean(0) for g in (0, 1)])
        values = x.to_sparse_csr() if "sparse" in form else x
        if form == "mapped":
            np.save(tmp_path / "x.npy", x.numpy())
            values = map_array(tmp_path / "x.npy")
        blocks = {"x": Block(values, 0.5, centers, None if centers is None else group), "graph": Block(z["graph"])}
        if form == "all-wide":
            blocks["graph"] = Block(torch.cat([z["graph"], torch.zeros(90, 8, dtype=torch.float64)], 1))
        matrix = BlockMatrix(blocks)
        weight, bias = logistic_optimum(matrix, y, 3, l2=l2)
        due, due_bias = slow_optimum(matrix.dense(torch.float64), y, 3, l2)
        torch.testing.assert_close(weight, due, atol=1e-5, rtol=0)
        torch.testing.assert_close(bias, due_bias - due_bias.mean(), atol=1e-5, rtol=0)

    def test_a_start_changes_the_time_alone(self, route: str) -> None:
        z, y = problem(3)
        matrix = BlockMatrix.of(z)
        start = logistic_optimum(matrix, y, 3, l2=0.1)
        found, due = (logistic_optimum(matrix, y, 3, l2=0.01, start=one) for one in (start, None))
        torch.testing.assert_close(found, due, atol=1e-6, rtol=0)

    def test_a_path_ends_where_each_alone_does(self, route: str) -> None:
        z, y = problem(3)
        matrix = BlockMatrix.of(z)
        path = optimum.LogisticPath(matrix, y, 3)
        for l2 in (1.0, 0.3, 0.1, 0.01, 1e-3, 1e-4):
            torch.testing.assert_close(path.at(l2), logistic_optimum(matrix, y, 3, l2=l2), atol=1e-5, rtol=0)
        centered = matrix.dense() - matrix.dense().mean(0)
        assert path.spread == pytest.approx(float(centered.square().sum(1).mean()))

    def test_wide_blocks_are_not_written_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(optimum, "PRODUCTS", 0)
        z, y = problem(3)
        blocks = BlockMatrix({"x": Block(z["x"].to_sparse_csr()), "graph": Block(z["graph"])})
        write, written = Block.write, []
        monkeypatch.setattr(Block, "write", lambda block, out: written.append(block.is_sparse) or write(block, out))
        logistic_optimum(blocks, y, 3, l2=0.01)
        assert written
        assert not any(written)


def test_c_is_the_smallest_of_those_best_on_validation() -> None:
    z, y = problem(3)
    new, truth = problem(3, seed=1)
    grid = (0.001, 0.01, 0.1, 1.0, 10.0)
    scores = {}
    for c in grid:
        model = LogisticRegression(C=c, tol=1e-10, max_iter=10000).fit(side_by_side(z), y.numpy())
        scores[c] = model.score(side_by_side(new), truth.numpy())
    head = BlockClassifier(grid=grid[::-1]).fit(z, y, validation=(new, truth))
    assert max(grid, key=lambda c: (scores[c], -c)) == head.C_
    assert BlockClassifier(grid=(7.0, 70.0)).fit(*apart(), validation=apart()).C_ == 7.0


def apart() -> tuple[Tensor, Tensor]:
    return torch.tensor([[-1.0], [-2.0], [1.0], [2.0]]), torch.tensor([0, 0, 1, 1])


def test_the_metric_chooses() -> None:
    z, y = problem(2)
    new, truth = problem(2, seed=3)
    for metric in ("accuracy", "roc_auc", "f1"):
        found = []
        for c in (1e-4, 1e-2, 1.0, 100.0):
            logits = BlockClassifier(C=c).fit(z, y, validation=(new, truth)).decision_function(new)
            found.append((score(F.pad(torch.from_numpy(logits)[:, None], (1, 0)), truth, metric), -c))
        head = BlockClassifier(grid=(1e-4, 1e-2, 1.0, 100.0), metric=metric).fit(z, y, validation=(new, truth))
        assert -max(found)[1] == head.C_


def test_without_validation_rows_are_held_out_and_then_fitted() -> None:
    z, y = problem(3)
    head = BlockClassifier(seed=1).fit(z, y)
    again = BlockClassifier(C=head.C_).fit(z, y, validation=(z, y))
    np.testing.assert_allclose(head.decision_function(z), again.decision_function(z), atol=2e-2)
    assert BlockClassifier(seed=1).fit(z, y).temperature_ == head.temperature_


def test_the_default_grid_follows_the_scale_of_the_rows() -> None:
    z, y = problem(3)
    plain = BlockClassifier().fit(z, y)
    small = BlockClassifier().fit({name: 1e-3 * part for name, part in z.items()}, y)
    assert pytest.approx(1e6 * plain.C_) == small.C_
    np.testing.assert_array_equal(small.predict({name: 1e-3 * part for name, part in z.items()}), plain.predict(z))


@pytest.mark.parametrize("classes", [2, 4])
def test_late_fusion_is_the_mean_of_calibrated_log_probabilities(classes: int) -> None:
    z, y = problem(classes)
    new, truth = problem(classes, seed=1)
    head = BlockClassifier(fusion="late").fit(z, y, validation=(new, truth))
    alone = {name: BlockClassifier().fit(z[name], y, validation=(new[name], truth)) for name in z}
    assert {name: one.C_ for name, one in alone.items()} == head.C_
    log_p = np.mean([np.log(one.predict_proba(new[name])) for name, one in alone.items()], 0)
    p = torch.from_numpy(log_p / head.temperature_).softmax(1)
    np.testing.assert_allclose(head.predict_proba(new), p, atol=1e-9)
    np.testing.assert_array_equal(head.predict(new), log_p.argmax(1))
    one = BlockClassifier(fusion="late").fit(z["x"], y, validation=(new["x"], truth))
    np.testing.assert_allclose(one.predict_proba(new["x"]), alone["x"].predict_proba(new["x"]), atol=1e-3)


def test_probabilities_are_calibrated_and_say_how_far_off_they_are() -> None:
    z, y = problem(3, n=600)
    noise = torch.Generator().manual_seed(5)
    y = torch.where(torch.rand(600, generator=noise) < 0.4, torch.randint(3, (600,), generator=noise), y)
    head = BlockClassifier(C=1e3).fit(
        {k: v[:100] for k, v in z.items()}, y[:100], validation=({k: v[100:350] for k, v in z.items()}, y[100:350])
    )
    test, truth = {k: v[350:] for k, v in z.items()}, y[350:]
    found = head.calibration(test, truth)
    p = torch.from_numpy(head.predict_proba(test))
    assert found["log_loss"] == pytest.approx(float(F.nll_loss(p.log(), truth)))
    head.temperature_, fitted = 1.0, head.temperature_
    assert fitted > 1
    plain = head.calibration(test, truth)
    assert found["log_loss"] < plain["log_loss"]
    assert found["expected_calibration_error"] < plain["expected_calibration_error"]
    unseen = head.calibration(test, torch.full_like(truth, 9))
    assert unseen["log_loss"] == pytest.approx(-np.log(np.finfo(float).eps))


def test_labels_of_validation_rows_that_training_does_not_have() -> None:
    z, y = problem(3)
    head = BlockClassifier().fit(z, y, validation=(z, torch.where(y == 0, 7, y)))
    assert head.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("labels", [["b", "a", "c"], [2.0, 1.0, 5.0], [10, -1, 3]])
@pytest.mark.parametrize("fusion", ["concatenate", "late"])
@pytest.mark.parametrize("named", [True, False])
def test_what_is_saved_is_what_is_loaded(labels: list[Any], fusion: str, named: bool, tmp_path: Path) -> None:
    z, y = problem(3)
    given: Any = z if named else side_by_side(z)
    head = BlockClassifier(fusion=fusion, grid=(0.1, 1.0)).fit(given, np.array(labels)[y])
    head.save(tmp_path / "head.safetensors")
    for again in (BlockClassifier.load(tmp_path / "head.safetensors"), pickle.loads(pickle.dumps(head))):
        np.testing.assert_array_equal(again.predict(given), head.predict(given))
        np.testing.assert_array_equal(again.predict_proba(given), head.predict_proba(given))
        assert again.get_params() == head.get_params()
        assert (again.C_, again.temperature_, again.n_features_in_) == (head.C_, head.temperature_, 46)
    assert not hasattr(clone(head), "classes_")


def test_in_a_pipeline() -> None:
    z, y = problem(3)
    model = make_pipeline(StandardScaler(), BlockClassifier()).fit(side_by_side(z), y.numpy())
    assert model.score(side_by_side(z), y.numpy()) > 0.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fusion": "early"}, "fusion must be one of concatenate, late, got 'early'"),
        ({"C": 0.0}, "C must be a number above 0"),
        ({"C": "1"}, "C must be a number above 0"),
        ({"grid": ()}, "grid numbers above 0"),
        ({"grid": (1.0, float("inf"))}, "grid numbers above 0"),
        ({"metric": "precision"}, "metric must be one of accuracy"),
        ({"held_out": 1.0}, "held_out must be a share"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        BlockClassifier(**settings).fit(*apart())


def test_input_that_is_refused(tmp_path: Path) -> None:
    z, y = problem(3)
    bad = {**z, "x": z["x"].clone().fill_(torch.nan)}
    for given, labels, more, message in (
        (z, y[:5], {}, "got 5 labels for 90 rows"),
        (z, torch.zeros(90, dtype=torch.long), {}, "y holds one class, 0"),
        (bad, y, {}, "block 'x' holds 3600 NaN"),
        ({}, y, {}, "Z must have blocks with names"),
        ({"x": z["x"][:, :0]}, y, {}, "must be a matrix with rows and columns"),
        ({"x": z["x"], "graph": z["graph"][:5]}, y, {}, "one row per node"),
        ({"x": [["a"]] * 90}, y, {}, "must be a matrix of numbers"),
        (z, y, {"validation": z}, "validation must be a pair"),
        (z, y, {"validation": ({"x": z["x"]}, y)}, "must have the columns of Z"),
        (z["x"].to_sparse(), y, {}, "must be dense or sparse CSR"),
        (z, y.double() + 0.5, {}, "Unknown label type"),
        (z, None, {}, "requires y"),
    ):
        with pytest.raises(MarioError, match=message):
            BlockClassifier().fit(given, labels, **more)
    with pytest.raises(MarioError, match="not fitted yet"):
        BlockClassifier().save(tmp_path / "head")
    head = BlockClassifier().fit(z, y)
    for other in ({"x": z["x"]}, side_by_side(z), {**z, "more": z["x"]}, {**z, "x": z["graph"]}):
        with pytest.raises(MarioError, match="this BlockClassifier was fitted to"):
            head.predict(other)


def test_files_that_are_refused(tmp_path: Path) -> None:
    z, y = problem(3)
    path = tmp_path / "head.safetensors"
    BlockClassifier().fit(z, y).save(path)
    with pytest.raises(MarioError, match="there is no file"):
        BlockClassifier.load(tmp_path / "none")
    (tmp_path / "text").write_text("text")
    with pytest.raises(MarioError, match="damaged or of another kind"):
        BlockClassifier.load(tmp_path / "text")
    from safetensors import safe_open

    with safe_open(path, "pt") as opened:
        header = json.loads(opened.metadata()["mario_block_classifier"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    for change in (
        {"classes": [0]},
        {"classes": ["a", 1, 2], "dtype": "text"},
        {"dtype": "object"},
        {"dtype": 7},
        {"temperature": 0},
        {"blocks": ["x"] * 2},
        {"blocks": ["x", "graph", "more"]},
        {"params": {"fusion": "early"}},
        {"params": {"more": 1}},
        {"params": None},
        {"C": None, "named": False},
    ):
        save_file(tensors, path, {"mario_block_classifier": json.dumps({**header, **change})})
        with pytest.raises(MarioError, match="another version of mario, or it is damaged"):
            BlockClassifier.load(path)
    save_file({**tensors, "intercept": tensors["intercept"] / 0}, path, {"mario_block_classifier": json.dumps(header)})
    with pytest.raises(MarioError, match="finite"):
        BlockClassifier.load(path)
