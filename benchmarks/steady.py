"""What steady adds to a run of GRACE: CPU time on GOOD-CBAS and coauthor-cs, peak memory on a million nodes.

    python -m benchmarks.steady [--quick] [--rounds 3]

Runs of the study `steady` with other seeds (0, 1, ...), each by `mario reproduce`'s own code in a child process on one
thread, in turns. ``train`` is everything but the scoring of checkpoints: preparing, training, and for steady measuring
its channels; ``run`` is the whole run with the logistic head at its four checkpoints, which reads more columns where
features are wide. Memory is what the kernel says of a child that is `mario run shifting-1m` with its controls.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measuring import GIB, in_child, mario_run, parser, save

COLUMNS = ("good-cbas-concept", "coauthor-cs-word-concept")
ROWS = ("grace", "grace+steady")
LARGE = "shifting-1m"


def one_run(column: str, row: str, seed: int) -> dict[str, float]:
    """CPU seconds of a run of the study, and of its part that is not scoring."""
    import dataclasses

    import mario.lab.runs.execute as execution
    from mario.lab.studies.read import find_study
    from mario.lab.studies.study import row_spec

    study = find_study("steady")
    case = next(case for case in study.cases if case.name == column)
    spec = row_spec(case, case.schedule, next(found for found in study.rows if found.label == row))
    spec = dataclasses.replace(spec, seed=seed, split_seed=seed)
    data = execution.load_data(spec)
    scoring = 0.0
    judge = execution.evaluate

    def timed(*arguments: Any, **words: Any) -> Any:
        nonlocal scoring
        began = time.process_time()
        found = judge(*arguments, **words)
        scoring += time.process_time() - began
        return found

    execution.evaluate = timed
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        for _ in execution.execute(spec, data, Path(folder) / "run"):
            pass
        whole = time.process_time() - began
    return {"run": whole, "train": whole - scoring}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--child", nargs=3, help="COLUMN ROW SEED: one run")
    given = options.parse_args()
    if given.child:
        print(json.dumps(one_run(given.child[0], given.child[1], int(given.child[2]))))
        return
    cost: dict[str, Any] = {}
    for column in COLUMNS[: 1 if given.quick else None]:
        times: dict[str, list[dict[str, float]]] = {row: [] for row in ROWS}
        for seed in range(1 if given.quick else given.rounds):
            for row, found in times.items():
                found.append(in_child("benchmarks.steady", "--child", column, row, seed))
        plain, steady = (times[row] for row in ROWS)
        cost[column] = {
            part: {
                "grace": statistics.median(one[part] for one in plain),
                "ratios": [s[part] / p[part] for s, p in zip(steady, plain, strict=True)],
            }
            for part in ("train", "run")
        }
        for part, figures in cost[column].items():
            print(f"{column}, {part}: {statistics.median(figures['ratios']):.3f} of GRACE's CPU time", flush=True)
    memory: dict[str, int] = {}
    for row in ROWS:
        _, memory[row] = mario_run("shifting-10k" if given.quick else LARGE, "--method", row, "--threads", 1)
        print(f"{row}: {memory[row] / GIB:.2f} GiB", flush=True)
    save(given, "steady", {"cost": cost, "memory": memory})


if __name__ == "__main__":
    sys.exit(main())
