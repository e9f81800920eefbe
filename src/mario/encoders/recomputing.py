"""A pass through networks that keeps its results only: what lies between is made again when gradients are asked for."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mario.encoders.norm import BatchNorm

T = TypeVar("T")


def recomputed(
    make: Callable[[torch.Generator | None], T], networks: nn.Module, generator: torch.Generator | None = None
) -> T:
    """``make(generator)``, without keeping what its backward needs: that makes it a second time.

    The second time draws the same numbers and leaves the running statistics of batch norm in ``networks`` as they are,
    so that the gradients and all state are those of one pass. Over ranks it takes the statistics of the first pass and
    sends nothing: a rank with a smaller batch may do without it.

    Example:
        >>> layer, x = nn.Linear(2, 1), torch.ones(3, 2)
        >>> recomputed(lambda generator: layer(x), layer).sum().backward()
        >>> layer.weight.grad
        tensor([[3., 3.]])
    """
    state = None if generator is None else generator.get_state()
    norms = [module for module in networks.modules() if isinstance(module, BatchNorm)]
    told: list[list[tuple[Tensor, Tensor, int]]] = [[] for _ in norms]
    passes = 0

    def run() -> T:
        nonlocal passes
        passes += 1
        if passes == 1:
            with _told(norms, told):
                return make(generator)
        again = None if state is None else torch.Generator()
        if again is not None and state is not None:
            again.set_state(state)
        with statistics_at_rest(networks), _told(norms, [list(of_one) for of_one in told], recalls=True):
            return make(again)

    return checkpoint(run, use_reentrant=False, preserve_rng_state=False)


@contextmanager
def _told(
    norms: Sequence[BatchNorm], lists: Sequence[list[tuple[Tensor, Tensor, int]]], *, recalls: bool = False
) -> Iterator[None]:
    """Statistics over ranks are noted in ``lists`` meanwhile, or taken from there."""
    for norm, of_one in zip(norms, lists, strict=True):
        norm.told, norm.recalls = of_one, recalls
    try:
        yield
    finally:
        for norm in norms:
            norm.told, norm.recalls = None, False


@contextmanager
def statistics_at_rest(networks: nn.Module) -> Iterator[None]:
    """Whatever is passed through batch norm meanwhile is not remembered by it."""
    norms = [module for module in networks.modules() if isinstance(module, nn.BatchNorm1d)]
    kept = [dict(norm.named_buffers(recurse=False)) for norm in norms]
    for norm, buffers in zip(norms, kept, strict=True):
        for name, buffer in buffers.items():
            setattr(norm, name, buffer.clone())
    try:
        yield
    finally:
        for norm, buffers in zip(norms, kept, strict=True):
            for name, buffer in buffers.items():
                setattr(norm, name, buffer)


class NotedStatistics:
    """What a pass leaves in the running statistics of batch norm, to be taken back and left again without the pass.

    Example:
        >>> norm, x = BatchNorm(1), torch.tensor([[0.0], [2.0]])
        >>> with NotedStatistics(norm) as noted:
        ...     _ = norm(x)
        >>> noted.again()  # as if x had passed twice
        >>> norm.running_mean  # 0.1 + 0.9 · 0.1
        tensor([0.1900])
    """

    def __init__(self, networks: nn.Module) -> None:
        norms = [module for module in networks.modules() if isinstance(module, nn.BatchNorm1d)]
        self.norms = [norm for norm in norms if norm.running_mean is not None and norm.momentum is not None]

    def __enter__(self) -> "NotedStatistics":
        self.before = [[buffer.clone() for buffer in norm.buffers()] for norm in self.norms]
        return self

    def __exit__(self, *_: object) -> None:
        # A pass makes (1 − m)·r + m·s of a statistic r, so n of them make (1 − m)ⁿ·r and what r has no part in.
        self.left: list[tuple[float, list[Tensor]]] = []
        for norm, before in zip(self.norms, self.before, strict=True):
            *statistics, passes = norm.buffers()
            assert norm.momentum is not None
            kept = (1 - norm.momentum) ** int(passes - before[-1])
            added = [now - kept * then for now, then in zip(statistics, before, strict=False)]
            self.left.append((kept, [*added, passes - before[-1]]))

    # Through .data: autograd keeps the running statistics of a pass, though its backward in training reads none.

    def undo(self) -> None:
        """Take back what the pass left, and whatever came after it."""
        for norm, before in zip(self.norms, self.before, strict=True):
            for buffer, then in zip(norm.buffers(), before, strict=True):
                buffer.data.copy_(then)

    def again(self) -> None:
        """Leave it once more."""
        for norm, (kept, added) in zip(self.norms, self.left, strict=True):
            *statistics, passes = norm.buffers()
            for buffer, more in zip(statistics, added, strict=False):
                buffer.data.mul_(kept).add_(more)
            passes.data.add_(added[-1])
