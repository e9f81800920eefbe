"""Probes against slow versions of themselves."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from mario.errors import MarioError
from mario.evaluation import LinearProbe, LogisticProbe, Probe, score

every_probe = pytest.mark.parametrize(
    "probe", [LinearProbe(epochs=200, lr=0.1), LogisticProbe(grid=(0.1, 1.0, 10.0))], ids=["linear", "logistic"]
)


def blobs(classes: int, generator: torch.Generator, spread: float = 0.3, each: int = 20) -> tuple[Tensor, Tensor]:
    y = torch.arange(classes).repeat(each)
    centres = 3 * torch.eye(classes, 4)
    return centres[y] + spread * torch.randn(len(y), 4, generator=generator), y


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
def test_labels_that_do_not_fit(probe: Probe, generator: torch.Generator) -> None:
    z, y = blobs(2, generator)
    with pytest.raises(MarioError, match="labels must lie in 0 to 1, got 0 to 2"):
        probe.fit_predict(z, y * 2, z, 2)
    with pytest.raises(MarioError, match="labels must lie in 0 to 1, got -1 to 0"):
        probe.fit_predict(z, y - 1, z, 2)


@every_probe
def test_no_training_node(probe: Probe, generator: torch.Generator) -> None:
    z, y = blobs(2, generator)
    with pytest.raises(MarioError, match="a probe needs labelled training nodes, there are none"):
        probe.fit_predict(z[:0], y[:0], z, 2)


class TestLinear:
    def test_equals_a_linear_layer_and_adam(self, generator: torch.Generator) -> None:
        z, y = blobs(3, generator, spread=2.0)
        head = nn.Linear(4, 3)
        draw = torch.Generator().manual_seed(7)
        with torch.no_grad():  # torch's own start: both uniform within 1/√4
            head.weight.uniform_(-0.5, 0.5, generator=draw)
            head.bias.uniform_(-0.5, 0.5, generator=draw)
        optimiser = torch.optim.Adam(head.parameters(), lr=0.02)
        for _ in range(30):
            optimiser.zero_grad()
            p = head(z).softmax(1)
            (-p[torch.arange(len(y)), y].log().mean()).backward()
            optimiser.step()
        logits = LinearProbe(epochs=30, lr=0.02).fit_predict(z, y, z, 3, seed=7)
        torch.testing.assert_close(logits, head(z).detach(), atol=1e-5, rtol=1e-5)

    def test_the_seed_draws_the_start(self, generator: torch.Generator) -> None:
        z, y = blobs(3, generator)
        start = [LinearProbe(epochs=0).fit_predict(z, y, z, 3, seed=seed) for seed in (0, 1)]
        assert not torch.equal(start[0], start[1])

    def test_defaults_are_the_papers(self) -> None:
        assert (LinearProbe().epochs, LinearProbe().lr) == (100, 0.01)

    def test_learns_under_no_grad_nothing_of_the_embeddings(self, generator: torch.Generator) -> None:
        z, y = blobs(2, generator)
        LinearProbe(epochs=2).fit_predict(z, y, z, 2)
        assert z.grad is None


class TestLogistic:
    def test_grid_is_the_papers(self) -> None:
        grid = LogisticProbe().grid
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
        logits = LogisticProbe().fit_predict(z, y, z, classes, seed=3)
        torch.testing.assert_close(
            logits.softmax(1).double(), torch.from_numpy(model.predict_proba(x)).double(), atol=1e-3, rtol=0
        )
        assert 2.0**-10 < chosen < 2.0**10, "this draw would not tell a choice from the ends of the grid"

    def test_certainty_beyond_what_a_probability_can_say_keeps_its_order(self) -> None:
        z = torch.tensor([[-1.0], [1.0]])
        far = torch.tensor([[-1e4], [1e4], [2e4]])
        logits = LogisticProbe(grid=(100.0,)).fit_predict(z, torch.tensor([0, 1]), far, 2)
        assert torch.isfinite(logits).all()
        assert logits[2, 1] - logits[2, 0] > logits[1, 1] - logits[1, 0] > 100
        assert score(logits, torch.tensor([0, 0, 1]), "roc_auc") == 1.0

    def test_two_rows_are_enough(self) -> None:
        z = torch.tensor([[-1.0], [1.0]])
        assert LogisticProbe().fit_predict(z, torch.tensor([0, 1]), z, 2).argmax(1).tolist() == [0, 1]

    def test_a_rare_class_that_only_the_held_out_rows_have(self, generator: torch.Generator) -> None:
        z, _ = blobs(2, generator, each=5)
        for rare in range(len(z)):  # wherever it stands, it is held out for some of them
            y = torch.zeros(len(z), dtype=torch.int64)
            y[rare] = 1
            logits = LogisticProbe(grid=(1.0,)).fit_predict(z, y, z, 2)
            assert torch.isfinite(logits).all()

    def test_one_class_alone_is_an_error(self, generator: torch.Generator) -> None:
        z, y = blobs(2, generator)
        with pytest.raises(MarioError, match="needs training nodes of two classes, all are of class 1"):
            LogisticProbe().fit_predict(z, torch.ones_like(y), z, 2)
