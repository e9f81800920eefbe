"""From one vector per node to one vector per graph."""

from collections.abc import Callable

from torch import Tensor
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

from mario.errors import MarioError

_POOLS: dict[str, Callable[..., Tensor]] = {"mean": global_mean_pool, "sum": global_add_pool, "max": global_max_pool}


def readout(h: Tensor, batch: Tensor | None = None, kind: str = "mean") -> Tensor:
    """One row per graph: the mean, sum or maximum over its nodes.

    Args:
        h: ``[nodes, width]``.
        batch: The graph of each node, as in a PyG ``Batch``; ``None`` means one graph.
        kind: ``mean``, ``sum`` or ``max``.

    Example:
        >>> import torch
        >>> readout(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1]), "sum")
        tensor([[4.],
                [5.]])
    """
    if kind not in _POOLS:
        raise MarioError(f"readout must be one of {', '.join(_POOLS)}, got '{kind}'")
    return _POOLS[kind](h, batch)
