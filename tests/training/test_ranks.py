"""The loop over two ranks: the steps of one process with both batches, and no rank that goes its own way."""

import math
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from mario import ranks
from mario.errors import MarioError
from mario.methods import ERM, GRACE, MARIO, STRONG, two_view
from mario.training import train
from mario.training.streams import STEP, stream
from methods.tiny import tiny_graph
from training.test_loop import GRAPH, Rows, Toy
from two_ranks import on_two_ranks


def subgraph(nodes: int) -> Data:
    generator = torch.Generator().manual_seed(nodes)
    x = torch.rand(nodes, 6, generator=generator, dtype=torch.float64)
    return Data(x=x, edge_index=torch.randint(nodes, (2, 3 * nodes), generator=generator), num_nodes=nodes)


PARTS = [subgraph(14), subgraph(11)]


def union(graphs: list[Data]) -> Data:
    starts = [sum(g.num_nodes for g in graphs[:i]) for i in range(len(graphs))]
    edges = torch.cat([g.edge_index + start for g, start in zip(graphs, starts, strict=True)], dim=1)
    return Data(x=torch.cat([g.x for g in graphs]), edge_index=edges, num_nodes=sum(g.num_nodes for g in graphs))


class Given:
    """A sampler whose batch is known."""

    def __init__(self, batch: Data) -> None:
        self.batch = batch

    def sample(self, generator: torch.Generator | None = None) -> Data:
        return self.batch.clone()


class Own(MARIO):
    """On a rank: its own subgraph."""

    def sampler(self, graph: Data) -> Given:
        return Given(PARTS[ranks.rank()])


class Whole(MARIO):
    """In one process: both subgraphs, each with the views that its rank draws."""

    current: "Whole"

    def sampler(self, graph: Data) -> Given:
        return Given(union(PARTS))

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        self.done = getattr(self, "done", -1) + 1
        self.streams = [stream(5, self.done, rank, STEP) for rank in range(2)]
        return super().step(batch, generator)

    def make_views(self, batch: Data, generator: torch.Generator | None = None) -> tuple[Data, Data]:
        pairs = [super(Whole, self).make_views(part, own) for part, own in zip(PARTS, self.streams, strict=True)]
        return union([alpha for alpha, _ in pairs]), union([beta for _, beta in pairs])


SETTINGS: dict[str, Any] = {
    "hidden_channels": 8,
    "num_layers": 2,
    "clusters": 4,
    "epochs": 3,
    "steps_per_epoch": 1,
    "gamma": 0.5,
    "epsilon": 0.1,
    # Adam divides a gradient that is zero but for rounding, as of a bias before batch norm, by hardly more than 1e-8.
    "lr": 0.001,
    "gather": True,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "sign": {"ascent": "sign", "pseudo_labels": "sinkhorn", "cmi_negatives": "first"},
    "strong": STRONG,
    "both views": {"perturb": "both", "prototype_optimizer": "sgd"},
    "projector moves along": {"projector_moves": "both", "prototype_tau": 0.2},
    "without adversary": {"adversarial": False, "encoder": "sage"},
    "another estimator": {"estimator": "jensen_shannon", "cmi_estimator": "donsker_varadhan"},
    "as GRACE": {"adversarial": False, "conditional": False, "encoder": "gin"},
    # The larger batch is passed through the encoder again in the backward, the smaller one is not.
    "one rank makes it again": {"large": 12 * 8},
}


def trained(method: GRACE) -> dict[str, Any]:
    """Losses, and after the last step the weights, buffers and gradients."""
    method.place(6, 0, seed=1)
    method.double()
    losses = [epoch.losses for epoch in train(method, PARTS[0], seed=5)]
    own = {id(p) for p in method.trained()}
    gradients = {name: p.grad for name, p in method.named_parameters() if id(p) in own}
    return {"losses": losses, "state": dict(method.state_dict()), "gradients": gradients}


def own_half(rank: int, variant: str) -> dict[str, Any]:
    settings = {**SETTINGS, **VARIANTS[variant]}
    two_view._LARGE = settings.pop("large", two_view._LARGE)
    return trained(Own(**settings))


@pytest.fixture
def _delta_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """δ₀ of all rows, each rank's rows from its own stream."""
    plain = torch.Tensor.uniform_

    def uniform_(self: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Tensor:
        if generator is None or self.size(0) != sum(part.num_nodes for part in PARTS):
            return plain(self, low, high, generator=generator)
        for rows, own in zip(self.split([part.num_nodes for part in PARTS]), Whole.current.streams, strict=True):
            plain(rows, low, high, generator=own)
        return self

    monkeypatch.setattr(torch.Tensor, "uniform_", uniform_)


def close(found: Tensor, expected: Tensor, name: str) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9, msg=lambda text: f"{name}: {text}")


