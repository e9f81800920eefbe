"""A whole run on GOOD-CBAS under concept shift, the paper's settings: pre-training and every probe.

    python -m benchmarks.cbas [--quick] [--seeds 5] [--jobs 2]

2,000 steps and 20 checkpoints, one every ten epochs as released, with a probe each of 100 epochs of ten steps. Both
train on the same sampled subgraphs from the same weights with the same draws. A shortened run of each, epochs in
turns, gives the CPU time of an epoch and of a checkpoint, from which that of the whole run follows in proportion.
``--seeds`` adds runs whose accuracies are compared, paired by seed, of ``--seed-epochs`` epochs; all 200 would take
the reference about an hour a seed. There the reference keeps Z in its prototype steps, which changes no number. Those
done before with the same code are kept in the folder ``cbas``.
"""

import argparse
import hashlib
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from benchmarks.measuring import ROOT, folder, in_child, parser, save
from benchmarks.reference import PlainMARIO, Settings, linear_head
from mario.evaluation import SETS, report
from mario.lab.case import Case
from mario.lab.presets import split_settings
from mario.lab.runs.execute import execute, load_data, probe_seed
from mario.lab.spec import RunSpec
from mario.lab.statistics.paired import paired
from mario.training.loop import pauses
from mario.training.streams import BATCH, STEP, stream
from mario.untrusted import read_json

SCORES = ("id_test", "ood_test")
CHECKPOINTS = 20  # of the whole run


def plan(seed: int, epochs: int, checkpoints: int) -> RunSpec:
    """The run with the paper's settings, ``epochs`` and ``checkpoints`` apart; 0 leaves those as well."""
    given = {name: value for name, value in (("epochs", epochs), ("checkpoints", checkpoints)) if value}
    return RunSpec.plan(Case.find("good-cbas", shift="concept"), "mario", seed=seed, given=given)


def plain_epochs(run: RunSpec, curve: list[dict[str, float]], again: str) -> Iterator[int]:
    """The run by the reference, one epoch for each item; ``curve`` gets the scores of every checkpoint."""
    data = load_data(run)
    ours, judged = split_settings(run.method, run.settings)
    graph = ours.prepare(data, seed=run.seed, device="cpu")
    sampler = ours.sampler(graph)
    model = PlainMARIO(data.x.size(1), Settings.of(dict(run.settings)), again)
    model.load_state_dict(ours.state_dict())
    optimizer = model.optimizer()
    classes = int(data.num_classes)
    stops = set(pauses(ours.epochs, judged.checkpoints))
    step = 0
    for epoch in range(1, ours.epochs + 1):
        model.train()
        for _ in range(ours.steps_per_epoch):
            batch = sampler.sample(stream(run.seed, step, 0, BATCH))
            optimizer.zero_grad()
            model.step(batch.x, batch.edge_index, stream(run.seed, step, 0, STEP))
            optimizer.step()
            step += 1
        if epoch in stops:
            model.eval()
            logits = linear_head(
                lambda: model.encoder_(data.x, data.edge_index),
                data.y,
                data.train_mask,
                classes,
                epochs=judged.probe_steps,
                lr=judged.probe_lr,
                seed=probe_seed(run, step),
            )
            curve.append({"step": step, **scores(logits, data)})
        yield epoch


def scores(logits: Tensor, data: Data) -> dict[str, float]:
    """The share of right labels in each set of nodes, in double precision as ours are."""
    right = logits.argmax(1) == data.y
    return {name: float(right[data[f"{name}_mask"]].double().mean()) for name in SETS if f"{name}_mask" in data}


def epochs_of(who: str, run: RunSpec, home: Path, curve: list[dict[str, float]], again: str) -> Iterator[object]:
    if who == "plain":
        return plain_epochs(run, curve, again)
    return execute(run, load_data(run), home / "run", device="cpu")


def child(seed: int, epochs: int, checkpoints: int, again: str, whom: list[str]) -> None:
    """Prints by name the CPU seconds of every epoch, which take turns, and the scores."""
    torch.set_num_threads(1)
    run = plan(seed, epochs, checkpoints)
    curve: list[dict[str, float]] = []
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as home:
        left = {who: epochs_of(who, run, Path(home), curve, again) for who in whom}
        took: dict[str, list[float]] = {who: [] for who in whom}
        while left:
            for who, work in list(left.items()):
                began = time.process_time()
                if next(work, None) is None:
                    del left[who]
                took[who].append(time.process_time() - began)
        for who, seconds in took.items():
            best = report(curve) if who == "plain" else read_json(Path(home) / "run" / "result.json")["scores"]
            kept = {name: best[name] for name in SCORES}
            # The last item is what comes after the last epoch.
            found[who] = {"cpu": sum(seconds), "epochs": seconds[:-1], "after": seconds[-1], "scores": kept}
    print(json.dumps(found))


