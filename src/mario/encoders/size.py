"""Whether a network can be built here, decided before any of it is."""

from collections.abc import Sequence
from itertools import pairwise

import torch

from mario.errors import MarioError
from mario.graphs.paging import machine_memory

MOST_LAYERS = 1000
"""Deeper networks take minutes to build and overflow the stack of torch's C++ code."""
_BYTES = 16  # of a float32 weight, its gradient and Adam's two moments


def count_weights(widths: Sequence[int]) -> int:
    """Entries of the weight matrices between layers of these ``widths``.

    Example:
        >>> count_weights([4, 16, 16])
        320
    """
    return sum(before * after for before, after in pairwise(widths))


def check_size(what: str, widths: Sequence[int]) -> None:
    """Raise `MarioError` with an estimate if ``what``, with layers of these ``widths``, is larger than memory.

    On torch's meta device a network takes no memory.

    Example:
        >>> check_size("the encoder", [4, 10**8, 10**8])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        mario.errors.MarioError: the encoder of layers 4, 100000000, 100000000 wide needs about 160,000,006 GB ...
    """
    needed, there = _BYTES * count_weights(widths), machine_memory()
    if needed > there and torch.get_default_device().type != "meta":
        shown = ", ".join(map(str, widths[:3])) + (", ..." if len(widths) > 3 else "")
        raise MarioError(
            f"{what} of layers {shown} wide needs about {needed / 1e9:,.0f} GB for weights, gradients and the state of "
            f"the optimizer, and this machine has {there / 1e9:,.0f} GB: choose smaller hidden_channels or num_layers"
        )
