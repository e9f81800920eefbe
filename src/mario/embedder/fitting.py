"""The fit of a graph: controls and trainings, candidates made of each, one of them chosen; resumable, in a budget."""

import dataclasses
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from mario.arguments import check_seed
from mario.embedder.bench import Bench, Row
from mario.embedder.clock import Clock
from mario.embedder.facts import GraphFacts
from mario.embedder.picking import Candidate, Plan, Training, make_plan
from mario.embedder.state import State
from mario.graphs import BlockMatrix, check_graph
from mario.graphs.fingerprint import fingerprint
from mario.methods import Decision, Method, WithSteady, load, seen_by_channels, steady_of
from mario.methods.base import choose_device
from mario.training import train

_LEAST_STEPS = 20
"""Steps below which a training is left out rather than shortened."""
_SPARE = 0.05
"""Share of a budget that is kept for what was estimated too low."""


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a fit is.

    Attributes:
        stage: What is being done: ``controls``, ``measuring``, ``training``, ``scoring`` or ``writing``.
        name: Of which training or candidate.
        done, total: Epochs of a training, or candidates.
        left: Seconds until the fit is done, about; ``None`` if that is not known yet.
        loss: Of the last epoch.
    """

    stage: str
    name: str
    done: int
    total: int
    left: float | None = None
    loss: float | None = None


Watch = Callable[[Progress], None]


@dataclasses.dataclass
class Fitted:
    """What :func:`fit_graph` found.

    Attributes:
        model: The candidate that was chosen, fitted.
        blocks: Its embeddings of the graph.
        chosen: Its name.
        plan: What was planned, with the steps that the budget allowed.
        rows: Of every candidate that was scored, by name.
        decisions: Of every candidate, by name: what is centered and why.
        baseline: The score of a constant prediction, or ``None``.
        left_out: Candidates that were not scored, and why.
        seconds: Wall-clock seconds, those before a resume included.
    """

    model: WithSteady
    blocks: BlockMatrix
    chosen: str
    plan: Plan
    rows: dict[str, Row]
    decisions: dict[str, list[Decision]]
    baseline: float | None
    left_out: dict[str, str]
    seconds: float

    @property
    def controls(self) -> dict[str, Row]:
        """The rows of raw features, hops and the untrained encoder as they are."""
        plain = {training.name for training in self.plan.trainings if not training.trains}
        return {name: row for name, row in self.rows.items() if name in plain}


def fit_graph(
    data: Data,
    *,
    folder: Path | None = None,
    given: Mapping[str, Any] | None = None,
    budget: float | None = None,
    seed: int = 0,
    device: str = "auto",
    watch: Watch | None = None,
    clock: Clock | None = None,
) -> Fitted:
    """Train what suits ``data``, score several forms of it beside controls, and return the one that is chosen.

    No label of a test part is read. Candidates are scored by :func:`mario.select`.

    Args:
        data: A graph, or a set of graphs.
        folder: Where to keep what is needed to go on after a stop; ``None`` for nowhere.
        given: Settings that are not to be picked: see :func:`mario.embedder.picking.make_plan`.
        budget: Seconds for everything. What is trained, and for how many steps, is chosen to fit.
        seed: Of all draws.
        device: ``auto``, ``cpu`` or ``cuda``.
        watch: Called with the :class:`Progress`.
        clock: That has been running already, if other work counts against the budget.
    """
    choose_device(device)
    asked = dict(given or {})
    plan = plan_of(data, asked, seed=seed)
    bench = Bench(data, rule=plan.rule, seed=seed)
    settings = {
        key: value if isinstance(value, str | int | float | bool) else str(value) for key, value in asked.items()
    }
    identity = {"data": fingerprint(data), "given": settings, "budget": budget, "seed": seed}
    identity |= {"domain": str(data.get("domain")), "setting": str(data.get("setting"))}
    clock = clock or Clock(budget)
    with State.opened(folder, identity) as state:
        clock.spend(state.spent)
        return _Fit(data, plan, bench, state, clock, seed=seed, device=device, watch=watch).run()


def plan_of(data: Data, given: Mapping[str, Any] | None = None, *, seed: int = 0) -> Plan:
    """The plan of :func:`fit_graph` for ``data``, before a budget shortens it."""
    check_graph(data)
    check_seed("seed", seed)
    bench = Bench(data, rule=(given or {}).get("rule"), seed=seed)
    return make_plan(GraphFacts.of(data), bench.rule, bench.why, given)


class _Fit:
    """One fit on its way."""

    def __init__(
        self,
        data: Data,
        plan: Plan,
        bench: Bench,
        state: State,
        clock: Clock,
        *,
        seed: int,
        device: str,
        watch: Watch | None,
    ) -> None:
        self.data, self.plan, self.bench = data, plan, bench
        self.state, self.clock, self.seed, self.device = state, clock, seed, device
        self.watch = watch or (lambda progress: None)

    def run(self) -> Fitted:
        with _quietly():
            controls = [training for training in self.plan.trainings if not training.trains]
            for training in controls:
                self._score(training)
            self._size()
            for training in self.plan.trainings:
                if training.trains and training.name not in self.state.left_out:
                    self._train(training)
                    self._score(training)
            chosen = self._choose()
            self.watch(Progress("writing", chosen.name, 0, 1))
            model, blocks = self._settled(chosen)
        return Fitted(
            model=model,
            blocks=blocks,
            chosen=chosen.name,
            plan=self.plan,
            rows=self.state.rows,
            decisions=self.state.decisions,
            baseline=self.bench.baseline(),
            left_out=self.state.left_out,
            seconds=self.clock.spent(),
        )

    # Trainings ------------------------------------------------------------------------------------------------------

    def _training(self, name: str) -> Training:
        return next(training for training in self.plan.trainings if training.name == name)

    def _host(self, training: Training) -> Method:
        """The method of ``training``, fitted: from the checkpoint if it has weights."""
        if training.name in self.state.hosts:
            return self.state.hosts[training.name]
        if training.trains:
            found = load(self.state.path(training.name, "model.safetensors"), device=self.device)
            found.seed_ = self.seed
        else:
            found = training.make().fit(self.data, seed=self.seed, device=self.device)
        return found

    def _train(self, training: Training) -> None:
        """Train, from the last checkpoint if there is one, until the steps are done or the time is over."""
        if self.state.trained(training.name):
            return
        method = training.make()
        graph = method.prepare(self.data, seed=self.seed, device=self.device)
        reserve = self._reserve(training)
        began, first = time.monotonic(), None
        home = None if self.state.folder is None else self.state.path(training.name)
        with closing(train(method, graph, seed=self.seed, folder=home, checkpoints=4, save_every=20.0)) as epochs:
            for epoch in epochs:
                if epoch.losses:
                    first = first or (began, epoch.number - 1)
                    rate = (time.monotonic() - first[0]) / max(1, epoch.number - first[1])
                    left = rate * (method.epochs - epoch.number) + self._after(training)
                else:
                    began, left = time.monotonic(), None
                loss = epoch.losses.get("loss")
                self.watch(Progress("training", training.name, epoch.number, method.epochs, left, loss))
                if self.clock.left() < reserve and epoch.number < method.epochs:
                    self.state.stopped[training.name] = epoch.number
                    break
                self.state.save(self.clock.spent(), every=5.0)
        self.state.keep(training.name, method)
        self.state.save(self.clock.spent())

    def _after(self, training: Training) -> float:
        """Seconds for what comes after this training, about."""
        later = [one for one in self.plan.trainings if one.trains]
        later = later[later.index(training) + 1 :]
        times = self.state.times
        rest = sum(
            one.steps * times.get(f"step {one.name}", 0.0) for one in later if one.name not in self.state.left_out
        )
        return rest + (len(later) + 1) * self._scoring(training) + self._finish()

    def _reserve(self, training: Training) -> float:
        """Seconds that have to be left when a training is stopped: for scoring what there is, and for the end."""
        return self._scoring(training, least=True) + self._finish() + _SPARE * (self.clock.budget or 0.0)

    # Scores ---------------------------------------------------------------------------------------------------------

    def _score(self, training: Training) -> None:
        """Score the candidates of a training that have no row yet."""
        waiting = [one for one in self.plan.of(training.name) if not self.state.knows(one.name)]
        if not waiting:
            return
        if self.clock.left() < self._scoring(training, least=True) + self._finish() and self.state.rows:
            self._leave_out(waiting, "the budget was used up")
            return
        began = time.monotonic()
        host = self._host(training)
        raw_seen, raw = self._raw(host, tuple(dict.fromkeys(name for one in waiting for name in one.channels)))
        self._took(f"embed {_kind(training)}", time.monotonic() - began)
        made: dict[tuple[Any, ...], str] = {}
        stage = "scoring" if training.trains else "controls"
        for place, one in enumerate(self.plan.of(training.name)):
            self.watch(Progress(stage, one.name, place, len(self.plan.of(training.name))))
            if self.state.knows(one.name):
                if one.name in self.state.decisions:
                    made.setdefault(_done(one, self.state.decisions[one.name]), one.name)
                continue
            if place and self.clock.left() < self.state.times.get(f"score {_kind(training)}", 0.0) + self._finish():
                self._leave_out([one], "the budget was used up")
                continue
            began = time.monotonic()
            model = steady_of(host, channels=one.channels, center=one.center)
            model.settle(self.data, raw=raw_seen)
            same = made.setdefault(_done(one, model.decisions_), one.name)
            if same != one.name:
                self._leave_out([one], f"the same as {same}")
                continue
            z = model.blocks(self.data, raw=raw)
            self.state.rows[one.name] = self.bench.score(z.rows(self.bench.nodes))
            self.state.decisions[one.name] = model.decisions_
            self._took(f"score {_kind(training)}", time.monotonic() - began)
            self.state.save(self.clock.spent())

    def _leave_out(self, candidates: list[Candidate], why: str) -> None:
        for one in candidates:
            self.state.left_out[one.name] = why
        self.state.save(self.clock.spent())

    def _took(self, what: str, seconds: float) -> None:
        self.state.times[what] = max(seconds, self.state.times.get(what, 0.0))

    def _scoring(self, training: Training, *, least: bool = False) -> float:
        """Seconds to embed and score a training; ``least`` for one candidate of it."""
        times = self.state.times
        kinds = (_kind(training), "random-init", "raw-features")
        embed = next((times[f"embed {kind}"] for kind in kinds if f"embed {kind}" in times), 0.0)
        score = next((times[f"score {kind}"] for kind in kinds if f"score {kind}" in times), 0.0)
        count = 1 if least else len(self.plan.of(training.name))
        # Beside the channel of the graph most candidates have the features, as the first control has.
        both = score + (times.get("score raw-features", 0.0) if training.trains else 0.0)
        return embed + count * both

    def _finish(self) -> float:
        """Seconds for the end: the chosen embeddings once more, the head, and the files."""
        times = self.state.times
        embed = max((value for key, value in times.items() if key.startswith("embed ")), default=0.0)
        score = max((value for key, value in times.items() if key.startswith("score ")), default=0.0)
        return 2 * embed + score + 1.0

    # Sizes ----------------------------------------------------------------------------------------------------------

    def _size(self) -> None:
        """Decide which trainings fit into the budget, and their steps; once, as a resumed fit does what was decided."""
        learned = [training for training in self.plan.trainings if training.trains]
        if self.state.steps is None:
            self.state.steps = self._steps(learned)
            self.state.save(self.clock.spent())
        steps = self.state.steps
        changed = [
            _with_steps(one, steps[one.name]) if one.trains and one.name in steps else one
            for one in self.plan.trainings
        ]
        self.plan = dataclasses.replace(self.plan, trainings=tuple(changed))
        for training in learned:
            if training.name not in steps:
                self._leave_out(self.plan.of(training.name), "the budget is too small for another training")
                self.state.left_out.setdefault(training.name, "the budget is too small for another training")

    def _steps(self, learned: list[Training]) -> dict[str, int]:
        if self.clock.budget is None:
            return {training.name: training.steps for training in learned}
        free = self.clock.left() - self._finish() - _SPARE * self.clock.budget
        wanted: dict[str, tuple[int, float, float]] = {}
        for training in learned:
            # Without time for a few steps beyond those that are measured, another training is not worth to begin.
            if free < self._scoring(training, least=True):
                break
            self.watch(Progress("measuring", training.name, 0, 1))
            began = time.monotonic()
            setup, step = self._measure(training)
            free -= time.monotonic() - began
            self.state.times[f"step {training.name}"] = step
            wanted[training.name] = (training.steps, step, setup + self._scoring(training))
        while wanted:
            fixed = sum(rest for _, _, rest in wanted.values())
            share = (free - fixed) / sum(count * step for count, step, _ in wanted.values())
            least = max(min(_LEAST_STEPS, count) / count for count, _, _ in wanted.values())
            if share >= least or len(wanted) == 1:
                break
            wanted.popitem()
        found = {}
        for name, (count, step, rest) in wanted.items():
            share = (free - sum(r for _, _, r in wanted.values())) / sum(c * s for c, s, _ in wanted.values())
            steps = min(count, int(count * share)) if share > 0 else int((free - rest / 2) / step)
            if steps >= 1:
                found[name] = steps
        return found

    def _measure(self, training: Training) -> tuple[float, float]:
        """Seconds to begin a training and for each of its steps: of three steps, all but the first."""
        began = time.monotonic()
        method = training.make(epochs=3, steps_per_epoch=1)
        graph = method.prepare(self.data, seed=self.seed, device=self.device)
        ends = []
        with closing(train(method, graph, seed=self.seed, prefetch=False)) as epochs:
            for _ in epochs:
                ends.append(time.monotonic())
        step = (ends[-1] - ends[0]) / (len(ends) - 1)
        return max(0.0, ends[0] - began - step), max(step, 1e-4)

    # The choice -----------------------------------------------------------------------------------------------------

    def _choose(self) -> Candidate:
        scored = [one for one in self.plan.candidates if one.name in self.state.rows]
        if self.bench.rule == "gate":
            learned = [one for one in scored if self._training(one.training).trains]
            return (learned or scored)[0]
        return max(scored, key=lambda one: (self.state.rows[one.name].score or 0.0, -scored.index(one)))

    def _settled(self, one: Candidate) -> tuple[WithSteady, BlockMatrix]:
        """A candidate, and its embeddings of the graph."""
        host = self._host(self._training(one.training))
        raw_seen, raw = self._raw(host, one.channels)
        model = steady_of(host, channels=one.channels, center=one.center)
        model.settle(self.data, raw=raw_seen)
        return model, model.blocks(self.data, raw=raw)

    def _raw(self, host: Method, channels: tuple[str, ...]) -> tuple[BlockMatrix, BlockMatrix]:
        """The channels of what training may see, and of the whole graph."""
        seen, _ = seen_by_channels(self.data)
        form = steady_of(host, channels=channels)
        raw_seen = form.raw_channels(seen)
        return raw_seen, raw_seen if seen is self.data else form.raw_channels(self.data)


def _kind(training: Training) -> str:
    """Trainings that take as long to embed and to score."""
    return "trained" if training.trains else training.name


def _done(one: Candidate, decisions: list[Decision]) -> tuple[Any, ...]:
    """What was done to which channel: equal for candidates that are the same."""
    return one.channels, tuple((decision.channel, decision.centered) for decision in decisions)


def _with_steps(training: Training, steps: int) -> Training:
    """``training`` with at most this number of steps."""
    if steps >= training.steps:
        return training
    per_epoch = min(int(training.settings["steps_per_epoch"]), steps)
    epochs = max(1, steps // per_epoch)
    return dataclasses.replace(training, settings={**training.settings, "epochs": epochs, "steps_per_epoch": per_epoch})


@contextmanager
def _quietly() -> Iterator[None]:
    """Without warnings that every candidate of a graph with edge data would repeat."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* of the graph will not be used", category=UserWarning)
        yield
