"""Embeddings of a moderate width whose distances are those of the embeddings themselves."""

import torch
from torch import Tensor

from mario.graphs import Block, BlockMatrix

WIDEST, PROJECTED = 1024, 256
"""Blocks up to ``WIDEST`` columns are kept; wider ones are projected to ``PROJECTED``."""
_ROWS = 2**14


def compact(z: BlockMatrix) -> Tensor:
    """All blocks side by side as float32, wide ones by a random projection that keeps distances.

    The projection has entries of ±1/√256 that follow from the width alone (Achlioptas, Database-friendly random
    projections, 2003), so two graphs with the same features are projected alike.

    Example:
        >>> compact(BlockMatrix({"x": Block(torch.rand(4, 2000)), "graph": Block(torch.rand(4, 8))})).shape
        torch.Size([4, 264])
    """
    return torch.cat([_narrow(block) for block in z.values()], 1)


def width_of(widths: list[int]) -> int:
    """The number of columns that :func:`compact` makes of blocks of these widths."""
    return sum(width if width <= WIDEST else PROJECTED for width in widths)


def _narrow(block: Block) -> Tensor:
    if block.shape[1] <= WIDEST:
        return block.dense(torch.float32)
    generator = torch.Generator().manual_seed(block.shape[1])
    signs = torch.randint(0, 2, (block.shape[1], PROJECTED), generator=generator).float().mul_(2).sub_(1)
    return block.matmul(signs.div_(PROJECTED**0.5))
