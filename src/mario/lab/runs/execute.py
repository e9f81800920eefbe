"""One run: a dataset, a method and a seed in; a folder with the trained model and its scores out."""

import dataclasses
import json
import platform
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

import mario
from mario import ranks
from mario.datasets import find_case, load_dataset
from mario.errors import MarioError
from mario.evaluation import LinearProbe, LogisticProbe, evaluate, evaluate_many, invariance, report
from mario.files import read_json, write_json
from mario.lab.presets import Evaluation, complete_settings, split_settings
from mario.lab.runs import store
from mario.methods import find
from mario.methods.base import Method, check_seed, choose_device
from mario.training import Epoch, pauses, train


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that decides the bits of a run, and nothing else."""

    dataset: str
    domain: str
    shift: str
    setting: str
    split_seed: int
    method: str
    seed: int
    settings: Mapping[str, Any]

    @classmethod
    def plan(
        cls,
        dataset: str,
        method: str,
        *,
        domain: str | None = None,
        shift: str | None = None,
        setting: str | None = None,
        split_seed: int = 0,
        seed: int = 0,
        given: Mapping[str, Any] | None = None,
    ) -> "Run":
        """The run with all its settings; nothing is loaded yet. What is not told is what the dataset's card says."""
        card, domain, shift, setting = find_case(dataset, domain, shift, setting)
        found = find(method)
        found.check_level(card.level)
        check_seed(seed)
        method = found.name  # grace+mario is mario
        return cls(
            dataset=card.identity,
            domain=domain,
            shift=shift,
            setting=setting,
            split_seed=split_seed,
            method=method,
            seed=seed,
            settings=complete_settings(method, card.identity, domain, shift, given),
        )

    def load(self, root: Path | str | None = None) -> Data:
        """The graph of the run. The faults of a dataset are in ``data.faults``; whoever calls shows them.

        Rank 0 is the first, so that what has to be fetched or made is so once.
        """
        loaded: list[Data] = []
        ranks.first(lambda: loaded.append(self.load_alone(root)))
        return loaded[0] if loaded else self.load_alone(root)

    def load_alone(self, root: Path | str | None = None, *, download: bool = True) -> Data:
        """:meth:`load` for a rank that the others do not wait for; absent files are an error without ``download``."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*data.faults has the details")
            return load_dataset(
                self.dataset,
                domain=self.domain,
                shift=self.shift,
                setting=self.setting,
                split_seed=self.split_seed,
                root=root,
                download=download,
            )

    def probe_seed(self, step: int) -> int:
        """Of the probe that judges the checkpoint at ``step``."""
        return self.seed + 7919 * step

    def as_dict(self) -> dict[str, Any]:
        return json.loads(json.dumps(dataclasses.asdict(self)))

    def digest(self) -> str:
        """The name of the run's folder: a hash of its complete settings."""
        return store.digest(self.as_dict())


def execute(run: Run, data: Data, folder: Path, *, device: str = "auto") -> Iterator[Epoch]:
    """Train and evaluate ``run`` in ``folder``, one epoch for each item taken; ``result.json`` is written last.

    If ``result.json`` is there the run is done and nothing is yielded; with a checkpoint there it goes on from that.
    Over ranks all have to take every item; rank 0 alone writes in ``folder`` and evaluates.
    """

    with ExitStack() as held:

        def begin() -> bool:
            claim(run, folder)
            if (folder / "result.json").exists():
                return False
            held.enter_context(store.alone_in(folder))
            return not (folder / "result.json").exists()  # another process may have ended it since

        if ranks.first(begin):
            yield from proceed(run, data, folder, device=device)


