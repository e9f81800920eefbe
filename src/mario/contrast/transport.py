"""Contrast of node sets that need not be aligned: the earth mover's distance of RoSA and InfoNCE over it."""

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.arguments import check_count, check_positive
from mario.contrast.rows import check_rows, directions
from mario.errors import MarioError

# What a weight that is not positive becomes before weights are scaled to sum to one, as released.
_LEAST = 1e-8
# The most numbers that the cost matrices of one block of pairs hold: what Sinkhorn goes over ten times stays in cache.
_BLOCK = 2**18
# Rows of a symmetric product that are multiplied at once.
_ROWS = 512
_USUAL = 1e-12, 1e12  # largest entries of embeddings


@torch.no_grad()
def transport_plan(
    cost: Tensor, rows: Tensor, columns: Tensor, *, sharpness: float = 20.0, iterations: int = 5
) -> Tensor:
    r"""The plan that moves ``rows`` to ``columns`` at the least cost minus entropy (Cuturi, NeurIPS 2013), no gradient.

    argmin_Γ ⟨Γ, D⟩ − H(Γ)/λ by Sinkhorn's iterations, all problems at once. Each iteration scales rows first and
    columns last, so columns sum exactly to their weights and rows to theirs in the limit. A weight of 0 takes its row
    or column out. Where e^{−λD} would leave the range of the numbers, logarithms are iterated instead.

    Args:
        cost: D, [..., n, m].
        rows: weights [..., n] that sum to 1.
        columns: weights [..., m] that sum to 1.
        sharpness: λ; the plan tends to the exact one as it grows, and takes more iterations.
        iterations: of Sinkhorn.

    Example:
        >>> import torch
        >>> from mario.contrast import transport_plan
        >>> even = torch.tensor([0.5, 0.5])
        >>> transport_plan(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), even, even)
        tensor([[5.0000e-01, 1.0306e-09],
                [1.0306e-09, 5.0000e-01]])
    """
    check_positive("sharpness", sharpness)
    check_count("iterations", iterations)
    if not all(isinstance(part, Tensor) for part in (cost, rows, columns)):
        given = ", ".join(type(part).__name__ for part in (cost, rows, columns))
        raise MarioError(f"cost, rows and columns must be tensors, got {given}")
    if cost.shape != (*rows.shape, columns.size(-1)) or rows.shape[:-1] != columns.shape[:-1]:
        given = f"{tuple(cost.shape)}, {tuple(rows.shape)} and {tuple(columns.shape)}"
        raise MarioError(f"cost, rows and columns must be [..., n, m], [..., n] and [..., m], got {given}")
    if not cost.numel():
        return torch.zeros_like(cost)
    if bool((rows < 0).any()) or bool((columns < 0).any()):
        raise MarioError("rows and columns must hold weights of at least 0, got negative ones")
    exponent = cost * -sharpness
    # The factors of rows and of columns may each be as large as the smallest entry is small, and their product too.
    if float(exponent.abs().max()) < math.log(torch.finfo(cost.dtype).max) / 2:
        kernel = exponent.exp_()
        by_column = (columns > 0).to(cost.dtype)
        for _ in range(iterations):
            by_row = rows / _times(kernel, by_column)
            by_column = columns / _times(kernel.mT, by_row)
        return kernel.mul_(by_row.unsqueeze(-1)).mul_(by_column.unsqueeze(-2))
    log_rows, log_columns = rows.log(), columns.log()
    by_column = torch.zeros_like(columns).masked_fill_(columns == 0, -torch.inf)
    for _ in range(iterations):
        by_row = log_rows - (exponent + by_column.unsqueeze(-2)).logsumexp(-1)
        by_column = log_columns - (exponent + by_row.unsqueeze(-1)).logsumexp(-2)
    return exponent.add_(by_row.unsqueeze(-1)).add_(by_column.unsqueeze(-2)).exp_()


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    """Matrix times vector, [..., n]; for many small ones, quicker than a batched product or a sum of products."""
    total = matrix[..., 0] * vector[..., :1]
    for column in range(1, matrix.size(-1)):
        total.addcmul_(matrix[..., column], vector[..., column : column + 1])
    return total