@pytest.mark.usefixtures("_delta_by_parts")
@pytest.mark.parametrize("variant", list(VARIANTS))
def test_two_ranks_with_half_the_batch_are_one_with_all_of_it(variant: str) -> None:
    one, two = on_two_ranks(own_half, variant)
    settings = {key: value for key, value in {**SETTINGS, **VARIANTS[variant]}.items() if key != "large"}
    Whole.current = whole = Whole(**settings)
    expected = trained(whole)
    for found in (one, two):
        assert [losses["loss"] for losses in found["losses"]] == pytest.approx(
            [losses["loss"] for losses in expected["losses"]], rel=1e-9, abs=1e-9
        )
        for kind in ("state", "gradients"):
            assert found[kind].keys() == expected[kind].keys()
            for name, value in expected[kind].items():
                if value is None:
                    assert found[kind][name] is None
                else:
                    close(found[kind][name], value, f"{kind} {name}")
    for name, value in one["state"].items():
        assert torch.equal(value, two["state"][name]), f"{name} is not equal to the bit on both ranks"
    fresh = Whole(**settings)
    fresh.place(6, 0, seed=1)
    start = fresh.double().state_dict()
    for name in ("projector_.layers.0.weight", "encoder_.norms.0.running_mean", "prototypes_.weight"):
        if name in start:
            assert (expected["state"][name] - start[name]).abs().max() > 1e-4, f"{name} did not move"


class Separate(GRACE):
    def sampler(self, graph: Data) -> Given:
        return Given(PARTS[getattr(self, "part", ranks.rank())])


def averaged(rank: int) -> dict[str, Any]:
    settings: dict[str, Any] = {"batch_norm": False, "projector_batch_norm": False, "epochs": 1, "steps_per_epoch": 1}
    return trained(Separate(hidden_channels=8, num_layers=2, **settings))


def test_without_gather_gradients_are_the_mean_over_ranks() -> None:
    found = on_two_ranks(averaged)
    alone = []
    for part in range(2):
        method = Separate(hidden_channels=8, num_layers=2, batch_norm=False, projector_batch_norm=False)
        method.place(6, 0, seed=1)
        method.double().step(PARTS[part], stream(5, 0, part, STEP))
        alone.append({name: p.grad for name, p in method.named_parameters()})
    for result in found:
        for name, gradient in result["gradients"].items():
            torch.testing.assert_close(gradient, (alone[0][name] + alone[1][name]) / 2)


class Unlabeled(ERM):
    """Rank 0 never has a training node."""

    def sampler(self, graph: Data) -> Given:
        part = getattr(self, "part", ranks.rank())
        batch = PARTS[part].clone()
        batch.train_mask = torch.full((batch.num_nodes,), part == 1)
        batch.y = torch.arange(batch.num_nodes) % 2
        return Given(batch)


def supervised(rank: int, method: Unlabeled | None = None) -> dict[str, Any]:
    method = method or Unlabeled(hidden_channels=8, num_layers=2, epochs=2, steps_per_epoch=2)
    method.place(6, 2, seed=1)
    method.double()
    epochs = list(train(method, PARTS[0], seed=5))
    return {
        "losses": epochs[-1].losses,
        "state": dict(method.state_dict()),
        "gradients": [p.grad for p in method.parameters()],
    }


def test_a_rank_whose_batch_has_no_label() -> None:
    one, two = on_two_ranks(supervised)
    assert one["losses"] == two["losses"]
    assert one["losses"].keys() == {"loss"}
    assert all(gradient is not None for gradient in one["gradients"])
    alone = Unlabeled(hidden_channels=8, num_layers=2, epochs=2, steps_per_epoch=2)
    alone.part = 1
    expected = supervised(1, alone)["state"]
    for name, _ in alone.named_parameters():
        close(one["state"][name], expected[name], name)  # the rank without labels does not make the steps smaller
    for name, value in one["state"].items():
        assert torch.equal(value, two["state"][name]), name


class Uneven(Toy):
    """Each rank has losses of its own; what it notes of its batches is its own too, until the epoch ends."""

    def after_step(self, step: int, total: int) -> None:
        super().after_step(step, total)
        weights = torch.cat([p.detach().view(-1) for p in self.net.parameters()])
        assert torch.equal(*ranks.stacked(weights)), "weights differ within an epoch"