def proceed(run: Run, data: Data, folder: Path, *, device: str = "auto") -> Iterator[Epoch]:
    """:func:`execute` for a process that has claimed the folder and holds its lock."""
    began, began_cpu = time.monotonic(), time.process_time()
    ranks.first(partial(store.set_aside_checkpoints, folder))
    model, judged = split_settings(run.method, run.settings)
    graph = model.prepare(data, seed=run.seed, device=device)
    prepared, prepared_cpu = time.monotonic() - began, time.process_time() - began_cpu
    curve = []
    judge = _Judge(run, model, data, judged)
    for epoch in train(model, graph, seed=run.seed, folder=folder, checkpoints=judged.checkpoints):
        reached, reached_cpu = time.monotonic(), time.process_time()
        if epoch.pause:
            if not epoch.record:
                with ranks.telling(partial("while rank 0 evaluated step {}".format, epoch.step)):
                    epoch.record.update(ranks.first(partial(judge, epoch.step)))
            curve.append({"step": epoch.step, **{k: v for k, v in epoch.record.items() if k not in ("epoch", "step")}})
        yield epoch
    if ranks.rank():
        return
    model.save(folder / "model.safetensors")
    result = {
        **{k: v for k, v in run.as_dict().items() if k != "settings"},
        "encoder": run.settings["encoder"],
        "metric": data.metric,
        "steps": curve[-1]["step"],
        "checkpoints": len(curve),
        "ranks": ranks.size(),
        "seconds": round(prepared + epoch.seconds + time.monotonic() - reached, 2),
        "cpu_seconds": round(prepared_cpu + epoch.cpu_seconds + time.process_time() - reached_cpu, 2),
        "scores": report(curve, data.get("groups") or ()),
        "curve": curve,
        "settings": run.as_dict()["settings"],
        "environment": {**environment(), "device": str(choose_device(device))},
        "faults": list(data.faults),
        "model": "last",  # model.safetensors is the last checkpoint; the scores say which one each is of
    }
    write_json(folder / "result.json", result)


class _Judge:
    """The scores of a run at a checkpoint, each with a probe of first weights of its own."""

    def __init__(self, run: Run, model: Method, data: Data, judged: Evaluation) -> None:
        self.run, self.model, self.data, self.judged = run, model, data, judged
        self.probe = make_probe(judged)
        self.ahead: dict[int, dict[str, Any]] = {}

    def __call__(self, step: int) -> dict[str, Any]:
        if self.model.trains:
            return evaluate(self.model, self.data, probe=self.probe, seed=self.seed(step)) | self.invariance()
        if step not in self.ahead:  # what does not train is the same at every checkpoint: its probes share the work
            epochs = pauses(self.model.epochs, self.judged.checkpoints)
            steps = sorted({step, *(epoch * self.model.steps_per_epoch for epoch in epochs)})
            seeds, shared = [self.seed(step) for step in steps], self.invariance()
            scores = evaluate_many([self.model.transform(self.data)], self.data, probe=self.probe, seeds=seeds)
            self.ahead = {step: found | shared for step, found in zip(steps, scores, strict=True)}
        return self.ahead[step]

    def seed(self, step: int) -> int:
        return self.run.probe_seed(step)

    def invariance(self) -> dict[str, float]:
        # All checkpoints and all methods are shown the same views.
        return invariance(self.model, self.data, seed=self.run.seed) if self.judged.invariance else {}


def finish(run: Run, data: Data, folder: Path, *, device: str = "auto") -> dict[str, Any]:
    """Carry ``run`` to its end and return its result."""
    for _ in execute(run, data, folder, device=device):
        pass
    return ranks.first(lambda: read_json(folder / "result.json"))


def claim(run: Run, folder: Path) -> None:
    """Write ``settings.json``, or check that the one there is of the same run."""
    path = folder / "settings.json"
    if not path.exists():
        store.refuse_strangers(folder)
    if not path.exists():  # nor has another process written it meanwhile
        write_json(path, run.as_dict())
        return
    there, asked = _flat(read_json(path)), _flat(run.as_dict())
    differing = sorted(k for k in there.keys() | asked.keys() if there.get(k) != asked.get(k))
    if differing:
        shown = ", ".join(f"{k} ({there.get(k)} there, {asked.get(k)} asked)" for k in differing[:3])
        raise MarioError(f"{folder} holds another run; it differs in {shown}. Choose another folder or remove this one")


def make_probe(judged: Evaluation) -> LinearProbe | LogisticProbe:
    if judged.probe == "logistic":
        return LogisticProbe()
    if judged.probe == "optimum":
        return LinearProbe(solver="optimum")
    return LinearProbe(epochs=judged.probe_steps, lr=judged.probe_lr)


def environment() -> dict[str, Any]:
    """What else may change the last bits of a result."""
    import torch_geometric

    return {
        "mario": mario.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "threads": torch.get_num_threads(),
        "platform": platform.platform(),
    }


def _flat(run: dict[str, Any]) -> dict[str, Any]:
    return {**{k: v for k, v in run.items() if k != "settings"}, **run["settings"]}