def graph_emd(
    u: Tensor,
    u_sets: Tensor,
    v: Tensor,
    v_sets: Tensor,
    partners: Tensor,
    *,
    ratio: Tensor | None = None,
    sharpness: float = 20.0,
    iterations: int = 5,
) -> Tensor:
    r"""g-EMD of `RoSA <https://arxiv.org/abs/2204.13846>`_, [B, S]: what it costs to move a set of nodes to another.

    Moving node a of one set to node b of the other costs (1 − cos(u_a, v_b)), times ``ratio``. A node weighs
    max(u_a · v̄, 0), with v̄ the mean of the set it moves to, and the weights of a set sum to 1. The plan is
    :func:`transport_plan`'s and, like the weights, a constant for the gradient, as in the authors' code.

    Args:
        u: embeddings [N, d], any number of sets one after another.
        u_sets: rows of ``u`` in each set, [B, n] int64; −1 pads sets of fewer nodes.
        v: embeddings [M, d] of the nodes of other sets.
        v_sets: the same for ``v``, [C, m].
        partners: [B, S] int64, with which of ``v_sets`` each of ``u_sets`` is compared.
        ratio: [B, R, n, m], by which the costs to the first R of the partners are multiplied.
        sharpness: λ of the plan.
        iterations: of Sinkhorn.

    Example:
        >>> import torch
        >>> from mario.contrast import graph_emd
        >>> u = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> sets = torch.tensor([[0, 1], [2, -1]])
        >>> graph_emd(u, sets, u, sets, torch.tensor([[0, 1], [1, 0]])).round(decimals=4)  # 1 − cos 45°
        tensor([[0.0000, 0.2929],
                [0.0000, 0.2929]])
    """
    _check_both(u, u_sets, v, v_sets)
    if not isinstance(partners, Tensor):
        raise MarioError(f"partners must be int64 [{u_sets.size(0)}, S], got {type(partners).__name__}")
    if partners.dtype != torch.int64 or partners.dim() != 2 or partners.size(0) != u_sets.size(0):
        given = f"{partners.dtype} of shape {tuple(partners.shape)}"
        raise MarioError(f"partners must be int64 [{u_sets.size(0)}, S], one row for each of u_sets, got {given}")
    if partners.numel() and not 0 <= int(partners.min()) <= int(partners.max()) < v_sets.size(0):
        given = f"{int(partners.min())}..{int(partners.max())}"
        raise MarioError(f"partners must hold sets 0..{v_sets.size(0) - 1} of v_sets, got {given}")
    alike = u is v and u_sets is v_sets
    cosine = _Gram.apply(directions(u)) if alike else directions(u) @ directions(v).t()
    with torch.no_grad():
        # [N, C] and [M, B]: what every node would weigh if its set were to move to each of the others.
        left, right = _of_usual_size(u), _of_usual_size(v)
        there = left @ _means(right, v_sets).t()
        weights = there, there if alike else right @ _means(left, u_sets).t()
    moved: Tensor = _Moved.apply(cosine, weights, (u_sets, v_sets), partners, ratio, alike, sharpness, iterations)
    return moved