def toy(rank: int, losses: list[dict[int, float]], folder: str | None, stop: int, settings: dict[str, Any]) -> Any:
    method = Uneven(losses=losses[rank], **settings)
    with torch.no_grad():
        next(iter(method.parameters())).add_(rank)  # a start that differs
    numbers = []
    try:
        for epoch in train(method, GRAPH, seed=3, checkpoints=3, folder=Path(folder) if folder else None):
            numbers.append((epoch.number, epoch.losses.get("loss")))
            if epoch.number == stop:
                break
    except MarioError as error:
        return numbers, str(error), len(method.steps)
    return numbers, dict(method.state_dict()), len(method.steps)


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def test_ranks_stay_together() -> None:
    (numbers, state, steps), (others, other, _) = on_two_ranks(toy, [{}, {}], None, 0, {})
    assert (len(numbers), steps) == (6, 12)
    assert numbers == others, "losses are means over ranks"
    assert same(state, other)
    assert not same(state, on_two_ranks(toy, [{}, {}], None, 0, {"lr": 0.04})[0][1])


def test_each_rank_draws_its_own() -> None:
    alone = Toy()
    list(train(alone, GRAPH, seed=3))
    (_, state, _), _ = on_two_ranks(toy, [{}, {}], None, 0, {})
    assert not same(state, dict(alone.state_dict()))
    drawn = [Rows(GRAPH).sample(stream(3, 0, rank, 0)).x for rank in range(2)]
    assert not torch.equal(*drawn)


def test_a_loss_that_is_not_finite_on_one_rank_stops_all() -> None:
    one, two = on_two_ranks(toy, [{}, {5: math.nan}], None, 0, {})
    assert "the loss is not finite at step 5" in one[1]
    assert one[1] == two[1]
    assert (one[2], two[2]) == (5, 5)


def test_patience_is_of_the_mean() -> None:
    falling = {step: 10.0 - step for step in range(20)}
    rising = {step: 1.0 + 2 * step for step in range(20)}
    one, two = on_two_ranks(toy, [falling, rising], None, 0, {"epochs": 10, "patience": 2})
    assert [number for number, _ in one[0]] == [number for number, _ in two[0]] == [1, 2, 3]


@pytest.fixture
def straight() -> dict[str, Tensor]:
    return on_two_ranks(toy, [{}, {}], None, 0, {})[0][1]


@pytest.mark.parametrize("stop", [1, 3, 6])
def test_stopped_and_resumed_it_ends_with_the_same_bits(stop: int, straight: dict[str, Tensor], tmp_path: Path) -> None:
    on_two_ranks(toy, [{}, {}], str(tmp_path), stop, {})
    (_, state, steps), (_, other, _) = on_two_ranks(toy, [{}, {}], str(tmp_path), 0, {})
    assert steps == 12 - (stop - 1) // 2 * 4
    assert same(state, straight)
    assert same(other, straight)
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert len(lines) == 15, "rank 0 alone writes"


def test_a_checkpoint_of_two_ranks_is_refused_by_one(tmp_path: Path) -> None:
    on_two_ranks(toy, [{}, {}], str(tmp_path), 0, {})
    with pytest.raises(MarioError, match="another training: ranks is 2 there and 1 here"):
        next(train(Toy(), GRAPH, seed=3, checkpoints=3, folder=tmp_path))


def whole_graph(rank: int) -> tuple[str, int]:
    settings: dict[str, Any] = {
        "hidden_channels": 8,
        "num_layers": 2,
        "epochs": 1,
        "steps_per_epoch": 1,
        "sampling": "full",
    }
    try:
        GRACE(**settings, gather=True).fit(PARTS[0])
        said = ""
    except MarioError as error:
        said = str(error)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GRACE(**settings).fit(PARTS[0])
    return said, sum("every rank has the whole graph" in str(one.message) for one in caught)


def gathered_walks(rank: int) -> list[int]:
    found = []
    for roots in (40, 2):
        settings: dict[str, Any] = {
            "hidden_channels": 8,
            "num_layers": 1,
            "epochs": 2,
            "steps_per_epoch": 2,
            "roots": roots,
        }
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            GRACE(**settings, sampling="random_walk", gather=True).fit(tiny_graph())
        found.append(sum("is its own negative: batches of" in str(one.message) for one in caught))
    return found


def test_nodes_that_ranks_have_in_common_are_told_of_once() -> None:
    assert on_two_ranks(gathered_walks) == [[1, 0]] * 2


def test_ranks_that_all_have_the_whole_graph() -> None:
    for said, warned in on_two_ranks(whole_graph):
        assert "a node would be its own negative" in said
        assert warned == 1
