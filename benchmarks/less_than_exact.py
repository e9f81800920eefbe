"""What is lost, and what is gained, by less than exact steps: sampled anchors, bfloat16, torch.compile.

    MARIO_DATA=FOLDER python -m benchmarks.less_than_exact [--quick] [--datasets good-cbas webkb coauthor-cs]

MARIO on three datasets under concept shift, five pairs of seed and split, the same steps and checkpoints for each
variant, every setting else that of the dataset's file; coauthor-cs in batches of random walks. Accuracy out of
distribution is of the checkpoint best on ood_val; differences to the exact runs are paired. CPU seconds are of the
whole run on one thread, probes included. Runs are kept in benchmarks/out/runs and not repeated.
"""

import statistics
import time
from typing import Any

import torch

from benchmarks.measuring import folder, parser, save
from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.process import return_freed_memory
from mario.lab.runs.execute import finish, load_data
from mario.lab.spec import RunSpec
from mario.lab.statistics.paired import paired

SHAPES: dict[str, dict[str, Any]] = {
    "good-cbas": {"epochs": 10, "steps_per_epoch": 10},
    "webkb": {"epochs": 4, "steps_per_epoch": 10},
    "coauthor-cs": {"epochs": 5, "steps_per_epoch": 2, "sampling": "random_walk", "roots": 500},
}
DOMAINS = {"coauthor-cs": "word"}


def variants(nodes: int) -> dict[str, dict[str, Any]]:
    return {
        "exact": {},
        "a quarter of the rows as anchors": {"anchors": nodes // 4},
        "bfloat16": {"precision": "bfloat16"},
        "torch.compile": {"compiled": True},
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--datasets", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--variants", nargs="+")
    given = options.parse_args()
    torch.set_num_threads(1)
    return_freed_memory()
    shown: dict[str, Any] = {}
    for dataset in given.datasets:
        shape = dict(SHAPES[dataset], checkpoints=5)
        if given.quick:
            shape |= {"epochs": 1, "steps_per_epoch": 2, "checkpoints": 1}
        try:
            rows = measure(dataset, shape, 2 if given.quick else given.pairs, given)
        except MarioError as error:
            print(f"{dataset}: left out, {error}")
            continue
        shown[dataset] = {"steps": shape["epochs"] * shape["steps_per_epoch"], "variants": rows}
    save(given, "less_than_exact", {"datasets": shown})


def measure(dataset: str, shape: dict[str, Any], pairs: int, given: Any) -> dict[str, dict[str, Any]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(pairs):
        case = Case.find(dataset, domain=DOMAINS.get(dataset))
        data = load_data(RunSpec.plan(case, "mario", split_seed=seed))
        nodes = min(int(data.num_nodes), 4 * shape.get("roots", 1000))
        for name, changed in variants(nodes).items():
            if given.variants and name not in given.variants:
                continue
            run = RunSpec.plan(case, "mario", split_seed=seed, seed=seed, given={**shape, **changed})
            where = folder(given) / "runs" / run.digest
            clock = where / "cpu-seconds"
            start = time.process_time()
            result = finish(run, data, where, device="cpu")
            if not clock.exists():
                clock.write_text(str(time.process_time() - start))
            score = result.scores.ood_test
            assert score is not None, "these datasets have an OOD test set"
            found.setdefault(name, []).append((score, float(clock.read_text())))
            print(f"{dataset} {seed} {name}: {found[name][-1]}", flush=True)
    return {name: describe(cells, found["exact"]) for name, cells in found.items()}


def describe(cells: list[tuple[float, float]], exact: list[tuple[float, float]]) -> dict[str, Any]:
    scores, seconds = zip(*cells, strict=True)
    row: dict[str, Any] = {
        "mean": statistics.mean(scores),
        "sd": statistics.stdev(scores),
        "scores": scores,
        "cpu": statistics.median(seconds),
        "pairs": len(scores),
    }
    if cells is not exact:
        found = paired(scores, [score for score, _ in exact])
        row |= {"difference": found.mean_difference, "low": found.ci_low, "high": found.ci_high, "p": found.p_wilcoxon}
    return row


if __name__ == "__main__":
    main()
