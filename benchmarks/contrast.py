"""InfoNCE and the conditional term: share of the matrix-multiply rate, against full matrices, and 100,000 nodes.

    python -m benchmarks.contrast [--quick] [--large]

Forward and backward, 300 dimensions. The exact loss needs 8 N² d multiply-adds: 2N rows against 2N columns by
symmetry once in the forward, once again and twice more in the backward. The product of large square matrices is
measured in the same rounds, and a share is that of the medians. ``--large`` adds a child process that does 100,000
nodes (minutes): its whole peak is reported.
"""

import json
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks.limits import matmul_rate
from benchmarks.measuring import cpu_seconds, forget_peak, in_child, in_turns, medians, parser, resident, save
from benchmarks.reference import conditional_mi as plain_conditional, info_nce as plain_info_nce
from mario.contrast import conditional_mi, info_nce

TAU, DIM, CLUSTERS = 0.5, 300, 100
SQUARE = 2048


def embeddings(nodes: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(nodes, DIM, generator=generator)
    return u.requires_grad_(), torch.randn(nodes, DIM, generator=generator).add_(u.detach()).requires_grad_()


def labels(nodes: int) -> Tensor:
    return torch.randint(CLUSTERS, (nodes,), generator=torch.Generator().manual_seed(1))


def loss(name: str, u: Tensor, v: Tensor) -> Tensor:
    if name == "info_nce":
        return info_nce(u, v, TAU)
    if name == "info_nce plain":
        return plain_info_nce(u, v, TAU)
    y = labels(len(u))
    return (conditional_mi if name == "conditional_mi" else plain_conditional)(u, v, y, y, 1.0)


def both_ways(name: str, u: Tensor, v: Tensor) -> None:
    u.grad = v.grad = None
    loss(name, u, v).backward()


def child(name: str, nodes: int) -> None:
    both_ways(name, *embeddings(64))
    u, v = embeddings(nodes)
    before = forget_peak()
    start = time.perf_counter()
    took = cpu_seconds(lambda: both_ways(name, u, v))
    wall = time.perf_counter() - start
    peak = resident("VmHWM")
    rate = matmul_rate()
    print(json.dumps({"bytes": peak - before, "peak": peak, "cpu": took, "wall": wall, "matmul_flops": rate}))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--large", action="store_true", help="100,000 nodes as well, on two threads")
    options.add_argument("--child")
    options.add_argument("--nodes", type=int)
    given = options.parse_args()
    if given.child:
        child(given.child, given.nodes)
        return
    torch.set_num_threads(1)
    sizes = [500, 1_000] if given.quick else [4_000, 8_000, 16_000]
    rows = []
    for nodes in sizes:
        u, v = embeddings(nodes)
        a, b = torch.randn(2, SQUARE, SQUARE).unbind()
        out = torch.empty(SQUARE, SQUARE)
        plain = ["info_nce plain", "conditional_mi plain"] if nodes <= 4_000 else []
        # Square products before and after each loss, so that they meet the same seconds.
        work: dict[str, Callable[[], object]] = {"product": partial(torch.mm, a, b, out=out)}
        for name in ("info_nce", "conditional_mi", *plain):
            work[name] = partial(both_ways, name, u, v)
        rounds = 2 if given.quick else (7 if nodes <= 8_000 else 5)
        times = in_turns(work, rounds, at_least=0.2 if given.quick else 0.5)
        middle = medians(times)
        rate = 2 * SQUARE**3 / middle["product"]
        needed = 16.0 * nodes**2 * DIM
        row = {
            "nodes": nodes,
            "cpu": middle,
            "matmul_flops": rate,
            "share": needed / middle["info_nce"] / rate,
            "share_by_round": [
                needed / own / (2 * SQUARE**3 / square)
                for own, square in zip(times["info_nce"], times["product"], strict=True)
            ],
            "bytes": {
                name: in_child("benchmarks.contrast", "--child", name, "--nodes", nodes)["bytes"]
                for name in work
                if name != "product"
            },
        }
        rows.append(row)
        print(nodes, f"share {row['share']:.2f}", {name: round(took, 3) for name, took in middle.items()}, flush=True)
    figures: dict[str, object] = {"rows": rows}
    if given.large:
        nodes = 2_000 if given.quick else 100_000
        large = in_child("benchmarks.contrast", "--child", "info_nce", "--nodes", nodes, threads=2)
        figures["large"] = {"nodes": nodes, "threads": 2, **large}
        figures["large"]["share"] = 16.0 * nodes**2 * DIM / large["wall"] / large["matmul_flops"]  # type: ignore[index]
    save(given, "contrast", figures)


if __name__ == "__main__":
    main()
