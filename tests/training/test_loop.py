"""The loop: how many steps, what is logged, when it stops, and that a stopped run ends with the same bits."""

import itertools
import json
import math
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.samplers import FullGraph
from mario.training import Checkpoint, Epoch, learning_rate_factor, pauses, train
from mario.training.streams import BATCH, STEP, stream

GRAPH = Data(x=torch.arange(12.0).view(6, 2) / 12, num_nodes=6)


class Rows:
    """A sampler: four random nodes."""

    def __init__(self, graph: Data) -> None:
        self.graph = graph

    def sample(self, generator: torch.Generator | None = None) -> Data:
        return Data(x=self.graph.x[torch.randint(6, (4,), generator=generator)])


class Toy(nn.Module):
    """A method with everything that a resumed run could get wrong: Adam, batch norm, noise, a state after the step."""

    epochs = 6
    steps_per_epoch = 2
    lr = 0.05
    schedule: Any = "cosine"
    milestones: tuple[int, ...] = ()
    warmup = 3
    patience = 0

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
        self.register_buffer("average", torch.zeros(1, 3))
        self.losses: dict[int, float] = settings.pop("losses", {})
        self.diagnosing: bool = settings.pop("diagnosing", True)
        for name, value in settings.items():
            setattr(self, name, value)
        self.steps: list[tuple[int, int]] = []
        self.rates: list[float] = []

    def sampler(self, graph: Data) -> Rows:
        return Rows(graph)

    def optimizer(self) -> torch.optim.Optimizer:
        self.used = torch.optim.Adam(self.net.parameters(), lr=123.0)
        return self.used

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        assert self.training
        assert all(p.grad is None for p in self.net.parameters())
        self.rates.append(self.used.param_groups[0]["lr"])
        noise = torch.randn(batch.x.shape, generator=generator)
        loss = (self.net(batch.x + 0.1 * noise) - 1).square().mean()
        loss.backward()
        return {"loss": self.losses.get(len(self.steps), loss.item()), "noise": noise.norm().item()}

    def after_step(self, step: int, total: int) -> None:
        self.steps.append((step, total))
        self.average.lerp_(self.net[2].weight.detach(), 0.1)

    @torch.no_grad()
    def diagnostics(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        if not self.diagnosing:
            return {}
        self.eval()
        return {"spread": self.net(batch.x + torch.randn(batch.x.shape, generator=generator)).std().item()}


def run(toy: Toy, **settings: Any) -> list[Epoch]:
    epochs = []
    for epoch in train(toy, GRAPH, **{"seed": 3, "checkpoints": 3, **settings}):
        if epoch.pause and not epoch.record:
            epoch.record["score"] = epoch.step / 100
        epochs.append(epoch)
    return epochs


def weights(toy: Toy) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in toy.state_dict().items()}


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def logged(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Tensor], str, list[dict[str, Any]]]:
    """Weights, log and records of a run that nothing stopped."""
    folder = tmp_path_factory.mktemp("straight")
    toy = Toy()
    epochs = run(toy, folder=folder)
    return weights(toy), (folder / "log.jsonl").read_text(), [epoch.record for epoch in epochs if epoch.pause]


class TestPauses:
    @pytest.mark.parametrize(
        ("epochs", "checkpoints", "expected"),
        [
            (6, 3, [2, 4, 6]),
            (10, 1, [10]),
            (3, 10, [1, 2, 3]),
            (10, 3, [3, 7, 10]),
            (1, 1, [1]),
            (5, 0, [5]),
        ],
    )
    def test_worked_by_hand(self, epochs: int, checkpoints: int, expected: list[int]) -> None:
        assert pauses(epochs, checkpoints) == expected

    def test_as_many_as_asked_for_rising_evenly_to_the_last(self) -> None:
        for epochs, checkpoints in itertools.product(range(1, 40), range(1, 45)):
            found = pauses(epochs, checkpoints)
            assert found == sorted(set(found))
            assert len(found) == min(epochs, checkpoints)
            assert all(abs(at - epochs * (i + 1) / len(found)) <= 0.5 for i, at in enumerate(found))
            assert found[-1] == epochs


