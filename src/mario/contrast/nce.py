"""InfoNCE between two views, exact or over a sample of anchors, with memory linear in the number of nodes."""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.contrast.rows import check_pair, check_positive
from mario.contrast.tiles import Tiles, ranges, raw_gradients, side_of_tiles, units
from mario.errors import MarioError


def info_nce(
    u: Tensor,
    v: Tensor,
    tau: float = 0.5,
    *,
    anchors: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""InfoNCE as in `"Deep Graph Contrastive Representation Learning" <https://arxiv.org/abs/2006.04131>`_ (GRACE).

    With s(a, b) = cos(a, b)/τ, ℓ(u_i) = −log( e^{s(u_i, v_i)} / (Σ_j e^{s(u_i, v_j)} + Σ_{j≠i} e^{s(u_i, u_j)}) ) and
    the loss is the mean over nodes of (ℓ(u_i) + ℓ(v_i))/2. A loss to minimize: log N − loss is a lower bound on
    I(U; V). It is exact, first-order differentiable, and holds no N × N tensor at any moment. Embeddings in bfloat16
    are multiplied in it and their gradient is bfloat16; sums, logarithms and the loss are float32.

    Args:
        u: embeddings [N, d] of the nodes in the first view; rows are scaled to unit length here.
        v: embeddings of the same nodes in the second view.
        tau: temperature.
        anchors: take the mean over this many nodes i, drawn anew at each call, each against all columns j. Loss and
            gradient have those over all nodes as expectation; the cost falls from N² to anchors · N. `None`, or N and
            more: all nodes.
        generator: source of the anchors; `None` is torch's default generator.

    Example:
        >>> import torch
        >>> from mario.contrast import info_nce
        >>> u = torch.eye(2, requires_grad=True)
        >>> loss = info_nce(u, torch.eye(2), tau=1.0)  # −log( e / (e + 1 + 1) )
        >>> loss.backward()
        >>> round(loss.item(), 4)
        0.5514
    """
    check_pair(u, v)
    check_positive("tau", tau)
    if anchors is not None and (not isinstance(anchors, int) or anchors < 1):
        raise MarioError(f"anchors must be a whole number of nodes above 0, or None for all, got {anchors!r}")
    order = None
    if anchors is not None and anchors < u.size(0):
        order = torch.randperm(u.size(0), generator=generator).to(u.device)
    return _InfoNCE.apply(u, v, 1.0 / tau, _parts(u.size(0), side_of_tiles(u), order, anchors))


@dataclass(frozen=True)
class _Parts:
    """The nodes of the rows z, part by part: anchors in the first view, in the second, then the rest of both."""

    nodes: list[slice | Tensor]
    anchors: int  # how many parts hold anchors

    def views(self, u: Tensor, v: Tensor) -> list[Tensor]:
        """The view that each part is from."""
        first, rest = self.anchors // 2, (len(self.nodes) - self.anchors) // 2
        return [*[u] * first, *[v] * first, *[u] * rest, *[v] * rest]


def _parts(count: int, side: int, order: Tensor | None, anchors: int | None) -> _Parts:
    chosen = count if order is None or anchors is None else anchors
    first, rest = ranges(0, chosen, side), ranges(chosen, count, side)
    all_parts = [*first, *first, *rest, *rest]
    return _Parts([part if order is None else order[part] for part in all_parts], 2 * len(first))


class _InfoNCE(torch.autograd.Function):
    # Both directions are one problem: over the 2N rows z = [û; v̂] with log D_i = log Σ_{k≠i} e^{z_i·z_k/τ}, the loss is
    # the mean of log D_i − z_i·z_{partner(i)}/τ over the rows i of anchors.

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, inverse_tau: float, parts: _Parts) -> Tensor:
        z, factors = units(view[nodes] for view, nodes in zip(parts.views(u, v), parts.nodes, strict=True))
        tiles = Tiles(z, parts.anchors, inverse_tau)
        kept: list[Tensor] = []
        log_d = tiles.log_sums(kept, tiles.budget if any(ctx.needs_input_grad) else 0)
        half, rows = parts.anchors // 2, sum(part.numel() for part in log_d)
        pairs = zip(z[:half], z[half : parts.anchors], strict=True)
        positives = torch.stack([(p.to(tiles.wide) * q).sum() for p, q in pairs]).sum() * (2 * inverse_tau)
        ctx.save_for_backward(*z, *factors, *log_d, *kept)
        ctx.parts, ctx.inverse_tau, ctx.rows = parts, inverse_tau, rows
        return (torch.cat(log_d).sum() - positives) / rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved, parts = iter(ctx.saved_tensors), ctx.parts
        z, factors = list(islice(saved, len(parts.nodes))), list(islice(saved, len(parts.nodes)))
        log_d = list(islice(saved, parts.anchors))
        tiles = Tiles(z, parts.anchors, ctx.inverse_tau)
        out = tiles.pull(log_d, list(saved))
        times = grad.to(tiles.wide) * (ctx.inverse_tau / ctx.rows)
        shape = (sum(part.size(1) for part in z) // 2, z[0].size(0))
        grads = z[0].new_empty(shape), z[0].new_empty(shape)
        raw = raw_gradients(out, z, factors, times)
        for view, nodes, part in zip(parts.views(*grads), parts.nodes, raw, strict=True):
            view[nodes] = part
        return *grads, None, None
