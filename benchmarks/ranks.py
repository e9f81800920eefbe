"""Throughput of 1, 2 and 4 ranks over gloo, each pinned to one core, and what their messages cost.

    python -m benchmarks.ranks [--quick]

Every rank trains MARIO by the package's loop on its own random-walk subgraphs, the same number of nodes for any
number of ranks; rank r is pinned to core r modulo the number of cores. Numbers of ranks take turns. Beside them run:
two processes that know nothing of each other, which is what sharing one machine costs without any message; and bare
sums over ranks of several sizes, from which the cost model takes latency and bandwidth. Messages and bytes of a step
are counted as they are sent.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import mario
from benchmarks.batches import SETTINGS, count_nodes_of
from benchmarks.inputs import random_graph
from benchmarks.measuring import ROOT, parser, save
from mario import ranks
from mario.lab.process import AWAKE
from mario.training.loop import train

MESSAGES = (4, 4_096, 262_144, 2_097_152)


class Counted:
    """Messages, bytes and seconds of what this rank sends for as long as it is in place."""

    def __init__(self) -> None:
        self.calls, self.bytes, self.seconds = 0, 0, 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        kept = {name: getattr(dist, name) for name in ("all_reduce", "all_gather", "broadcast")}

        def watched(name: str, call: Any) -> Any:
            def send(*arguments: Any, **named: Any) -> Any:
                tensor = arguments[1] if name == "all_gather" else arguments[0]
                start = time.perf_counter()
                result = call(*arguments, **named)
                self.seconds += time.perf_counter() - start
                self.calls += 1
                self.bytes += tensor.numel() * tensor.element_size()
                return result

            return send

        for name, call in kept.items():
            setattr(dist, name, watched(name, call))
        try:
            yield
        finally:
            for name, call in kept.items():
                setattr(dist, name, call)


class Timed(mario.MARIO):
    """MARIO that notes when each of its steps ends."""

    def after_step(self, step: int, total: int) -> None:
        super().after_step(step, total)
        self.ends.append(time.perf_counter())

    @cached_property
    def ends(self) -> list[float]:
        return []


def child(nodes: int, steps: int) -> dict[str, Any]:
    """Wall seconds of every step on this rank, and its messages, of one epoch after another that warms up.

    Messages sent once per epoch count with their share: an epoch has ``steps`` steps.
    """
    data = random_graph(nodes)
    model = Timed(**{**SETTINGS, "steps_per_epoch": steps}, epochs=2)
    graph = model.prepare(data, seed=0, device="cpu")
    counted, sizes = Counted(), count_nodes_of(model)
    with counted.watching():
        for epoch in train(model, graph, seed=0):
            if epoch.number == 1:
                counted.calls, counted.bytes, counted.seconds = 0, 0, 0.0
    walls = [end - start for start, end in pairwise(model.ends[steps - 1 :])]
    parameters = sum(p.numel() for p in model.trained())
    per_step = {name: getattr(counted, name) / steps for name in ("calls", "bytes", "seconds")}
    return {
        "walls": walls,
        "parameters": parameters,
        "messages": per_step,
        "batch_nodes": statistics.mean(sizes),
    }


def bare_sums(rounds: int) -> dict[str, float]:
    """Seconds of a sum over ranks by the size of what is summed."""
    taken = {}
    for size in MESSAGES:
        buffer = torch.ones(size // 4)
        ranks.sum_(buffer)  # the first of a size sets up what the others have
        times = []
        for _ in range(rounds):
            dist.barrier()
            start = time.perf_counter()
            for _ in range(10):
                ranks.sum_(buffer)
            times.append((time.perf_counter() - start) / 10)
        taken[str(size)] = statistics.median(times)
    return taken


def start(count: int, *arguments: object, joined: bool = True) -> list[dict[str, Any]]:
    """Run ``count`` processes of this module at once, rank r pinned to core r modulo cores; what each printed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cores = sorted(os.sched_getaffinity(0))
    processes = []
    with tempfile.TemporaryDirectory() as home:
        for rank in range(count):
            env = {**os.environ, "OMP_NUM_THREADS": "1", "MARIO_PIN": str(cores[rank % len(cores)])}
            if joined and count > 1:
                env |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)}
                env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            command = [sys.executable, "-m", "benchmarks.ranks", "--child", str(Path(home) / str(rank))]
            processes.append(subprocess.Popen([*command, *map(str, arguments)], cwd=ROOT, env=env))
        try:
            codes = [process.wait(timeout=600) for process in processes]
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
        if any(codes):
            raise SystemExit(f"of {count} ranks some failed: exit codes {codes}")
        return [json.loads((Path(home) / str(rank)).read_text()) for rank in range(count)]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--child", type=Path, help="internal: file for what this rank measured")
    options.add_argument("--nodes", type=int, default=100_000)
    options.add_argument("--steps", type=int, default=8)
    options.add_argument("--sums", action="store_true", help="internal: bare sums instead of training")
    given = options.parse_args()
    if given.child:
        os.sched_setaffinity(0, {int(os.environ["MARIO_PIN"])})
        torch.set_num_threads(1)
        with ranks.running("cpu", awake=AWAKE):
            measured = bare_sums(5) if given.sums else child(given.nodes, given.steps)
        given.child.write_text(json.dumps(measured))
        return
    nodes, steps = (3_000, 3) if given.quick else (given.nodes, given.steps)
    training = ("--nodes", nodes, "--steps", steps)
    kinds = {"1": (1, True), "2": (2, True), "4": (4, True), "2 apart": (2, False)}
    runs: dict[str, list[list[dict[str, Any]]]] = {kind: [] for kind in kinds}
    sums: dict[str, list[dict[str, float]]] = {"2": [], "4": []}
    for _ in range(1 if given.quick else 5):
        for many, taken in sums.items():
            taken.append(start(int(many), "--sums")[0])
        for kind, (count, joined) in kinds.items():
            runs[kind].append(start(count, *training, joined=joined))
            took = [sum(one["walls"]) for one in runs[kind][-1]]
            print(f"{kind}: {count * steps / max(took):.2f} batches per second", flush=True)
    figures: dict[str, Any] = {"settings": SETTINGS, "nodes": nodes, "steps": steps, "cores": os.cpu_count()}
    figures["kinds"] = {
        kind: {
            "ranks": kinds[kind][0],
            # Ranks wait for one another, so the slowest is the pace of all.
            "batches_per_second": statistics.median(
                len(run) * steps / max(sum(one["walls"]) for one in run) for run in taken
            ),
            "by_round": [len(run) * steps / max(sum(one["walls"]) for one in run) for run in taken],
            "walls": [wall for run in taken for one in run for wall in one["walls"]],
            "messages": taken[0][0]["messages"],
        }
        for kind, taken in runs.items()
    }
    figures |= {name: runs["1"][0][0][name] for name in ("parameters", "batch_nodes")}
    figures["sums"] = {
        many: {size: statistics.median(one[size] for one in taken) for size in taken[0]} for many, taken in sums.items()
    }
    save(given, "ranks", figures)


if __name__ == "__main__":
    main()
