"""A million nodes and ten million edges: scores and peak memory of whole runs by the real command.

    python -m benchmarks.million [--quick] [--methods erm mario] [--seeds 3 4 5 6 7]

The graph is `shifting-1m` of our generator, made on disk the first time (a gigabyte for each seed). Each run is
`mario run` on one thread in a child process of its own, with the settings of the dataset's files; its peak is what the
kernel says of that child. Seeds 0 to 2 had a part in choosing the generator's parameters and are left out.
"""

import statistics
from dataclasses import asdict
from typing import Any

from benchmarks.measuring import mario_run, parser, save
from mario.lab.statistics.paired import paired


def measure(dataset: str, method: str, seed: int) -> dict[str, float]:
    """Scores, CPU seconds and peak bytes of one run."""
    words = ("--method", method, "--split-seed", seed, "--seed", seed, "--threads", 1)
    result, peak = mario_run(dataset, *words)
    scores = {name: result["scores"][name] for name in ("id_test", "ood_test")}
    return {**scores, "cpu": result["cpu_seconds"], "peak": peak}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--methods", nargs="+", default=["random-init", "erm", "grace", "mario"])
    options.add_argument("--seeds", nargs="+", type=int, default=[3, 4, 5, 6, 7])
    given = options.parse_args()
    dataset, seeds = ("shifting-10k", given.seeds[:2]) if given.quick else ("shifting-1m", given.seeds)
    runs: dict[str, list[dict[str, float]]] = {method: [] for method in given.methods}
    for seed in seeds:  # methods take turns
        for method, found in runs.items():
            found.append(measure(dataset, method, seed))
            print(f"{method}, seed {seed}: OOD {100 * found[-1]['ood_test']:.1f} %", flush=True)
    rows: list[dict[str, Any]] = []
    for method, found in runs.items():
        row: dict[str, Any] = {"method": method}
        for name in ("id_test", "ood_test"):
            scores = [one[name] for one in found]
            row[name] = {"mean": statistics.mean(scores), "sd": statistics.stdev(scores), "scores": scores}
        row |= {"cpu": statistics.median(one["cpu"] for one in found), "peak": max(one["peak"] for one in found)}
        rows.append(row)
    tests = {
        f"mario, {other}": asdict(paired(*([one["ood_test"] for one in runs[name]] for name in ("mario", other))))
        for other in ("erm", "grace")
        if {"mario", other} <= runs.keys()
    }
    save(given, "million", {"dataset": dataset, "seeds": seeds, "rows": rows, "paired": tests})


if __name__ == "__main__":
    main()