class _Gram(torch.autograd.Function):
    """z zᵀ on and above the diagonal; nothing reads what is below, and no gradient reaches it."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        ctx.save_for_backward(z)
        products = z.new_empty(len(z), len(z))
        for rows in range(0, len(z), _ROWS):
            torch.mm(z[rows : rows + _ROWS], z[rows:].t(), out=products[rows : rows + _ROWS, rows:])
        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (z,) = ctx.saved_tensors
        back = torch.zeros_like(z)
        for rows in range(0, len(z), _ROWS):
            part = grad[rows : rows + _ROWS, rows:]
            back[rows : rows + _ROWS].addmm_(part, z[rows:])
            back[rows:].addmm_(part.t(), z[rows : rows + _ROWS])
        return back


class _Moved(torch.autograd.Function):
    # With Γ constant, ∂/∂cos of Σ Γ·ratio·(1 − cos) is −Γ·ratio: all that the backward needs to keep.

    @staticmethod
    def forward(
        ctx: Any,
        cosine: Tensor,
        weights: tuple[Tensor, Tensor],
        sets: tuple[Tensor, Tensor],
        partners: Tensor,
        ratio: Tensor | None,
        alike: bool,
        sharpness: float,
        iterations: int,
    ) -> Tensor:
        moved, kept = cosine.new_empty(partners.shape), []
        for anchor, partner, a, b, place in _blocks(sets, partners, cosine.shape, alike):
            cost = 1 - cosine.view(-1).index_select(0, place.view(-1)).view(place.shape).permute(2, 3, 0, 1)
            factor = None if ratio is None else ratio[anchor, :, : a.size(0)]
            if factor is not None:
                cost[:, : factor.size(1)] *= factor
            plan = transport_plan(
                cost,
                _shares(weights[0][a.clamp(min=0), partner], a >= 0).permute(1, 2, 0),
                _shares(weights[1][b.clamp(min=0), anchor.unsqueeze(1)], b >= 0).permute(1, 2, 0),
                sharpness=sharpness,
                iterations=iterations,
            )
            moved[anchor] = cost.mul_(plan).sum((2, 3))
            if factor is not None:
                plan[:, : factor.size(1)] *= factor
            kept += [anchor, place, plan]
        ctx.save_for_backward(*kept)
        ctx.shape = cosine.shape
        return moved

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        back, kept = grad.new_zeros(ctx.shape), ctx.saved_tensors
        for anchor, place, plan in zip(kept[::3], kept[1::3], kept[2::3], strict=True):
            share = (plan * -grad[anchor, :, None, None]).permute(2, 3, 0, 1)
            back.view(-1).index_add_(0, place.view(-1), share.reshape(-1))
        return back, None, None, None, None, None, None, None


def _blocks(
    sets: tuple[Tensor, Tensor], partners: Tensor, shape: torch.Size, alike: bool
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]:
    """Blocks of anchors: their numbers, their partners, the nodes of both and the index of each cost in the cosines.

    Anchors of about the same size come together, to reduce padding. Pairs are innermost in memory, after the
    nodes of both sets: what follows then runs along them.
    """
    u_sets, v_sets = sets[0].t(), sets[1].t()
    narrow = torch.int32 if shape.numel() < 2**31 else torch.int64
    count = max(1, _BLOCK // max(1, partners.size(1) * u_sets.size(0) * v_sets.size(0)))
    for anchor in (u_sets >= 0).sum(0).argsort(stable=True).split(count):
        partner, a = partners[anchor], u_sets[:, anchor]
        a = a[: int((a >= 0).any(1).nonzero().max()) + 1].unsqueeze(2)
        b = v_sets[:, partner].contiguous()
        row, column = a.clamp(min=0).to(narrow).unsqueeze(1), b.clamp(min=0).to(narrow)
        if alike:  # cosines of a set of nodes with itself are there on and above the diagonal
            row, column = torch.minimum(row, column), torch.maximum(row, column)
        place = torch.add(column, row, alpha=shape[1])
        yield anchor, partner, a, b, place


def transport_nce(
    u: Tensor,
    u_sets: Tensor,
    v: Tensor,
    v_sets: Tensor,
    tau: float = 0.4,
    *,
    hops: Tensor | None = None,
    hop_scale: float = 2.0,
    group: int = 0,
    positive_in_denominator: bool = False,
    sharpness: float = 20.0,
    iterations: int = 5,
) -> Tensor:
    r"""InfoNCE between node sets, their similarity s = 2 − 2·g-EMD, as in the released code of RoSA (IJCAI 2022).

    ℓ(U_i) = −s⁺_i/τ + log Σ_{k≠i} (e^{s(U_i, U_k)/τ} + e^{s(U_i, V_k)/τ}); the loss is the mean over sets of
    (ℓ(U_i) + ℓ(V_i))/2. With ``hops``, costs within a positive pair are multiplied by σ(hops/θ) and s⁺ = 2·s: what the
    gradient sees is a factor from 1, for a node and itself, to 2, for nodes far apart.

    Args:
        u: embeddings [N, d] of the nodes of all sets in the first view.
        u_sets: rows of ``u`` in each set, [B, n] int64; −1 pads sets of fewer nodes.
        v: embeddings [M, d] in the second view. Set i of both views has the same root; their nodes may differ.
        v_sets: the same for ``v``, [B, m].
        tau: temperature.
        hops: [B, n, m], steps in the graph between nodes of set i in the two views.
        hop_scale: θ.
        group: about how many sets in a row are contrasted with one another only, the sum over k scaled up to all B − 1:
            right on average where the order is random, for work that grows with B and not with B². 0 is all of them.
        positive_in_denominator: add e^{s⁺/τ} to the sum, which makes it a bound on mutual information.
        sharpness: λ of the plans.
        iterations: of Sinkhorn.

    Example:
        >>> import torch
        >>> from mario.contrast import transport_nce
        >>> sets = torch.tensor([[0], [1]])
        >>> loss = transport_nce(torch.eye(2), sets, torch.eye(2), sets, tau=1.0)  # −2 + log(e⁰ + e⁰)
        >>> round(loss.item(), 4)
        -1.3069
    """
    check_positive("tau", tau)
    check_positive("hop_scale", hop_scale)
    _check_both(u, u_sets, v, v_sets)
    sets = u_sets.size(0)
    if sets < 2 or v_sets.size(0) != sets:
        raise MarioError(f"u_sets and v_sets must hold the same two or more sets, got {sets} and {v_sets.size(0)}")
    if group < 0 or group == 1:
        raise MarioError(f"group must be 0 or at least 2, got {group}")
    # One list of 2B sets: i and B + i are the two views of a root.
    z, both = torch.cat([u, v]), _stack(u_sets, torch.where(v_sets < 0, v_sets, v_sets + u.size(0)))
    ratio = None
    if hops is not None:
        padded = hops.new_zeros(sets, both.size(1), both.size(1))
        padded[:, : hops.size(1), : hops.size(2)] = hops
        ratio = torch.sigmoid(torch.cat([padded, padded.mT]).to(u.dtype) / hop_scale).unsqueeze(1)
    losses = []
    groups = max(1, min(math.ceil(sets / group), sets // 2)) if group else 1
    for roots in torch.arange(sets, device=u.device).tensor_split(groups):
        count, views = roots.numel(), torch.cat([roots, roots + sets])
        own = torch.arange(count, device=u.device)
        others = (own.unsqueeze(1) + torch.arange(1, count, device=u.device)) % count
        partners = torch.cat(
            [torch.cat([own + count, own]).unsqueeze(1), (others + count).repeat(2, 1), others.repeat(2, 1)], 1
        )
        nodes, members = _only(z, both[views])
        similarity = 2 - 2 * graph_emd(
            nodes,
            members,
            nodes,
            members,
            partners,
            ratio=None if ratio is None else ratio[views],
            sharpness=sharpness,
            iterations=iterations,
        )
        positive = similarity[:, 0] * ((1 if hops is None else 2) / tau)
        negatives = similarity[:, 1:] / tau + math.log((sets - 1) / (count - 1))
        terms = torch.cat([negatives, positive.unsqueeze(1)], 1) if positive_in_denominator else negatives
        losses.append(terms.logsumexp(1) - positive)
    return torch.cat(losses).mean()


def _only(z: Tensor, sets: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of ``z`` that ``sets`` hold, set by set, and the sets by their numbers among these."""
    inside = sets >= 0
    members = torch.full_like(sets, -1)
    members[inside] = torch.arange(int(inside.sum()), device=sets.device)
    return z.index_select(0, sets[inside]), members


