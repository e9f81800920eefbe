"""A pass that stores only its results and recomputes everything else in the backward pass."""

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
    """``make(generator)`` without storing intermediate results; the backward pass calls ``make`` a second time.

    The second call draws the same numbers and leaves the running statistics of batch norm in ``networks`` unchanged, so
    that gradients and state equal those of one pass. With several ranks it reuses the statistics of the first pass and
    communicates nothing, so that a rank with a smaller batch need not recompute.

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

    out: T = checkpoint(run, use_reentrant=False, preserve_rng_state=False)
    return out


@contextmanager
def _told(
    norms: Sequence[BatchNorm], lists: Sequence[list[tuple[Tensor, Tensor, int]]], *, recalls: bool = False
) -> Iterator[None]:
    """Record the statistics over ranks in ``lists`` within this context, or replay them from there."""
    for norm, of_one in zip(norms, lists, strict=True):
        norm.told, norm.recalls = of_one, recalls
    try:
        yield
    finally:
        for norm in norms:
            norm.told, norm.recalls = None, False


@contextmanager
def statistics_at_rest(networks: nn.Module) -> Iterator[None]:
    """Within this context, passes do not change the running statistics of batch norm."""
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
