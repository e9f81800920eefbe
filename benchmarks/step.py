"""One training step of MARIO, ours against the reference: CPU time and peak memory over the inputs.

    python -m benchmarks.step [--quick]

M = 3 ascent steps, 10 prototype steps, 100 prototypes, a GCN of 3 layers 300 wide, random graphs of mean degree 10 with
128 features, and one of 8,000 nodes with 6,805 sparse words. A step is the gradients and the optimizer. Up to 8,000
nodes CPU time is on one thread, medians of rounds in which both take turns; memory is of a child process that does one
step after a warm-up on a small graph. For the sparse words and beyond 8,000 nodes, time is the child's as well, from
32,000 on with two threads. The reference stops where a step would take more than two minutes or 16 GB.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import torch
from torch_geometric.data import Data

import mario
from benchmarks.inputs import FEATURES, WORDS, bag_of_words, random_graph
from benchmarks.limits import matmul_rate
from benchmarks.measuring import cpu_seconds, forget_peak, in_child, in_turns, medians, parser, resident, save
from benchmarks.reference import PlainMARIO, Settings

PLAIN_UP_TO = 8_000
ROUNDS = {1_000: 7, 2_000: 5, 4_000: 3, 8_000: 2}
TWO_THREADS_FROM = 32_000


def stepper(who: str, data: Data) -> Callable[[], None]:
    """A function that does one whole step on ``data``; each call draws new views."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    features = data.x.size(1)
    ours = mario.MARIO(sampling="full")
    if who == "ours":
        ours.place(features, 0)
        optimizer = ours.optimizer()
        ours.train()

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            ours.step(data, generator)
            optimizer.step()
    else:
        plain = PlainMARIO(features, Settings.of(ours.get_params()), again=who.partition(":")[2] or "encoder")
        optimizer = plain.optimizer()
        plain.train()

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            plain.step(data.x, data.edge_index, generator)
            optimizer.step()

    return step


def graph(nodes: int, wide: bool, sparse: bool) -> Data:
    return bag_of_words(nodes, sparse=sparse) if wide else random_graph(nodes)


def child(who: str, nodes: int, wide: bool) -> None:
    """Prints peak bytes above the inputs and the time of one step."""
    stepper(who, graph(300, wide, who == "ours"))()  # what torch and its libraries allocate once
    step = stepper(who, graph(nodes, wide, who == "ours"))
    before = forget_peak()
    start = time.perf_counter()
    took = cpu_seconds(step)
    wall = time.perf_counter() - start
    print(json.dumps({"bytes": resident("VmHWM") - before, "before": before, "cpu": took, "wall": wall}))


def work(
    nodes: int, features: int = FEATURES, hidden_channels: int = 300, num_layers: int = 3, ascent: int = 3
) -> dict[str, float]:
    """Operations that the exact step cannot do without, 2 for a multiply-add: where its time has to go."""
    contrast = ascent * 16.0 * nodes**2 * hidden_channels
    # Forward counts 2, backward 4. α passes M times with gradients, β once; both once without.
    passes = (ascent + 1) * 6.0 + 2 * 2.0
    first = nodes * features * hidden_channels
    deeper = nodes * hidden_channels**2 * (num_layers - 1 + 2)
    return {"contrast": contrast, "network": passes * (first + deeper)}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sizes", type=int, nargs="+", help="numbers of nodes (1k ... 64k)")
    options.add_argument("--child", choices=["ours", "plain"], help="internal: one step in this process")
    options.add_argument("--nodes", type=int)
    options.add_argument("--wide", action="store_true")
    given = options.parse_args()
    if given.child:
        child(given.child, given.nodes, given.wide)
        return
    torch.set_num_threads(1)
    sizes = given.sizes or ([500, 1_000] if given.quick else [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000])
    rows = []
    for nodes in sizes:
        rows.append(measure(nodes, wide=False, quick=given.quick))
    rows.append(measure(500 if given.quick else 8_000, wide=True, quick=given.quick))
    nodes = 500 if given.quick else 700
    # What the reference runs again in its prototype steps matters most where the graph is small.
    data = random_graph(nodes)
    names = ("ours", "plain:nothing", "plain:projector", "plain:encoder")
    again = in_turns({name: stepper(name, data) for name in names}, 2 if given.quick else 7)
    save(given, "step", {"rows": rows, "again": {"nodes": nodes, "cpu": medians(again)}})


def measure(nodes: int, wide: bool, quick: bool) -> dict[str, Any]:
    """One row of the table."""
    threads = 2 if nodes >= TWO_THREADS_FROM else 1
    who = ["ours", "plain"] if nodes <= PLAIN_UP_TO else ["ours"]
    row: dict[str, Any] = {"nodes": nodes, "wide": wide, "threads": threads}
    extra = ["--wide"] if wide else []
    measured: dict[str, dict[str, Any]] = {name: {} for name in who}
    if quick or (nodes in ROUNDS and not wide):
        steps = {name: stepper(name, graph(nodes, wide, name == "ours")) for name in who}
        rounds = 2 if quick else ROUNDS[nodes]
        times = in_turns(steps, rounds, warm_up=nodes <= 4_000)
        measured = {n: {"cpu": m, "rounds": rounds, "cpu_all": times[n]} for n, m in medians(times).items()}
    for name in who:
        found = in_child("benchmarks.step", "--child", name, "--nodes", nodes, *extra, threads=threads)
        row[name] = {"bytes": found["bytes"], "cpu": found["cpu"], "wall": found["wall"], "rounds": 1, **measured[name]}
    torch.set_num_threads(threads)
    row["matmul_flops"] = matmul_rate(1024 if quick else 2048)
    torch.set_num_threads(1)
    row["work"] = work(nodes, WORDS if wide else FEATURES)
    shown = {name: (round(row[name]["cpu"], 2), row[name]["bytes"] >> 20) for name in who}
    print(nodes, "wide" if wide else "", shown, flush=True)
    return row


if __name__ == "__main__":
    main()
