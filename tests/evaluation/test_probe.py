"""Probes against slow versions of themselves."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from mario.errors import MarioError
from mario.evaluation import LiblinearProbe, LinearProbe, LogisticProbe, Probe, logistic_optimum, score

every_probe = pytest.mark.parametrize(
    "probe",
    [
        LinearProbe(epochs=200, lr=0.1),
        LinearProbe(solver="optimum"),
        LiblinearProbe(grid=(0.1, 1.0, 10.0)),
        LogisticProbe(),
    ],
    ids=["linear", "optimum", "liblinear", "logistic"],
)


def blobs(classes: int, generator: torch.Generator, spread: float = 0.3, each: int = 20) -> tuple[Tensor, Tensor]:
    y = torch.arange(classes).repeat(each)
    centers = 3 * torch.eye(classes, 4)
    return centers[y] + spread * torch.randn(len(y), 4, generator=generator), y


@every_probe
@pytest.mark.parametrize("classes", [2, 3])
def test_separates_what_can_be_separated(probe: Probe, classes: int, generator: torch.Generator) -> None:
    z, y = blobs(classes, generator)
    new, truth = blobs(classes, generator)
    logits = probe.fit_predict(z, y, new, classes)
    assert logits.shape == (len(truth), classes)
    assert logits.dtype == torch.float32
    assert not logits.requires_grad
    assert torch.equal(logits.argmax(1), truth)


@every_probe
@pytest.mark.parametrize("classes", [2, 3])
def test_same_seed_same_bits_and_nothing_global_is_touched(
    probe: Probe, classes: int, generator: torch.Generator
) -> None:
    z, y = blobs(classes, generator, spread=3.0)
    before, state = z.clone(), torch.get_rng_state()
    np.random.seed(5)
    expected = np.random.RandomState(5).rand()
    one, two = probe.fit_predict(z, y, z, classes, seed=1), probe.fit_predict(z, y, z, classes, seed=1)
    assert np.random.rand() == expected
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(one, two)
    assert torch.equal(z, before)


@every_probe
def test_only_training_rows_are_learned_from(probe: Probe, generator: torch.Generator) -> None:
    z, y = blobs(3, generator)
    more = torch.cat([z, 100 * torch.randn(30, 4, generator=generator)])
    torch.testing.assert_close(probe.fit_predict(z, y, more, 3)[: len(z)], probe.fit_predict(z, y, z, 3))


@every_probe
def test_a_class_that_no_training_node_has(probe: Probe, generator: torch.Generator) -> None:
    z, y = blobs(2, generator)
    for labels in (y, 2 * y, y + 1):  # the missing class is the last, the middle one, the first
        logits = probe.fit_predict(z, labels, z, 3)
        assert logits.shape == (len(z), 3)
        assert not torch.isnan(logits).any()
        assert torch.equal(logits.argmax(1), labels)


@every_probe
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_embeddings_that_are_not_finite(probe: Probe, bad: float, generator: torch.Generator) -> None:
    z, y = blobs(2, generator)
    broken = z.clone()
    broken[-1, 0] = bad
    for train, every in ((broken, z), (z, broken)):
        with pytest.raises(MarioError, match="the embeddings hold NaN or infinity"):
            probe.fit_predict(train, y, every, 2)


@every_probe
def test_embeddings_whose_squares_overflow(probe: Probe, generator: torch.Generator) -> None:
    z, y = blobs(2, generator)
    with pytest.raises(MarioError, match=r"entries as large as \de\+2\d, whose squares overflow: scale them"):
        probe.fit_predict(z * 1e25, y, z, 2)


@every_probe
def test_labels_that_do_not_fit(probe: Probe, generator: torch.Generator) -> None:
    z, y = blobs(2, generator)
    with pytest.raises(MarioError, match="labels must lie in 0 to 1, got 0 to 2"):
        probe.fit_predict(z, y * 2, z, 2)
    with pytest.raises(MarioError, match="labels must lie in 0 to 1, got -1 to 0"):
        probe.fit_predict(z, y - 1, z, 2)


@every_probe
def test_no_training_node(probe: Probe, generator: torch.Generator) -> None:
    z, y = blobs(2, generator)
    with pytest.raises(MarioError, match="a probe needs labeled training nodes, there are none"):
        probe.fit_predict(z[:0], y[:0], z, 2)


@every_probe
def test_predictions_in_blocks_of_rows(
    probe: Probe, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    z, y = blobs(3, generator, spread=2.0)
    whole = probe.fit_predict(z, y, z, 3)
    monkeypatch.setattr(sys.modules["mario.evaluation.probe"], "ROWS", 7)
    torch.testing.assert_close(probe.fit_predict(z, y, z, 3), whole)
    broken = z.clone()
    broken[20] = torch.nan
    for train, every in ((broken, z), (z, broken)):
        with pytest.raises(MarioError, match="the embeddings hold NaN or infinity"):
            probe.fit_predict(train, y, every, 3)


@every_probe
def test_an_embedding_that_is_mapped_from_a_file(probe: Probe, tmp_path: Path, generator: torch.Generator) -> None:
    z, y = blobs(3, generator, spread=2.0)
    np.save(tmp_path / "z.npy", z.numpy())
    mapped = torch.from_numpy(np.load(tmp_path / "z.npy", mmap_mode="r+"))
    assert torch.equal(probe.fit_predict(mapped[:40], y[:40], mapped, 3), probe.fit_predict(z[:40], y[:40], z, 3))


class TestMany:
    """Probes together equal those one by one."""

    @every_probe
    @pytest.mark.parametrize("room", [0, 2**28], ids=["one-at-a-time", "together"])
    def test_an_embedding_for_each_seed(
        self, probe: Probe, room: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys.modules["mario.evaluation.probe"], "BYTES", room)
        zs, labels = zip(*(blobs(3, generator, spread=2.0) for _ in range(4)), strict=True)
        rows, y, seeds = [z[:40] for z in zs], labels[0][:40], [3, 1, 4, 1]
        found = probe.fit_predict_many(rows, y, zs, 3, seeds)
        assert len(found) == 4
        for logits, z, seed in zip(found, zs, seeds, strict=True):
            torch.testing.assert_close(logits, probe.fit_predict(z[:40], y, z, 3, seed), atol=1e-4, rtol=1e-4)

    @every_probe
    @pytest.mark.parametrize("room", [0, 2**12, 2**28], ids=["one-at-a-time", "some", "together"])
    def test_one_embedding_for_all_seeds(
        self, probe: Probe, room: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys.modules["mario.evaluation.probe"], "BYTES", room)
        z, y = blobs(3, generator, spread=2.0)
        found = probe.fit_predict_many([z[:40]], y[:40], [z], 3, range(5))
        assert len(found) == 5
        for seed, logits in enumerate(found):
            torch.testing.assert_close(logits, probe.fit_predict(z[:40], y[:40], z, 3, seed), atol=1e-4, rtol=1e-4)

    def test_probes_that_do_not_fit_in_the_room_are_not_held_together(
        self, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        module = sys.modules["mario.evaluation.probe"]
        plain, sizes = module.adam_layers, []

        def spy(z: Tensor, y: Tensor, classes: int, seeds: list[list[int]], **given: Any) -> tuple[Tensor, Tensor]:
            sizes.append((len(z), len(seeds[0])))
            return plain(z, y, classes, seeds, **given)

        monkeypatch.setattr(module, "adam_layers", spy)
        z, y = blobs(3, generator)  # 60 x 4: 2 · 60 · 3 numbers for a further seed, 2 · 60 · 7 for an embedding
        monkeypatch.setattr(module, "BYTES", 2 * 60 * 3 * 4 * 2)
        LinearProbe(epochs=1).fit_predict_many([z], y, [z], 3, range(5))
        monkeypatch.setattr(module, "BYTES", 2 * 60 * 7 * 4 * 2)
        LinearProbe(epochs=1).fit_predict_many([z] * 5, y, [z] * 5, 3, range(5))
        monkeypatch.setattr(module, "TRANSPOSED", 100)
        LinearProbe(epochs=1).fit_predict_many([z] * 3, y, [z] * 3, 3, range(3))
        assert sizes == [(1, 2), (1, 2), (1, 1), (2, 1), (2, 1), (1, 1), *[(1, 1)] * 3]

    def test_the_optimum_starts_from_the_one_before(
        self, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        module = sys.modules["mario.evaluation.probe"]
        starts, layers = [], []

        def spy(*given: Any, start: Any, **more: Any) -> tuple[Tensor, Tensor]:
            starts.append(start)
            layers.append(logistic_optimum(*given, start=start, **more))
            return layers[-1]

        monkeypatch.setattr(module, "logistic_optimum", spy)
        z, y = blobs(3, generator, spread=2.0)
        LinearProbe(solver="optimum").fit_predict_many([z, z + 0.1, z + 0.2], y, [z] * 3, 3, [0, 0, 0])
        assert starts[0] is None
        assert starts[1] is layers[0]
        assert starts[2] is layers[1]

    def test_results_are_apart(self, generator: torch.Generator) -> None:
        z, y = blobs(3, generator, spread=2.0)
        one, two = LinearProbe(solver="optimum").fit_predict_many([z], y, [z], 3, [0, 1])
        one.zero_()
        assert two.any()

    @every_probe
    def test_what_does_not_belong_together(self, probe: Probe, generator: torch.Generator) -> None:
        z, y = blobs(2, generator)
        with pytest.raises(MarioError, match="got 2 for training and 2 to predict, for 3 seeds"):
            probe.fit_predict_many([z, z], y, [z, z], 2, range(3))
        with pytest.raises(MarioError, match="got 3 for training and 1 to predict, for 3 seeds"):
            probe.fit_predict_many([z, z, z], y, [z], 2, range(3))
        with pytest.raises(MarioError, match="got 1 for training and 1 to predict, for 0 seeds"):
            probe.fit_predict_many([z], y, [z], 2, [])
        with pytest.raises(MarioError, match="embeddings of one shape"):
            probe.fit_predict_many([z, z[:, :2]], y, [z, z[:, :2]], 2, range(2))


class TestLinear:
    def test_equals_a_linear_layer_and_adam(self, generator: torch.Generator) -> None:
        z, y = blobs(3, generator, spread=2.0)
        head = nn.Linear(4, 3)
        draw = torch.Generator().manual_seed(7)
        with torch.no_grad():  # torch's own start: both uniform within 1/√4
            head.weight.uniform_(-0.5, 0.5, generator=draw)
            head.bias.uniform_(-0.5, 0.5, generator=draw)
        optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
        for _ in range(30):
            optimizer.zero_grad()
            p = head(z).softmax(1)
            (-p[torch.arange(len(y)), y].log().mean()).backward()
            optimizer.step()
        logits = LinearProbe(epochs=30, lr=0.02).fit_predict(z, y, z, 3, seed=7)
        torch.testing.assert_close(logits, head(z).detach(), atol=1e-5, rtol=1e-5)

    def test_the_seed_draws_the_start(self, generator: torch.Generator) -> None:
        z, y = blobs(3, generator)
        start = [LinearProbe(epochs=0).fit_predict(z, y, z, 3, seed=seed) for seed in (0, 1)]
        assert not torch.equal(start[0], start[1])

    def test_defaults_are_those_of_mario_as_released(self) -> None:
        assert (LinearProbe().epochs, LinearProbe().lr) == (100 * 10, 0.01)  # 100 passes over ten subgraphs

    def test_learns_under_no_grad_nothing_of_the_embeddings(self, generator: torch.Generator) -> None:
        z, y = blobs(2, generator)
        LinearProbe(epochs=2).fit_predict(z, y, z, 2)
        assert z.grad is None

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
    def test_precision_is_that_of_the_embedding_and_at_least_single(
        self, dtype: torch.dtype, generator: torch.Generator
    ) -> None:
        z, y = blobs(3, generator, spread=2.0)
        z = z.to(dtype)
        for probe in (LinearProbe(epochs=20), LinearProbe(solver="optimum")):
            logits = probe.fit_predict(z, y, z, 3)
            assert logits.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
            torch.testing.assert_close(
                logits.double(), probe.fit_predict(z.double(), y, z.double(), 3), atol=1e-5, rtol=1e-5
            )

    def test_the_optimum_is_that_of_its_penalty_whatever_the_seed(self, generator: torch.Generator) -> None:
        z, y = blobs(3, generator, spread=2.0)
        weight, bias = logistic_optimum(z, y, 3, l2=0.03)
        logits = [LinearProbe(solver="optimum", l2=0.03).fit_predict(z, y, z, 3, seed) for seed in (0, 1)]
        torch.testing.assert_close(logits[0], F.linear(z.double(), weight, bias).float())
        assert torch.equal(logits[0], logits[1])

    def test_the_optimum_is_where_adam_goes(self, generator: torch.Generator) -> None:
        z, y = blobs(3, generator, spread=3.0)
        far = LinearProbe(epochs=3000, lr=0.01).fit_predict(z, y, z, 3)
        best = LinearProbe(solver="optimum", l2=1e-9).fit_predict(z, y, z, 3)
        torch.testing.assert_close(far.softmax(1), best.softmax(1), atol=1e-3, rtol=0)

    def test_settings_that_will_not_do(self) -> None:
        with pytest.raises(MarioError, match="solver must be one of adam, optimum, got 'sgd'"):
            LinearProbe(solver="sgd")
        for l2 in (0.0, -1.0, float("nan")):
            with pytest.raises(MarioError, match=f"l2 must be a finite number above 0, got {l2}"):
                LinearProbe(l2=l2)
        for epochs, lr in ((-1, 0.1), (1, 0.0)):
            with pytest.raises(MarioError, match=r"(epochs must be an integer|lr must be a finite number)"):
                LinearProbe(epochs=epochs, lr=lr)


class TestLiblinear:
    def test_settings_that_will_not_do(self) -> None:
        for grid in ((), (1.0, 0.0)):
            with pytest.raises(MarioError, match="grid must hold values of C above 0"):
                LiblinearProbe(grid=grid)
        for held_out in (-0.1, 1.0):
            with pytest.raises(MarioError, match=f"held_out must be a share .* got {held_out}"):
                LiblinearProbe(held_out=held_out)

    def test_grid_is_the_papers(self) -> None:
        grid = LiblinearProbe().grid
        assert (len(grid), grid[0], grid[10], grid[-1]) == (21, 2.0**-10, 1.0, 2.0**10)

    @pytest.mark.parametrize("classes", [2, 3])
    def test_c_is_the_smallest_with_the_best_held_out_accuracy(self, classes: int, generator: torch.Generator) -> None:
        z, y = blobs(classes, generator, spread=2.0, each=30)
        order = np.random.default_rng(3).permutation(len(y))
        cut = int(len(y) * 0.8)
        best, chosen = -1.0, 0.0
        x, truth = z.numpy(), y.numpy()
        solver = "liblinear" if classes == 2 else "lbfgs"
        for k in range(-10, 11):
            model = LogisticRegression(C=2.0**k, solver=solver, max_iter=1000).fit(x[order[:cut]], truth[order[:cut]])
            accuracy = (model.predict(x[order[cut:]]) == truth[order[cut:]]).mean()
            if accuracy > best:
                best, chosen = accuracy, 2.0**k
        model = LogisticRegression(C=chosen, solver=solver, max_iter=1000).fit(x, truth)
        logits = LiblinearProbe().fit_predict(z, y, z, classes, seed=3)
        torch.testing.assert_close(
            logits.softmax(1).double(), torch.from_numpy(model.predict_proba(x)).double(), atol=1e-3, rtol=0
        )
        assert 2.0**-10 < chosen < 2.0**10, "this draw would not tell a choice from the ends of the grid"

    def test_certainty_beyond_what_a_probability_can_say_keeps_its_order(self) -> None:
        z = torch.tensor([[-1.0], [1.0]])
        far = torch.tensor([[-1e4], [1e4], [2e4]])
        logits = LiblinearProbe(grid=(100.0,)).fit_predict(z, torch.tensor([0, 1]), far, 2)
        assert torch.isfinite(logits).all()
        assert logits[2, 1] - logits[2, 0] > logits[1, 1] - logits[1, 0] > 100
        assert score(logits, torch.tensor([0, 0, 1]), "roc_auc") == 1.0

    def test_two_rows_are_enough(self) -> None:
        z = torch.tensor([[-1.0], [1.0]])
        assert LiblinearProbe().fit_predict(z, torch.tensor([0, 1]), z, 2).argmax(1).tolist() == [0, 1]

    def test_a_rare_class_that_only_the_held_out_rows_have(self, generator: torch.Generator) -> None:
        z, _ = blobs(2, generator, each=5)
        for rare in range(len(z)):  # wherever it stands, it is held out for some of them
            y = torch.zeros(len(z), dtype=torch.int64)
            y[rare] = 1
            logits = LiblinearProbe(grid=(1.0,)).fit_predict(z, y, z, 2)
            assert torch.isfinite(logits).all()

    def test_one_class_alone_is_an_error(self, generator: torch.Generator) -> None:
        z, y = blobs(2, generator)
        with pytest.raises(MarioError, match="needs training nodes of two classes, all are of class 1"):
            LiblinearProbe().fit_predict(z, torch.ones_like(y), z, 2)
