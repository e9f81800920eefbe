"""Which tile sizes `info_nce` is fastest with: the measurement behind the constants in mario/contrast/tiles.py.

    python -m benchmarks.tile_sizes [--quick]

Forward and backward of `info_nce`, one thread, CPU time; all sides take turns in every round. Each row of the table is
one number of nodes and width, with the time of each side relative to the fastest, and the side that the library uses.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks.measuring import in_turns, medians, parser, save
from mario.contrast import info_nce, tiles

SIDES = (256, 336, 384, 448, 512, 672)


def both_ways(side: int, u: Tensor, v: Tensor) -> None:
    u.grad = v.grad = None
    tiles.SMALL_TILE = tiles.LARGE_TILE = side
    info_nce(u, v).backward()


def main() -> None:
    given = parser(__doc__).parse_args()
    torch.set_num_threads(1)
    used = {nodes: tiles.tile_side(nodes) for nodes in (500, 700, 4_000, 8_000)}
    sizes = [(500, 64)] if given.quick else [(700, 300), (4_000, 128), (4_000, 300), (4_000, 512), (8_000, 300)]
    rows = []
    for nodes, width in sizes:
        generator = torch.Generator().manual_seed(0)
        u, v = (torch.randn(nodes, width, generator=generator).requires_grad_() for _ in range(2))
        work: dict[str, Callable[[], object]] = {str(side): partial(both_ways, side, u, v) for side in SIDES}
        cpu = medians(in_turns(work, 2 if given.quick else (21 if nodes < 1_000 else 5)))
        fastest = min(cpu.values())
        relative = {side: round(took / fastest, 3) for side, took in cpu.items()}
        rows.append({"nodes": nodes, "width": width, "cpu": cpu, "relative": relative, "used": used[nodes]})
        print(
            f"{nodes:>6} nodes, width {width}: fastest {1e3 * fastest:.1f} ms, {relative}, used {used[nodes]}",
            flush=True,
        )
    save(given, "tile_sizes", {"rows": rows})


if __name__ == "__main__":
    main()
