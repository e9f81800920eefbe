"""One run: a spec and its graph in; a folder with the trained model and its scores out."""

import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

import mario
from mario import ranks
from mario.datasets import CATALOG
from mario.errors import MarioError
from mario.evaluation import (
    LiblinearProbe,
    LinearProbe,
    LogisticProbe,
    Probe,
    evaluate,
    evaluate_many,
    invariance,
    report,
)
from mario.files import write_json
from mario.from_json import from_json
from mario.graphs.fingerprint import fingerprint
from mario.graphs.labels import labeled_parts
from mario.lab import anonymous
from mario.lab.presets import Evaluation, split_settings
from mario.lab.result import CurvePoint, RunResult, Scores
from mario.lab.runs import store
from mario.lab.runs.lock import alone_in
from mario.lab.spec import RunSpec
from mario.methods.base import Method, choose_device
from mario.training import Epoch, pauses, train
from mario.training.progress import numerics
from mario.untrusted import read_json

_CLAIM = 60.0  # seconds: a process that holds a folder without settings is about to write them


def load_data(spec: RunSpec, root: Path | str | None = None, *, download: bool = True) -> Data:
    """The graph of a run: see :meth:`mario.lab.Case.load`."""
    return spec.case.load(split_seed=spec.split_seed, root=root, download=download)


def load_on_ranks(spec: RunSpec, root: Path | str | None = None) -> Data:
    """:func:`load_data` in every rank, rank 0 first, so that files are fetched or generated once."""
    loaded: list[Data] = []
    ranks.first(lambda: loaded.append(load_data(spec, root)))
    return loaded[0] if loaded else load_data(spec, root)


def execute(spec: RunSpec, data: Data, folder: Path, *, device: str = "auto") -> Iterator[Epoch]:
    """Train and evaluate a run in ``folder``, one epoch per item; ``result.json`` is written last.

    If ``result.json`` is there, the run is done and nothing is yielded. If there is a checkpoint, the run continues
    from it. Both raise a :class:`MarioError` if they are of other ``data``. With several ranks, every rank has to take
    every item; only rank 0 writes in ``folder`` and evaluates.
    """

    with ExitStack() as held:

        def begin() -> bool:
            claim(spec, folder)
            if (folder / "result.json").exists():
                check_data(folder, data)
                store.tidy(folder)
                return False
            held.enter_context(alone_in(folder))
            return not (folder / "result.json").exists()  # another process may have finished it in the meantime

        if ranks.first(begin):
            yield from proceed(spec, data, folder, device=device)


def proceed(spec: RunSpec, data: Data, folder: Path, *, device: str = "auto") -> Iterator[Epoch]:
    """:func:`execute` for a process that has claimed the folder and holds its lock."""
    began, began_cpu = time.monotonic(), time.process_time()
    known = ranks.first(partial(_prepare_folder, spec, data, folder))
    model, judged = split_settings(spec.method, spec.settings)
    graph = model.prepare(data, seed=spec.seed, device=device)
    prepared, prepared_cpu = time.monotonic() - began, time.process_time() - began_cpu
    curve: list[CurvePoint] = []
    judge = _Judge(spec, model, data, judged)
    identity = {**_flat(spec), "data": known}
    for epoch in train(model, graph, seed=spec.seed, folder=folder, checkpoints=judged.checkpoints, identity=identity):
        reached, reached_cpu = time.monotonic(), time.process_time()
        if epoch.pause:
            if not epoch.record:
                with ranks.telling(partial("while rank 0 evaluated step {}".format, epoch.step)):
                    epoch.record.update(ranks.first(partial(judge, epoch.step)))
            scores = {key: value for key, value in epoch.record.items() if key not in ("epoch", "step")}
            curve.append(CurvePoint(epoch.step, scores))
        yield epoch
    if ranks.rank():
        return
    model.settle(data)  # a resumed run may have evaluated its last checkpoint before
    model.save(folder / "model.safetensors")
    result = RunResult(
        spec=spec,
        metric=data.metric,
        steps=curve[-1].step,
        ranks=ranks.size(),
        seconds=round(prepared + epoch.seconds + time.monotonic() - reached, 2),
        cpu_seconds=round(prepared_cpu + epoch.cpu_seconds + time.process_time() - reached_cpu, 2),
        scores=from_json(Scores, report([point.to_dict() for point in curve], data.get("groups") or ()), "scores"),
        curve=curve,
        environment={**environment(), "device": str(choose_device(device)), **_earlier(epoch)},
        faults=list(data.faults),
        decisions=[str(decision) for decision in getattr(model, "decisions_", ())] or None,
        data=known,
    )
    write_json(folder / "result.json", result.to_dict())


