"""What this machine can do at the most: products, memory, random rows, exponentials, small calls.

    python -m benchmarks.limits [--quick]

The best of several rounds: a limit is what the machine reaches when nobody disturbs it. On one thread the clock is that
of CPU time, as in the other parts; on two it is wall time.
"""

import time
from collections.abc import Callable

import torch

from benchmarks.measuring import MIB, parser, save


def matmul_rate(size: int = 2048, rounds: int = 5) -> float:
    """Floating-point operations per second of a large square float32 product, 2 for a multiply-add."""
    a, b = torch.randn(2, size, size).unbind()
    out = torch.empty(size, size)
    return 2 * size**3 / best(lambda: torch.mm(a, b, out=out), rounds)


def triad_rate(mebibytes: int = 128, rounds: int = 5) -> float:
    """Bytes per second of a = b + s·c over arrays far beyond every cache; two are read and one written."""
    a, b, c = (torch.zeros(mebibytes * MIB // 4).fill_(1) for _ in range(3))
    return 3 * mebibytes * MIB / best(lambda: torch.add(b, c, alpha=2.0, out=a), rounds)


def gather_rate(width: int, mebibytes: int = 256, rounds: int = 5) -> float:
    """Bytes per second, read and written, of copying rows of ``width`` float32 in random order."""
    rows = mebibytes * MIB // (4 * width)
    x = torch.zeros(rows, width).fill_(1)
    some = torch.randint(rows, (min(rows, 100_000),), generator=torch.Generator().manual_seed(0))
    out = torch.empty(len(some), width)
    return 2 * 4 * width * len(some) / best(lambda: torch.index_select(x, 0, some, out=out), rounds)


def exp_rate(rounds: int = 9) -> float:
    """Exponentials per second of a tile that stays in the second-level cache."""
    tile = torch.rand(256, 512)
    out = torch.empty_like(tile)
    return tile.numel() / best(lambda: torch.exp(tile, out=out), rounds, repeats=50)


def call_seconds(rounds: int = 9) -> float:
    """Seconds of the smallest call into torch: what a loop of tiny operations cannot go below."""
    one = torch.zeros(1)
    return best(lambda: one.add_(1.0), rounds, repeats=2000)


def best(work: Callable[[], object], rounds: int, repeats: int = 1) -> float:
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    work()
    times = []
    for _ in range(rounds):
        start = clock()
        for _ in range(repeats):
            work()
        times.append((clock() - start) / repeats)
    return min(times)


def measure(quick: bool, threads: int) -> dict[str, float]:
    torch.set_num_threads(threads)
    size, mebibytes, rounds = (1024, 32, 2) if quick else (2048, 128, 7)
    return {
        "matmul_flops": matmul_rate(size, rounds),
        "triad_bytes": triad_rate(mebibytes, rounds),
        "gather_512_bytes": gather_rate(128, 2 * mebibytes, rounds),
        "gather_1200_bytes": gather_rate(300, 2 * mebibytes, rounds),
        "exp": exp_rate(),
        "call_seconds": call_seconds(),
    }


def main() -> None:
    given = parser(__doc__).parse_args()
    # Threads take turns, too: two rounds of each.
    found: dict[str, list[dict[str, float]]] = {"1": [], "2": []}
    for _ in range(1 if given.quick else 2):
        for threads, kept in found.items():
            kept.append(measure(given.quick, int(threads)))
    figures = {
        threads: {
            name: (min if name == "call_seconds" else max)(round_[name] for round_ in rounds) for name in rounds[0]
        }
        for threads, rounds in found.items()
    }
    save(given, "limits", {"threads": figures, "rounds": found})


if __name__ == "__main__":
    main()
