"""From one vector per node to one vector per graph."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

from mario.encoders.input import check_input
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
    if not isinstance(kind, str) or kind not in _POOLS:
        raise MarioError(f"readout must be one of {', '.join(_POOLS)}, got '{kind}'")
    check_input("h", h, dense=True)
    if not h.numel():
        raise MarioError(f"h must not be empty, got shape {tuple(h.shape)}")
    if batch is not None:
        _check_batch(batch, h.size(0))
    return _POOLS[kind](h, batch)


def _check_batch(batch: object, rows: int) -> None:
    if not isinstance(batch, Tensor) or batch.dtype != torch.int64 or batch.shape != (rows,):
        given = f"{batch.dtype} of shape {tuple(batch.shape)}" if isinstance(batch, Tensor) else type(batch).__name__
        raise MarioError(f"batch must hold the graph (int64) of each of {rows} nodes, got {given}")
    low, high = (int(end) for end in batch.aminmax())
    if low < 0 or high >= rows:
        raise MarioError(f"batch must number the graphs from 0, at most one per node, got {low}..{high}")