class TestCourse:
    def test_steps_epochs_and_pauses(self) -> None:
        toy = Toy()
        epochs = run(toy)
        assert toy.steps == [(step, 12) for step in range(12)]
        assert [(epoch.number, epoch.step) for epoch in epochs] == [(n, 2 * n) for n in range(1, 7)]
        assert [epoch.number for epoch in epochs if epoch.pause] == [2, 4, 6]

    def test_losses_of_an_epoch_are_means_over_its_steps(self) -> None:
        toy = Toy(losses={0: 1.0, 1: 4.0, 2: 3.0, 3: 2.0})
        assert [epoch.losses["loss"] for epoch in run(toy)][:2] == [2.5, 2.5]

    def test_training_lowers_the_loss(self) -> None:
        epochs = run(Toy(epochs=40))
        assert epochs[-1].losses["loss"] < 0.2 * epochs[0].losses["loss"]

    def test_the_learning_rate_follows_the_schedule(self) -> None:
        toy = Toy(schedule="steps", milestones=(5, 8), warmup=2)
        run(toy)
        factors = [learning_rate_factor(s, 12, schedule="steps", milestones=(5, 8), warmup=2) for s in range(12)]
        assert toy.rates == pytest.approx([0.05 * factor for factor in factors])
        assert toy.rates == pytest.approx([0.025, 0.05, 0.05, 0.05, 0.05, *[0.005] * 3, *[0.0005] * 4])

    def test_equals_a_plain_loop(self) -> None:
        toy, plain = Toy(), Toy()
        run(toy)
        optimizer = plain.optimizer()
        for step in range(12):
            rate = 0.05 * learning_rate_factor(step, 12, schedule="cosine", warmup=3)
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            plain.step(Rows(GRAPH).sample(stream(3, step, 0, BATCH)), stream(3, step, 0, STEP))
            optimizer.step()
            plain.after_step(step, 12)
        assert same(weights(toy), weights(plain))

    def test_same_seed_same_bits_and_no_other(self) -> None:
        one, two, other = Toy(), Toy(), Toy()
        state = torch.get_rng_state()
        run(one)
        run(two)
        run(other, seed=4)
        assert torch.equal(torch.get_rng_state(), state)
        assert same(weights(one), weights(two))
        assert not same(weights(one), weights(other))

    def test_without_a_folder_nothing_is_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        run(Toy())
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_a_loss_that_is_not_finite_stops_before_the_weights_move(self, bad: float) -> None:
        toy = Toy(losses={3: bad})
        epochs = train(toy, GRAPH, seed=3)
        assert next(epochs).number == 1
        with pytest.raises(MarioError, match=r"the loss is not finite at step 3 .*: try a lower lr than 0.05"):
            next(epochs)
        assert len(toy.steps) == 3
        assert all(torch.isfinite(tensor).all() for tensor in weights(toy).values())


# By step, two an epoch: the loss falls until epoch 3 and then stays.
PLATEAU = dict(enumerate([5.0, 5.0, 4.0, 4.0, 3.0, 3.0] + [3.0] * 14))


class TestPatience:
    def test_stops_after_that_many_epochs_without_a_lower_loss(self) -> None:
        epochs = run(Toy(epochs=10, patience=2, losses=PLATEAU), checkpoints=1)
        assert [epoch.number for epoch in epochs] == [1, 2, 3, 4, 5]
        assert [epoch.pause for epoch in epochs] == [False] * 4 + [True]

    def test_zero_is_never(self) -> None:
        assert len(run(Toy(epochs=10, losses=PLATEAU))) == 10

    def test_a_lower_loss_starts_the_count_again(self) -> None:
        losses = {**PLATEAU, 8: 2.0, 9: 2.0}
        assert len(run(Toy(epochs=10, patience=2, losses=losses))) == 7

    def test_a_stopped_run_stays_stopped(self, tmp_path: Path) -> None:
        first = Toy(epochs=10, patience=2, losses=PLATEAU)
        run(first, folder=tmp_path)
        second = Toy(epochs=10, patience=2, losses=PLATEAU)
        again = run(second, folder=tmp_path)
        assert second.steps == []
        assert again[-1].number == 5
        assert same(weights(first), weights(second))

    def test_the_count_survives_a_resume(self, tmp_path: Path) -> None:
        first = Toy(epochs=10, patience=2, losses=PLATEAU)
        for epoch in train(first, GRAPH, seed=3, checkpoints=10, folder=tmp_path):
            if epoch.number == 5:
                break  # epoch 4, the first without a lower loss, is saved
        second = Toy(epochs=10, patience=2, losses={0: 3.0, 1: 3.0})
        epochs = list(train(second, GRAPH, seed=3, checkpoints=10, folder=tmp_path))
        assert [epoch.number for epoch in epochs] == [1, 2, 3, 4, 5]
        assert len(second.steps) == 2