class _Judge:
    """The scores of a run at a checkpoint, each with a probe that starts from its own weights."""

    def __init__(self, spec: RunSpec, model: Method, data: Data, judged: Evaluation) -> None:
        self.spec, self.model, self.data, self.judged = spec, model, data, judged
        self.probe = make_probe(judged)
        self.ahead: dict[int, dict[str, Any]] = {}

    def __call__(self, step: int) -> dict[str, Any]:
        if step not in self.ahead:
            self.model.settle(self.data)
        if "train_mask" not in labeled_parts(self.data):  # nothing can be scored
            return self.invariance()
        if self.model.trains:
            seed = probe_seed(self.spec, step)
            return evaluate(self.model, self.data, probe=self.probe, seed=seed) | self.invariance()
        if step not in self.ahead:  # a method that does not train is the same at every checkpoint: embed it once
            epochs = pauses(self.model.epochs, self.judged.checkpoints)
            steps = sorted({step, *(epoch * self.model.steps_per_epoch for epoch in epochs)})
            seeds, shared = [probe_seed(self.spec, step) for step in steps], self.invariance()
            in_blocks = isinstance(self.probe, LogisticProbe)
            z = self.model.blocks(self.data) if in_blocks else self.model.transform(self.data)
            scores = evaluate_many([z], self.data, probe=self.probe, seeds=seeds)
            self.ahead = {step: found | shared for step, found in zip(steps, scores, strict=True)}
        return self.ahead[step]

    def invariance(self) -> dict[str, float]:
        # All checkpoints and all methods see the same views.
        return invariance(self.model, self.data, seed=self.spec.seed) if self.judged.invariance else {}


def probe_seed(spec: RunSpec, step: int) -> int:
    """The seed of the probe at the checkpoint of ``step``."""
    return spec.seed + 7919 * step


def finish(spec: RunSpec, data: Data, folder: Path, *, device: str = "auto") -> RunResult:
    """Complete a run and return its result."""
    for _ in execute(spec, data, folder, device=device):
        pass
    written = ranks.first(lambda: RunResult.read(folder).to_dict())
    return RunResult.from_dict(written, str(folder / "result.json"), folder)


def check_data(folder: Path, data: Data) -> None:
    """Raise a :class:`MarioError` if the run that is done in ``folder`` was done on other data than ``data``."""
    then = RunResult.read(folder).data
    if then is not None:  # unknown of runs before the fingerprint was recorded
        _compare_data(then, fingerprint(data), folder, data.name)


def _prepare_folder(spec: RunSpec, data: Data, folder: Path) -> str:
    """Set damaged checkpoints aside, and write or compare the fingerprint of the data, which is returned.

    It is in ``settings.json`` beside what the digest is of: a recorded run keeps its name.
    """
    path = folder / "settings.json"
    then, now = read_json(path).get("data"), fingerprint(data)
    if then is None:
        write_json(path, {**spec.to_dict(), "data": now})
    else:
        _compare_data(then, now, folder, data.name)
    store.set_aside_checkpoints(folder)
    return now


def _compare_data(then: str, now: str, folder: Path, name: str) -> None:
    if then != now:
        named = name in CATALOG
        advice = f"`mario data verify {name}` checks its files" if named else "The graph or its split was changed"
        raise MarioError(
            f"{folder} holds a run on other data: the fingerprint of {name} is {then} there and {now} here. "
            f"{advice}; choose another folder or remove this one"
        )


def _earlier(epoch: Epoch) -> dict[str, Any]:
    """What a resumed run ran under before, if that may have changed its last bits."""
    return {"earlier": list(epoch.environments[:-1])} if len(epoch.environments) > 1 else {}


def claim(spec: RunSpec, folder: Path) -> None:
    """Write ``settings.json``, or check that the existing one is of the same run."""
    path = folder / "settings.json"
    if not path.exists():
        store.refuse_strangers(folder)
        with alone_in(folder, patience=_CLAIM):
            if not path.exists():  # nor did another process write it in the meantime
                write_json(path, spec.to_dict())
                return
    there, asked = _flat(store.read_settings(folder)), _flat(spec)
    names = dict.fromkeys((*spec.facts(), *sorted(there.keys() | asked.keys())))  # case, method and seeds first
    differing = [name for name in names if there.get(name) != asked.get(name)]
    if differing:
        if "method" in differing:  # what the two runs are comes first; their settings follow from it
            differing = ["method", *(name for name in differing if name in spec.facts() and name != "method")]
        shown = ", ".join(f"{k} ({there.get(k)} there, {asked.get(k)} requested)" for k in differing[:3])
        raise MarioError(
            f"{folder} contains another run; it differs in {shown}. Choose another folder or remove this one"
        )


def make_probe(judged: Evaluation) -> Probe:
    """The probe that the settings of a run name."""
    if judged.probe == "logistic":
        return LogisticProbe()
    if judged.probe == "liblinear":
        return LiblinearProbe()
    if judged.probe == "optimum":
        return LinearProbe(solver="optimum")
    return LinearProbe(epochs=judged.probe_steps, lr=judged.probe_lr)


def environment() -> dict[str, Any]:
    """Versions, hardware and modes of torch, which may change the last bits of a result."""
    names = ("torch_geometric", "numpy", "scipy", "scikit-learn")
    found = {
        "mario": mario.__version__,
        "python": platform.python_version(),
        **{name.replace("-", "_"): version(name) for name in names},
        **numerics(torch.device("cpu")),
        "platform": platform.platform(),
    }
    return anonymous.without_machine(found) if anonymous.wanted() else found


def _flat(spec: RunSpec) -> dict[str, Any]:
    return {**spec.facts(), **spec.settings}
