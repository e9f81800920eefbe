"""Time and memory of the contrasts against the plain losses over full matrices: python benchmarks/contrast.py

Times are CPU seconds of one forward and backward, the two losses in turn, the least of a few rounds. Memory is the
peak resident size of a child process minus what it held with inputs and torch in place.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from mario.contrast import conditional_mi, info_nce

TAU, DIM, CLUSTERS = 0.5, 300, 100
MIB = 2**20
Loss = Callable[[Tensor, Tensor], Tensor]


def plain_info_nce(u: Tensor, v: Tensor) -> Tensor:
    """As published code has it: four N × N matrices, kept for the backward."""
    u, v = F.normalize(u), F.normalize(v)

    def one_way(a: Tensor, b: Tensor) -> Tensor:
        within, between = torch.exp(a @ a.t() / TAU), torch.exp(a @ b.t() / TAU)
        return -torch.log(between.diag() / (within.sum(1) + between.sum(1) - within.diag()))

    return (one_way(u, v) + one_way(v, u)).mean() / 2


def ours(u: Tensor, v: Tensor) -> Tensor:
    return info_nce(u, v, TAU)


def labels(n: int) -> Tensor:
    return torch.randint(CLUSTERS, (n,), generator=torch.Generator().manual_seed(1))


def plain_conditional(u: Tensor, v: Tensor) -> Tensor:
    y = labels(len(u))
    s = torch.exp(F.normalize(u) @ F.normalize(v).t())
    return -torch.log(s.diag() / (s * (y.unsqueeze(1) == y)).sum(1)).mean()


def ours_conditional(u: Tensor, v: Tensor) -> Tensor:
    y = labels(len(u))
    return conditional_mi(u, v, y, y)


LOSSES: dict[str, Loss] = {
    "info_nce": ours,
    "info_nce plain": plain_info_nce,
    "conditional_mi": ours_conditional,
    "conditional_mi plain": plain_conditional,
}


def inputs(n: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(n, DIM, generator=generator)
    return u.requires_grad_(), torch.randn(n, DIM, generator=generator).add_(u.detach()).requires_grad_()


def seconds(loss: Loss, u: Tensor, v: Tensor) -> float:
    u.grad = v.grad = None
    start = time.process_time()
    loss(u, v).backward()
    return time.process_time() - start


def resident_bytes(line: str) -> int:
    """VmRSS, what is resident now, or VmHWM, the most there was; ru_maxrss would count the parent's memory too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{line}:")[1].split()[0]) * 1024


def child(name: str, n: int) -> None:
    """Prints peak bytes above the inputs, and seconds, of one forward and backward."""
    small = inputs(64)
    seconds(LOSSES[name], *small)  # what torch and its libraries allocate once
    u, v = inputs(n)
    before = resident_bytes("VmRSS")
    took = seconds(LOSSES[name], u, v)
    print(json.dumps({"bytes": resident_bytes("VmHWM") - before, "seconds": took}))


def in_child(name: str, n: int, threads: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--threads", str(threads), "--child", name, "--nodes", str(n)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--child", choices=LOSSES, help=argparse.SUPPRESS)
    parser.add_argument("--nodes", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if given.child:
        child(given.child, given.nodes)
        return
    print(f"torch {torch.__version__}, {given.threads} thread(s), float32, {DIM} dimensions, forward and backward")
    print(f"{'loss':<16}{'nodes':>7}{'ours ms':>10}{'plain ms':>10}{'ratio':>7}{'ours MiB':>10}{'plain MiB':>11}")
    for name in ("info_nce", "conditional_mi"):
        for n, rounds in ((700, 15), (1000, 10), (4000, 2), (8000, 1)):
            u, v = inputs(n)
            pairs = [(seconds(LOSSES[name], u, v), seconds(LOSSES[f"{name} plain"], u, v)) for _ in range(rounds)]
            fast, slow = (min(times) for times in zip(*pairs, strict=True))
            memory = [in_child(which, n, given.threads)["bytes"] / MIB for which in (name, f"{name} plain")]
            print(
                f"{name:<16}{n:>7}{fast * 1e3:>10.1f}{slow * 1e3:>10.1f}{slow / fast:>6.1f}x"
                f"{memory[0]:>10.0f}{memory[1]:>11.0f}",
                flush=True,
            )
    for name in ("info_nce", "conditional_mi"):
        large = in_child(name, 20_000, given.threads)
        print(f"{name} at 20,000 nodes: {large['bytes'] / MIB:.0f} MiB above its inputs, {large['seconds']:.1f} s")


if __name__ == "__main__":
    main()
