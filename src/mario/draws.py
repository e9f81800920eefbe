"""Random numbers of code that takes no generator."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from mario.errors import MarioError


def check_generator(generator: object) -> None:
    """Raise `MarioError` unless ``generator`` is one of torch, or ``None`` for torch's default."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise MarioError(
            f"generator must be a torch.Generator or None, got {generator!r}; "
            "torch.Generator().manual_seed(0) makes one from a seed"
        )


@contextmanager
def drawing_from(generator: torch.Generator | None, device: torch.device | None = None) -> Iterator[None]:
    """Seed torch's default generators from ``generator`` within the block, and restore them after it.

    With ``None`` nothing is seeded.

    Example:
        >>> before = torch.get_rng_state()
        >>> with drawing_from(torch.Generator().manual_seed(0)):
        ...     first = torch.rand(1)
        >>> with drawing_from(torch.Generator().manual_seed(0)):
        ...     bool(torch.rand(1) == first)
        True
        >>> torch.equal(torch.get_rng_state(), before)
        True
    """
    if generator is None:
        yield
        return
    seed = int(torch.randint(2**62, (), generator=generator))
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed all GPUs
        if devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