def whole_run(short: dict[str, Any], epochs: int, checkpoints: int) -> dict[str, float]:
    """CPU seconds of a whole run from those of a shortened one with pauses after epochs 5 and 10."""
    took = short["epochs"]
    epoch = statistics.median([*took[1:4], *took[6:9]])
    # A probe ends the epoch of a pause; what is written after it falls into the next. It may be lost in the noise.
    pause = max(0.0, statistics.median([took[4], took[9]]) + took[5] - 2 * epoch)
    fixed = short["after"] + max(0.0, took[0] - epoch)
    return {"epoch": epoch, "pause": pause, "fixed": fixed, "whole": fixed + epochs * epoch + checkpoints * pause}


def complete(given: argparse.Namespace, who: str, seed: int) -> dict[str, Any]:
    """A run of ``--seed-epochs``, or the one that this code has done before."""
    sources = [Path(__file__), *(sorted((ROOT / "src" / "mario").rglob("*.py")) if who == "ours" else [])]
    sources += [ROOT / "benchmarks" / "reference.py"] if who == "plain" else []
    code = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    path = folder(given) / "cbas" / f"{who}-{seed}-{given.seed_epochs}-{code}.json"
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    epochs = 2 if given.quick else given.seed_epochs
    settings = ("--seed", seed, "--epochs", epochs, "--again", "nothing")
    found = in_child("benchmarks.cbas", "--child", who, *settings)[who]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found), encoding="utf-8")
    print(who, "seed", seed, f"{found['cpu']:.0f} s", found["scores"], flush=True)
    return found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=0, help="runs of both whose accuracies are compared, 0, 1, ...")
    options.add_argument("--seed-epochs", type=int, default=20, help="their epochs; 0 is all 200")
    options.add_argument("--jobs", type=int, default=1, help="how many of them at once, each on one thread")
    options.add_argument("--again", default="encoder", help="what the prototype steps of the reference run again")
    options.add_argument("--child", nargs="+", choices=["ours", "plain"])
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--epochs", type=int, default=0)
    options.add_argument("--checkpoints", type=int, default=0)
    given = options.parse_args()
    if given.child:
        child(given.seed, given.epochs, given.checkpoints, given.again, given.child)
        return
    settings = plan(0, 0, 0).settings
    epochs, checkpoints = int(settings["epochs"]), CHECKPOINTS
    shortened: dict[str, list[dict[str, float]]] = {"ours": [], "plain": []}
    for seed in range(1 if given.quick else 2):
        words = ("--seed", seed, "--epochs", 10, "--checkpoints", 2)
        both = in_child("benchmarks.cbas", "--child", *shortened, *words)
        for who, short in both.items():
            shortened[who].append(whole_run(short, epochs, checkpoints))
            print(who, {name: round(value, 3) for name, value in shortened[who][-1].items()}, flush=True)
    figures: dict[str, Any] = {
        "epochs": epochs,
        "steps_per_epoch": settings["steps_per_epoch"],
        "checkpoints": checkpoints,
        "shortened": {
            who: {name: statistics.median(row[name] for row in rows) for name in rows[0]}
            for who, rows in shortened.items()
        },
    }
    pairs = [(who, seed) for seed in range(given.seeds) for who in ("ours", "plain")]
    with ThreadPoolExecutor(given.jobs) as pool:  # each waits for a process of its own
        done = dict(zip(pairs, pool.map(lambda pair: complete(given, *pair), pairs), strict=True))
    if done:
        found = {
            who: {name: [done[who, seed]["scores"][name] for seed in range(given.seeds)] for name in SCORES}
            for who in ("ours", "plain")
        }
        figures["accuracy"] = {
            "seeds": given.seeds,
            "epochs": given.seed_epochs or epochs,
            "scores": found,
            "paired": {name: asdict(paired(found["ours"][name], found["plain"][name])) for name in SCORES},
        }
    save(given, "cbas", figures)


if __name__ == "__main__":
    main()
