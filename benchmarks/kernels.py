"""What the special parts of the contrast kernels are worth, as a share of a MARIO step.

    python -m benchmarks.kernels [--quick]

One InfoNCE kernel (mario/contrast/nce.py) serves all calls. Two parts need code of their own, and each has to be worth
15 % of a step at one of the sizes that follow:

- ``reuse``: `sums_within` computes the pairs within view β once for all ascent steps. Without it, every ascent step
  computes them again.
- ``within clusters``: mario/contrast/blocks.py sums only the pairs that share a cluster. Without it, the conditional
  term comes from the matrix of all pairs with a mask.

Steps of all variants take turns in every round; one thread, CPU time, medians of the ratios to the step as it is.
"""

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
from torch import Tensor
from torch_geometric.data import Data

import mario
from benchmarks.inputs import random_graph
from benchmarks.measuring import in_turns, medians, parser, save
from benchmarks.reference import conditional_mi as of_all_pairs
from mario.methods import recipe
from mario.methods.two_view import TwoView

ROUNDS = {700: 21, 4_000: 7, 8_000: 3}


def masked(u: Tensor, v: Tensor, clusters_u: Tensor, clusters_v: Tensor, tau: float, **other: str) -> Tensor:
    return of_all_pairs(u, v, clusters_u, clusters_v, tau)


@contextmanager
def without(part: str) -> Iterator[None]:
    """Steps that do not use ``part``."""
    if part == "reuse":
        with patch.object(mario.GRACE, "contrast_with", TwoView.contrast_with):
            yield
    elif part == "within clusters":
        with patch.object(recipe, "conditional_mi", masked):
            yield
    else:
        yield


def stepper(data: Data, part: str) -> Callable[[], None]:
    """A function that takes one step on ``data``."""
    method = mario.MARIO(sampling="full")
    method.prepare(data, seed=0, device="cpu")
    optimizer, generator = method.optimizer(), torch.Generator().manual_seed(0)
    method.train()

    def step() -> None:
        with without(part):
            optimizer.zero_grad(set_to_none=True)
            method.step(data, generator)
            optimizer.step()

    return step


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sizes", type=int, nargs="+", help="numbers of nodes (700 4000 8000)")
    given = options.parse_args()
    torch.set_num_threads(1)
    rows = []
    for nodes in given.sizes or ([300] if given.quick else list(ROUNDS)):
        data = random_graph(nodes)
        steps = {part: stepper(data, part) for part in ("as it is", "reuse", "within clusters")}
        times = in_turns(steps, 2 if given.quick else ROUNDS.get(nodes, 3), warm_up=nodes < 8_000)
        worth = {}
        for part in ("reuse", "within clusters"):
            ratios = [a / b for a, b in zip(times[part], times["as it is"], strict=True)]
            worth[part] = {"median": statistics.median(ratios), "all": ratios}
        rows.append({"nodes": nodes, "cpu": medians(times), "without": worth})
        told = ", ".join(f"without {part} ×{found['median']:.3f}" for part, found in worth.items())
        print(f"{nodes:>6} nodes: {1e3 * rows[-1]['cpu']['as it is']:.0f} ms, {told}", flush=True)
    save(given, "kernels", {"rows": rows})


if __name__ == "__main__":
    main()
