"""Pairs of nodes that no edge joins."""

import torch
from torch import Tensor

from mario.errors import MarioError


def sample_non_edges(
    edge_index: Tensor, num_nodes: int, count: int, generator: torch.Generator | None = None
) -> Tensor:
    """``count`` ordered pairs of distinct nodes without an edge from the first to the second, ``[2, count]``.

    Each is drawn uniformly from all such pairs, with replacement, so that a mean over them is an unbiased estimate of
    the mean over all. Nothing is rejected: rank r among the pairs that are left is turned into a pair by one binary
    search in the sorted edges. A graph in which all pairs are joined gives none.

    Args:
        edge_index: ``[2, E]``; repeated edges and self-loops do no harm.
        num_nodes: Number of nodes.
        count: How many to draw.
        generator: Draws on the CPU; ``None`` is torch's default.

    Example:
        >>> sample_non_edges(torch.tensor([[0, 0, 1, 2, 2], [1, 2, 0, 0, 1]]), 3, 2)  # all but one pair are joined
        tensor([[1, 1],
                [2, 2]])
    """
    if count < 0:
        raise MarioError(f"count must be at least 0, got {count}")
    own = torch.arange(num_nodes, device=edge_index.device) * (num_nodes + 1)
    taken = torch.cat([edge_index[0] * num_nodes + edge_index[1], own]).unique()
    left = num_nodes * num_nodes - taken.numel()
    if left == 0:
        return edge_index.new_empty(2, 0)
    rank = torch.randint(left, (count,), generator=generator).to(edge_index.device)
    # Before taken[k] stand taken[k] − k pairs that are left: the taken ones for which that is ≤ r precede rank r.
    before = taken - torch.arange(taken.numel(), device=taken.device)
    code = rank + torch.searchsorted(before, rank, right=True)
    return torch.stack([code // num_nodes, code % num_nodes])
