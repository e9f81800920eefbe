"""Are our runs those of the reference? Both in float64 from the same first weights, with the same draws.

    python -m benchmarks.same_run [--quick] [--seeds 5] [--jobs 2]

GOOD-CBAS under concept shift with the paper's settings, 20 of its 200 epochs, a checkpoint after every second one. In
float32 rounding makes two runs of them within a few steps, whose accuracies can only be compared statistically; in
float64 they stay together, and their losses, weights and scores can be compared one by one. The reference keeps Z in
its prototype steps, as ours does. A bias before batch norm is no part of the comparison, nor is the running mean
after it: it has no gradient but rounding, which Adam scales to whole steps, and batch norm takes it away again.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch

from benchmarks.cbas import scores
from benchmarks.measuring import in_child, parser, save
from benchmarks.reference import PlainMARIO, Settings, linear_head
from mario.evaluation import LinearProbe
from mario.lab.case import Case
from mario.lab.presets import split_settings
from mario.lab.runs.execute import load_data, probe_seed
from mario.lab.spec import RunSpec
from mario.training.streams import BATCH, STEP, stream

STEPS = 200
EVERY = 20  # steps between checkpoints


def child(seed: int, steps: int, every: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    run = RunSpec.plan(Case.find("good-cbas", shift="concept"), "mario", seed=seed)
    data = load_data(run)
    data.x = data.x.double()
    ours, judged = split_settings(run.method, run.settings)
    sampler = ours.sampler(ours.prepare(data, seed=seed, device="cpu"))
    plain = PlainMARIO(data.x.size(1), Settings.of(dict(run.settings)), "nothing")
    plain.load_state_dict(ours.state_dict())
    optimizers = ours.optimizer(), plain.optimizer()
    head: dict[str, Any] = {"epochs": judged.probe_steps, "lr": judged.probe_lr}
    train, classes = data.train_mask, int(data.num_classes)
    loss_gap, checkpoints = 0.0, []
    for step in range(steps):
        ours.train()
        plain.train()
        batch = sampler.sample(stream(seed, step, 0, BATCH))
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss = ours.step(batch, stream(seed, step, 0, STEP))["loss"]
        other = plain.step(batch.x, batch.edge_index, stream(seed, step, 0, STEP))
        for optimizer in optimizers:
            optimizer.step()
        loss_gap = max(loss_gap, abs(loss - other) / abs(other))
        if (step + 1) % every:
            continue
        ours.eval()
        plain.eval()
        z, first = ours.transform(data), probe_seed(run, step + 1)
        logits = LinearProbe(**head).fit_predict(z[train], data.y[train], z, classes, seed=first)
        embedded = plain.encoder_(data.x, data.edge_index).detach()
        others = linear_head(partial(torch.clone, embedded), data.y, train, classes, seed=first, **head)
        checkpoints.append(
            {
                "step": step + 1,
                "weights": _gap(ours, plain),
                "embeddings": float((z - embedded).abs().max() / embedded.abs().max()),
                "ours": scores(logits, data),
                "plain": scores(others, data),
                "nodes apart": int((logits.argmax(1) != others.argmax(1)).sum()),
            }
        )
    return {"seed": seed, "loss": loss_gap, "checkpoints": checkpoints}


@torch.no_grad()
def _gap(ours: torch.nn.Module, plain: torch.nn.Module) -> float:
    """The largest difference of two weights that are of any effect, against the largest weight."""
    idle = ("encoder_.convs.0.bias", "encoder_.convs.1.bias", "encoder_.convs.2.bias", "projector_.layers.0.bias")
    own, theirs = dict(ours.named_parameters()), dict(plain.named_parameters())
    pairs = [(own[name], theirs[name]) for name in own if name not in idle]
    return max(float((a - b).abs().max()) for a, b in pairs) / max(float(b.abs().max()) for _, b in pairs)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--jobs", type=int, default=1, help="how many at once, each on one thread")
    options.add_argument("--child", type=int)
    given = options.parse_args()
    steps, every = (4, 2) if given.quick else (STEPS, EVERY)
    if given.child is not None:
        print(json.dumps(child(given.child, steps, every)))
        return

    def one(seed: int) -> dict[str, Any]:
        found = in_child("benchmarks.same_run", "--child", seed, *(["--quick"] if given.quick else []))
        last = found["checkpoints"][-1]
        print(f"seed {seed}: losses apart by {found['loss']:.1e}, weights {last['weights']:.1e} at the end,", end=" ")
        print("labels of", sum(row["nodes apart"] for row in found["checkpoints"]), "nodes", flush=True)
        return found

    with ThreadPoolExecutor(given.jobs) as pool:
        runs = list(pool.map(one, range(1 if given.quick else given.seeds)))
    save(given, "same_run", {"steps": steps, "runs": runs})


if __name__ == "__main__":
    main()
