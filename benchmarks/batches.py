"""Mini-batches on graphs that stay on disk: time of an epoch and peak memory against the number of nodes.

    python -m benchmarks.batches [--quick]

Graphs of `mario.datasets.generators.shifting` with ten edges a node and 128 features, mapped from disk. MARIO trains on
random-walk subgraphs by the package's own loop, the next batch drawn in the background. Each size is a child process;
sizes take turns. An epoch is as many batches as hold the graph's number of nodes together; its time is that of some
batches, in proportion. Peak memory is of the whole process, torch included.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

import mario
from benchmarks.measuring import OUT, forget_peak, in_child, parser, resident, save
from mario.datasets.generators.shifting import write_shifting
from mario.graphs.mapped import load_mapped
from mario.training.loop import train

SETTINGS: dict[str, Any] = {
    "hidden_channels": 256,
    "num_layers": 2,
    "roots": 600,
    "sampling": "random_walk",
    "steps_per_epoch": 1,
}


def child(where: str, steps: int) -> None:
    """Prints seconds a batch, its size, and peak bytes."""
    torch.set_num_threads(1)
    before = forget_peak()
    start = time.perf_counter()
    data = load_mapped(where)
    model = mario.MARIO(**SETTINGS, epochs=steps + 2)
    graph = model.prepare(data, device="cpu")
    ready = time.perf_counter() - start
    sizes = count_nodes_of(model)
    walls, cpus = [], []
    last, last_cpu = time.perf_counter(), time.process_time()
    for _ in train(model, graph):
        walls.append(time.perf_counter() - last)
        cpus.append(time.process_time() - last_cpu)
        last, last_cpu = time.perf_counter(), time.process_time()
    figures = {
        "set_up": ready,
        "wall": statistics.median(walls[2:]),  # the first two warm up and fill the queue
        "cpu": statistics.median(cpus[2:]),
        "nodes": statistics.mean(sizes),
        "peak": resident("VmHWM"),
        "before": before,
    }
    print(json.dumps(figures))


def count_nodes_of(model: mario.MARIO) -> list[int]:
    """A list to which every step of ``model`` adds the number of nodes of its batch."""
    sizes: list[int] = []
    step = model.step

    def counted(batch: Data, generator: torch.Generator) -> dict[str, float]:
        sizes.append(int(batch.num_nodes or 0))
        return step(batch, generator)

    model.step = counted  # type: ignore[method-assign]
    return sizes


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--child", help="internal: folder of a graph")
    options.add_argument("--steps", type=int, default=10)
    given = options.parse_args()
    if given.child:
        child(given.child, given.steps)
        return
    sizes = [5_000, 10_000] if given.quick else [125_000, 250_000, 500_000, 1_000_000]
    OUT.mkdir(parents=True, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory(dir=OUT) as home:  # beside the JSON: /tmp may be memory
        making = {}
        for nodes in sizes:
            start = time.perf_counter()
            write_shifting(Path(home) / str(nodes), nodes=nodes, edges=10 * nodes)
            making[nodes] = time.perf_counter() - start
            print(f"{nodes} nodes written in {making[nodes]:.1f} s", flush=True)
        found: dict[int, list[dict[str, float]]] = {nodes: [] for nodes in sizes}
        for _ in range(1 if given.quick else 2):
            for nodes, kept in found.items():
                steps = 3 if given.quick else given.steps
                kept.append(in_child("benchmarks.batches", "--child", Path(home) / str(nodes), "--steps", steps))
                print(nodes, {name: round(value, 3) for name, value in kept[-1].items()}, flush=True)
        for nodes, kept in found.items():
            row = {name: statistics.median(one[name] for one in kept) for name in kept[0]}
            count = nodes / row["nodes"]
            epoch = {"batches": count, "epoch_wall": count * row["wall"], "epoch_cpu": count * row["cpu"]}
            rows.append({**row, **epoch, "batch": row["nodes"], "nodes": nodes, "making": making[nodes]})
    save(given, "batches", {"settings": SETTINGS, "rows": rows})


if __name__ == "__main__":
    main()