class TestLog:
    def test_a_line_for_every_step_and_every_pause(self, tmp_path: Path) -> None:
        toy = Toy()
        run(toy, folder=tmp_path)
        lines = logged(tmp_path)
        of_steps = [line for line in lines if "loss" in line]
        assert [line["step"] for line in of_steps] == list(range(1, 13))
        assert all(line.keys() == {"step", "lr", "loss", "noise"} for line in of_steps)
        assert [line["lr"] for line in of_steps] == toy.rates
        of_pauses = [line for line in lines if "spread" in line]
        assert [(line["step"], line["epoch"]) for line in of_pauses] == [(4, 2), (8, 4), (12, 6)]
        assert len(lines) == 15


class TestResume:
    @pytest.mark.parametrize("stop", range(1, 7))
    @pytest.mark.parametrize("save_every", [0.0, 1e9], ids=["saved-every-epoch", "saved-at-pauses"])
    def test_stopped_after_any_epoch_it_ends_with_the_same_bits(
        self, stop: int, save_every: float, straight: Any, tmp_path: Path
    ) -> None:
        expected_weights, expected_log, expected_records = straight
        first = Toy()
        for epoch in train(first, GRAPH, seed=3, checkpoints=3, folder=tmp_path, save_every=save_every):
            if epoch.pause:
                epoch.record["score"] = epoch.step / 100
            if epoch.number == stop:
                break  # as a kill would: what this epoch did is not saved
        second = Toy()
        epochs = run(second, folder=tmp_path)
        saved_at = stop - 1 if save_every == 0 else (stop - 1) // 2 * 2
        assert len(second.steps) == 12 - 2 * saved_at
        assert same(weights(second), expected_weights)
        assert (tmp_path / "log.jsonl").read_text() == expected_log
        records = [{"score": epoch.record["score"]} for epoch in epochs if epoch.pause]
        assert records == expected_records

    def test_killed_again_and_again(self, straight: Any, tmp_path: Path) -> None:
        for _ in range(12):
            toy = Toy()
            new = 0
            for epoch in train(toy, GRAPH, seed=3, checkpoints=3, folder=tmp_path, save_every=0.0):
                if epoch.losses:
                    new += 1
                    if epoch.pause:
                        epoch.record["score"] = epoch.step / 100
                if new == 2:
                    break  # one epoch further each time
            else:
                break
        assert same(weights(toy), straight[0])
        assert (tmp_path / "log.jsonl").read_text() == straight[1]

    def test_killed_within_an_epoch(self, straight: Any, tmp_path: Path) -> None:
        with pytest.raises(MarioError):
            run(Toy(losses={9: math.nan}), folder=tmp_path)
        with (tmp_path / "log.jsonl").open("a") as file:
            file.write('{"step": 10, "l')
        toy = Toy()
        run(toy, folder=tmp_path)
        assert same(weights(toy), straight[0])
        assert (tmp_path / "log.jsonl").read_text() == straight[1]

    def test_pauses_already_done_come_first_with_their_records(self, tmp_path: Path) -> None:
        for epoch in train(Toy(), GRAPH, seed=3, checkpoints=3, folder=tmp_path):
            epoch.record["id_val"] = epoch.number / 10
            if epoch.number == 5:
                break
        resumed = train(Toy(), GRAPH, seed=3, checkpoints=3, folder=tmp_path)
        done = list(itertools.islice(resumed, 2))
        assert [(epoch.number, epoch.step, epoch.pause) for epoch in done] == [(2, 4, True), (4, 8, True)]
        assert [epoch.record["id_val"] for epoch in done] == [0.2, 0.4]
        assert next(resumed).number == 5

    def test_a_finished_run_does_nothing_more(self, tmp_path: Path) -> None:
        first, second = Toy(), Toy()
        run(first, folder=tmp_path)
        log = (tmp_path / "log.jsonl").read_text()
        epochs = run(second, folder=tmp_path)
        assert second.steps == []
        assert [epoch.number for epoch in epochs] == [2, 4, 6]
        assert same(weights(first), weights(second))
        assert (tmp_path / "log.jsonl").read_text() == log

    def test_a_truncated_newest_checkpoint_costs_time_and_no_bits(self, straight: Any, tmp_path: Path) -> None:
        run(Toy(), folder=tmp_path)
        files = sorted((tmp_path / "checkpoint").iterdir())
        assert [file.name for file in files] == ["000000008.safetensors", "000000012.safetensors"]
        files[1].write_bytes(files[1].read_bytes()[:-10])
        toy = Toy()
        run(toy, folder=tmp_path)
        assert len(toy.steps) == 4
        assert same(weights(toy), straight[0])
        assert (tmp_path / "log.jsonl").read_text() == straight[1]

    def test_a_checkpoint_of_more_ranks_is_refused(self, tmp_path: Path) -> None:
        run(Toy(), folder=tmp_path)
        found = Checkpoint.newest(tmp_path / "checkpoint")
        assert found is not None
        found.extra["identity"]["ranks"] = 4
        found.save(tmp_path / "checkpoint")
        with pytest.raises(MarioError, match="another training: ranks is 4 there and 1 here"):
            run(Toy(), folder=tmp_path)

    def test_seconds_of_earlier_sessions_count(self, tmp_path: Path) -> None:
        first = list(train(Toy(), GRAPH, seed=3, checkpoints=3, folder=tmp_path))
        assert 0 < first[0].seconds < first[-1].seconds
        again = list(train(Toy(), GRAPH, seed=3, checkpoints=3, folder=tmp_path))
        assert again[-1].seconds >= first[-1].seconds

    def test_none_that_can_be_read_is_an_error_with_the_path(self, tmp_path: Path) -> None:
        run(Toy(), folder=tmp_path)
        for file in (tmp_path / "checkpoint").iterdir():
            file.write_bytes(b"")
        with pytest.raises(MarioError, match=f"Remove {tmp_path / 'checkpoint'} to start this run again"):
            run(Toy(), folder=tmp_path)


