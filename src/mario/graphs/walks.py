"""Random walks and draws without replacement, for samplers and views."""

import torch
from torch import Tensor

from mario.graphs.csr import CSR


def random_walk(csr: CSR, roots: Tensor, length: int, generator: torch.Generator | None = None) -> Tensor:
    """Simple random walks of ``length`` steps along the rows of ``csr``, [roots, length + 1]; a walk stays at a sink.

    Example:
        >>> path = CSR(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> random_walk(path, torch.tensor([0, 2]), 3).tolist()
        [[0, 1, 2, 2], [2, 2, 2, 2]]
    """
    walks = roots.new_empty((length + 1, roots.numel()))
    walks[0] = roots
    for step in range(length):
        walks[step + 1] = random_step(csr, walks[step], generator)
    return walks.t()


def random_step(csr: CSR, nodes: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """One uniformly drawn neighbor of each node; the node itself if it has none."""
    if not csr.others.numel():
        return nodes
    degrees = csr.degrees(nodes)
    # Float64: a float32 draw cannot reach every neighbor of a node with more than 2²⁴ of them.
    draws = torch.rand(nodes.numel(), dtype=torch.float64, generator=generator).to(nodes.device)
    chosen = csr.starts.index_select(0, nodes) + (draws * degrees).long()
    return torch.where(degrees > 0, csr.ends(chosen.clamp_(max=csr.others.numel() - 1)), nodes)


def draw_distinct(population: int, draws: int, generator: torch.Generator | None = None) -> Tensor:
    """``draws`` distinct numbers below ``population``, uniform over ordered choices, in time proportional to ``draws``.

    Example:
        >>> sorted(draw_distinct(3, 3).tolist())
        [0, 1, 2]
    """
    if 4 * draws >= population:
        return torch.randperm(population, generator=generator)[:draws]
    # The first `draws` new values of a sequence of independent draws are a uniform draw without replacement.
    sequence = torch.empty(0, dtype=torch.int64)
    while True:
        more = torch.randint(population, (draws - sequence.numel() + draws // 4 + 8,), generator=generator)
        sequence = torch.cat([sequence, more])
        ordered, order = sequence.sort(stable=True)
        first = torch.ones_like(ordered, dtype=torch.bool)
        first[1:] = ordered[1:] != ordered[:-1]
        sequence = sequence[order[first].sort().values]
        if sequence.numel() >= draws:
            return sequence[:draws]
