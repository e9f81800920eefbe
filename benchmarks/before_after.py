"""Training steps of two source trees side by side: CPU time and peak memory.

    python -m benchmarks.before_after OLD/src NEW/src [--quick] [--sizes 700 4000 8000] [--plain]

Each tree trains in a child process of its own, one thread, on the same random graph with the same seed. The children
take turns step by step, in alternating order, so that other load on the machine meets both. For each method and size
the table shows the median CPU time of a step, the median of the ratios new/old over rounds with their quartiles, and
the peak resident memory of each child. Children apply the process settings of the ``mario`` command
(`mario.lab.process`) if their tree has them; with ``--plain`` they do not, as in a user's own program.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

from benchmarks.measuring import MIB, ROOT, resident

METHODS = ("GRACE", "MARIO")
ROUNDS = {700: 40, 4_000: 12, 8_000: 6}


def child(name: str, nodes: int, plain: bool) -> None:
    """One training step per line read from standard input; answers with the CPU seconds and peak bytes so far."""
    import time

    import torch

    import mario
    from benchmarks.inputs import random_graph
    from mario.training import train

    torch.set_num_threads(1)
    if not plain:
        _set_up_process()
    method = getattr(mario, name)(sampling="full", epochs=100_000, steps_per_epoch=1)
    graph = method.prepare(random_graph(nodes), seed=0, device="cpu")
    steps = train(method, graph, seed=0, checkpoints=1)
    for _ in sys.stdin:
        start = time.process_time()
        losses = next(steps).losses
        took = time.process_time() - start
        print(json.dumps({"cpu": took, "bytes": resident("VmHWM"), "loss": losses["loss"]}), flush=True)


def _set_up_process() -> None:
    try:
        from mario.lab.process import return_freed_memory
    except ImportError:
        return  # an older tree, which does it by itself
    return_freed_memory()


class Tree:
    """A child process that trains with the sources in ``path``."""

    def __init__(self, path: Path, cache: str, words: list[str]) -> None:
        surroundings = {**os.environ, "PYTHONPATH": str(path.resolve()), "MARIO_CACHE": cache, "OMP_NUM_THREADS": "1"}
        self.command = [sys.executable, "-m", "benchmarks.before_after", "--child", *words]
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, env=surroundings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def step(self) -> dict[str, Any]:
        to, back = self.process.stdin, self.process.stdout
        assert to is not None
        assert back is not None
        return self._ask(to, back)

    def _ask(self, to: IO[str], back: IO[str]) -> dict[str, Any]:
        to.write("step\n")
        to.flush()
        line = back.readline()
        if not line:
            raise SystemExit(f"{self.command} ended with code {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()


def compare(old: Path, new: Path, words: list[str], rounds: int) -> dict[str, Any]:
    """Figures of one method at one size."""
    with tempfile.TemporaryDirectory() as cache:
        trees = [Tree(path, cache, words) for path in (old, new)]
        try:
            for tree in trees:
                tree.step()  # warm-up
            seconds: list[list[float]] = [[], []]
            last: list[dict[str, Any]] = [{}, {}]
            for number in range(rounds):
                for which in (0, 1) if number % 2 else (1, 0):
                    last[which] = trees[which].step()
                    seconds[which].append(last[which]["cpu"])
        finally:
            for tree in trees:
                tree.end()
    ratios = sorted(b / a for a, b in zip(*seconds, strict=True))
    low, _, high = statistics.quantiles(ratios, n=4)
    return {
        "old": statistics.median(seconds[0]),
        "new": statistics.median(seconds[1]),
        "ratio": statistics.median(ratios),
        "quartiles": (low, high),
        "bytes": [told["bytes"] for told in last],
        "losses": [told["loss"] for told in last],
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("trees", type=Path, nargs="*", help="the older and the newer source tree")
    options.add_argument("--sizes", type=int, nargs="+", help="numbers of nodes (700 4000 8000)")
    options.add_argument("--methods", nargs="+", default=METHODS)
    options.add_argument("--rounds", type=int, help="steps of each tree (40, 12 and 6)")
    options.add_argument("--quick", action="store_true", help="one small size, few rounds")
    options.add_argument("--plain", action="store_true", help="without the process settings of the command line")
    options.add_argument("--child", nargs=2, metavar=("METHOD", "NODES"), help="internal")
    given = options.parse_args()
    if given.child:
        child(given.child[0], int(given.child[1]), given.plain)
        return
    if len(given.trees) != 2:
        options.error("two source trees are needed: OLD/src NEW/src")
    sizes = given.sizes or ([300] if given.quick else list(ROUNDS))
    columns = f"{'method':8}{'nodes':>7}{'old':>12}{'new':>12}{'new/old':>9}  {'quartiles':15}{'peak':>10}{'new':>10}"
    print(f"{columns}  loss of the last step")
    for nodes in sizes:
        for name in given.methods:
            words = [name, str(nodes), *(["--plain"] if given.plain else [])]
            rounds = given.rounds or (4 if given.quick else ROUNDS.get(nodes, 6))
            found = compare(given.trees[0], given.trees[1], words, rounds)
            low, high = found["quartiles"]
            peaks = "".join(f"{held / MIB:>6.0f} MiB" for held in found["bytes"])
            times = f"{1e3 * found['old']:>9.1f} ms{1e3 * found['new']:>9.1f} ms{found['ratio']:>9.3f}"
            losses = " ".join(f"{loss:.6f}" for loss in found["losses"])
            print(f"{name:8}{nodes:>7}{times}  {low:.3f} to {high:.3f} {peaks}  {losses}", flush=True)


if __name__ == "__main__":
    main()