def _stack(first: Tensor, second: Tensor) -> Tensor:
    """Two lists of sets as one, padded alike."""
    width = max(first.size(1), second.size(1))
    return torch.cat([F.pad(sets, (0, width - sets.size(1)), value=-1) for sets in (first, second)])


def _check_both(u: Tensor, u_sets: Tensor, v: Tensor, v_sets: Tensor) -> None:
    for name, z, sets in (("u", u, u_sets), ("v", v, v_sets)):
        check_rows(name, z)
        _check_sets(f"{name}_sets", sets, z.size(0))
    if u.size(1) != v.size(1) or u.dtype != v.dtype:
        given = f"{u.dtype} {tuple(u.shape)} and {v.dtype} {tuple(v.shape)}"
        raise MarioError(f"u and v must have the same number of columns and the same type, got {given}")


def _check_sets(name: str, sets: Tensor, rows: int) -> None:
    if not isinstance(sets, Tensor):
        raise MarioError(f"{name} must be int64 [sets, nodes], got {type(sets).__name__}")
    if sets.dtype != torch.int64 or sets.dim() != 2 or not sets.numel():
        raise MarioError(f"{name} must be int64 [sets, nodes], got {sets.dtype} of shape {tuple(sets.shape)}")
    if int(sets.min()) < -1 or int(sets.max()) >= rows:
        raise MarioError(f"{name} must hold rows 0..{rows - 1}, or -1, got {int(sets.min())}..{int(sets.max())}")
    if bool((sets < 0).all(1).any()):
        raise MarioError(f"{name} has a set of no nodes; each needs at least one")


def _of_usual_size(z: Tensor) -> Tensor:
    """``z``, divided by its largest entry where products of its entries might not fit. Weights are relative."""
    size = float(z.abs().max())
    return z if _USUAL[0] < size < _USUAL[1] or not 0 < size < math.inf else z / size


def _means(z: Tensor, sets: Tensor) -> Tensor:
    """The mean of every set, [B, d]."""
    inside = sets >= 0
    padded = F.embedding(sets.clamp(min=0), z) * inside.unsqueeze(2)
    return padded.sum(1) / inside.sum(1, keepdim=True)


def _shares(weights: Tensor, inside: Tensor) -> Tensor:
    """Weights that are positive and sum to 1 over the first dimension, and 0 where there is no node."""
    weights = torch.where(weights > 0, weights, _LEAST) * inside
    return weights / weights.sum(0)