class TestLookingChangesNothing:
    def test_diagnostics(self, straight: Any) -> None:
        toy = Toy(diagnosing=False)
        run(toy)
        assert same(weights(toy), straight[0])

    @pytest.mark.parametrize("checkpoints", [1, 2, 6, 100])
    def test_the_number_of_checkpoints(self, checkpoints: int, straight: Any, tmp_path: Path) -> None:
        toy = Toy()
        run(toy, checkpoints=checkpoints, folder=tmp_path)
        assert same(weights(toy), straight[0])

    def test_what_the_caller_does_between_epochs(self, straight: Any) -> None:
        toy = Toy()
        for _ in train(toy, GRAPH, seed=3):
            toy.eval()
            with torch.no_grad():
                toy.net(GRAPH.x)
            torch.rand(3)
        assert same(weights(toy), straight[0])

    def test_drawing_batches_in_the_background(self, straight: Any, tmp_path: Path) -> None:
        toy = Toy()
        run(toy, prefetch=False, folder=tmp_path)
        assert same(weights(toy), straight[0])
        assert (tmp_path / "log.jsonl").read_text() == straight[1]


class Watched(Toy):
    """Notes in which thread its batches were drawn."""

    def sampler(self, graph: Data) -> Any:
        self.drawn = drawn = []

        class Noting(Rows):
            def sample(self, generator: torch.Generator | None = None) -> Data:
                drawn.append(threading.current_thread().name)
                return super().sample(generator)

        return Noting(graph)


class TestBackground:
    def threads(self) -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "mario-prefetch"]

    def test_batches_of_steps_are_drawn_there_and_those_of_diagnostics_are_not(self, tmp_path: Path) -> None:
        toy = Watched()
        run(toy, folder=tmp_path)
        assert toy.drawn.count("mario-prefetch") == 12
        assert toy.drawn.count("MainThread") == 3
        assert self.threads() == []

    def test_not_for_the_full_graph(self) -> None:
        class Whole(Toy):
            def sampler(self, graph: Data) -> Any:
                return FullGraph(Data(x=graph.x, edge_index=torch.empty(2, 0, dtype=torch.long)))

        for _ in train(Whole(), GRAPH, seed=3):
            assert self.threads() == []

    def test_the_thread_ends_with_the_loop_however_that_ends(self) -> None:
        stopped = train(Toy(epochs=1000), GRAPH, seed=3)
        next(stopped)
        assert self.threads() == ["mario-prefetch"]
        stopped.close()  # type: ignore[attr-defined]
        assert self.threads() == []
        with pytest.raises(MarioError, match="not finite"):
            run(Toy(epochs=1000, losses={5: math.nan}))
        assert self.threads() == []

        class Interrupted(Toy):
            def after_step(self, step: int, total: int) -> None:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(Interrupted())
        assert self.threads() == []

    def test_what_the_sampler_raises_is_raised_by_the_loop(self) -> None:
        class Failing(Toy):
            def sampler(self, graph: Data) -> Any:
                class Rotten(Rows):
                    def sample(self, generator: torch.Generator | None = None) -> Data:
                        raise MarioError("the disk is gone")

                return Rotten(graph)

        with pytest.raises(MarioError, match="the disk is gone"):
            run(Failing())
        assert self.threads() == []
