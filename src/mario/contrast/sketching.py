"""Matrix sketching: fewer rows with the same covariance, in memory linear in the number of rows."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.arguments import check_count, check_positive
from mario.contrast.rows import check_rows
from mario.draws import check_generator
from mario.errors import MarioError

# Entries of P in memory at once, at most.
_TILE = 2**22


def sketch(x: Tensor, rows: int, *, density: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    r"""Covariance-preserving random projection as in `COSTA <https://arxiv.org/abs/2206.04726>`_ (Lemma 4.6).

    X̃ = P X/√k with P [k, n] of independent entries of mean 0 and variance 1, so that E[X̃ᵀX̃] = XᵀX. They are normal, or,
    for a ``density`` below 1, ±1/√density with that probability and else 0 (its Appendix B).

    P has k·n numbers, quadratic in n if k is a fraction of n. It is drawn in tiles of rows, and, if there is more than
    one, drawn again in the backward pass.

    Args:
        x: matrix [n, d]. To use the same P for several matrices, concatenate their columns.
        rows: k.
        density: fraction of nonzero entries in P.
        generator: source of P; one seed is drawn from it.

    Example:
        >>> import torch
        >>> from mario.contrast import sketch
        >>> x = torch.ones(1000, 2)
        >>> small = sketch(x, 500, generator=torch.Generator().manual_seed(0))
        >>> small.shape, bool(((small.T @ small - x.T @ x).abs() < 200).all())
        (torch.Size([500, 2]), True)
    """
    check_rows("x", x)
    check_count("rows", rows)
    check_generator(generator)
    if check_positive("density", density) > 1:
        raise MarioError(f"density must lie in (0, 1], got {density}")
    seed = int(torch.randint(2**63 - 1, (), generator=generator))
    sketched: Tensor = _Sketch.apply(x, rows, density, seed)
    return sketched


class _Sketch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: int, density: float, seed: int) -> Tensor:
        ctx.facts, ctx.nodes, ctx.kept = (rows, density, seed), x.size(0), None
        out = x.new_empty(rows, x.size(1))
        for start, tile in _tiles(x, x.size(0), *ctx.facts):
            out[start : start + tile.size(0)] = tile @ x
            if tile.size(0) == rows:
                ctx.kept = tile
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        tiles = [(0, ctx.kept)] if ctx.kept is not None else _tiles(grad, ctx.nodes, *ctx.facts)
        out = grad.new_zeros(ctx.nodes, grad.size(1))
        for start, tile in tiles:
            out += tile.t() @ grad[start : start + tile.size(0)]
        return out, None, None, None


def _tiles(like: Tensor, nodes: int, rows: int, density: float, seed: int) -> Iterator[tuple[int, Tensor]]:
    """(first row, rows of P/√k), a function of ``seed``, with the dtype and device of ``like``."""
    generator = torch.Generator().manual_seed(seed)
    height = max(1, int(_TILE / (nodes * density)))
    for start in range(0, rows, height):
        count = min(height, rows - start)
        if density == 1:
            tile = torch.randn(count, nodes, generator=generator, dtype=like.dtype).div_(math.sqrt(rows))
        else:
            tile = _signs(count, nodes, density, generator).to(like.dtype) / math.sqrt(rows * density)
        yield start, tile.to(like.device)


def _signs(rows: int, columns: int, density: float, generator: torch.Generator) -> Tensor:
    """±1 with probability ``density`` at each entry, independently; the cost is that of the nonzero entries.

    The gap between nonzero entries, in row-major order, is geometric.
    """
    places = rows * columns
    enough = int(places * density + 8 * math.sqrt(places * density) + 32)  # eight standard deviations
    gaps = torch.empty(enough, dtype=torch.float64).geometric_(density, generator=generator)
    taken = gaps.cumsum(0).long() - 1
    taken = taken[taken < places]
    values = torch.randint(2, taken.shape, generator=generator) * 2 - 1
    where = torch.stack([taken // columns, taken % columns])
    return torch.sparse_coo_tensor(where, values, (rows, columns), check_invariants=False, is_coalesced=True)
