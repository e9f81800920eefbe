"""Pairs of nodes without an edge."""

import torch
from torch import Tensor

from mario.errors import MarioError


def sample_non_edges(
    edge_index: Tensor, num_nodes: int, count: int, generator: torch.Generator | None = None
) -> Tensor:
    """``count`` ordered pairs of distinct nodes without an edge from the first to the second, ``[2, count]``.

    Each is drawn uniformly from all such pairs, with replacement, so that a mean over them is an unbiased estimate of
    the mean over all. Nothing is rejected: a binary search in the sorted edges turns a rank among the pairs without an
    edge into a pair. A complete graph gives no pairs.

    Args:
        edge_index: ``[2, E]``; may contain repeated edges and self-loops.
        num_nodes: Number of nodes.
        count: Number of pairs.
        generator: Draws on the CPU; ``None`` is torch's default.

    Example:
        >>> sample_non_edges(torch.tensor([[0, 0, 1, 2, 2], [1, 2, 0, 0, 1]]), 3, 2)  # only (1, 2) has no edge
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
    # taken[k] − k free pairs precede taken[k], so those taken pairs with taken[k] − k ≤ r precede the pair of rank r.
    before = taken - torch.arange(taken.numel(), device=taken.device)
    code = rank + torch.searchsorted(before, rank, right=True)
    return torch.stack([code // num_nodes, code % num_nodes])
