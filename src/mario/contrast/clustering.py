"""Online clustering: prototypes, balanced assignment, and swapped prediction between two views."""

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mario import ranks
from mario.arguments import check_count, check_positive
from mario.contrast.across_ranks import summed
from mario.contrast.rows import check_pair, check_rows, directions, exponential_fits, in_range, unit_rows
from mario.errors import MarioError


@torch.no_grad()
def sinkhorn(scores: Tensor, *, iterations: int = 3, temperature: float = 0.1) -> Tensor:
    r"""Balanced assignment of nodes to prototypes by Sinkhorn-Knopp, as in `SwAV <https://arxiv.org/abs/2006.09882>`_.

    Scales e^{scores/temperature} so that each of the B rows sums to 1, exactly, and each of the K columns to B/K, in
    the limit of many iterations. The result is B times the entropic transport plan between uniform marginals with
    cost −scores; it carries no gradient.

    Args:
        scores: similarity [B, K] of node and prototype.
        iterations: rounds of scaling columns, then rows; 3 in SwAV and MARIO.
        temperature: weight of the entropy; lower values give harder assignments.

    With several ranks, B counts the rows of all ranks; each passes its own rows and gets their assignment.

    Example:
        >>> import torch
        >>> from mario.contrast import sinkhorn
        >>> sinkhorn(torch.tensor([[1.0, 0.9], [1.0, 0.0]]), iterations=50).round(decimals=2)
        tensor([[0.0100, 0.9900],
                [0.9900, 0.0100]])
    """
    check_rows("scores", scores)
    check_positive("temperature", temperature)
    check_count("iterations", iterations)
    low, high = torch.aminmax(scores)
    bounds = ranks.stacked(torch.stack([high, -low]).double()).amax(0).tolist()
    spread = sum(bounds) / temperature
    if not spread < float("inf"):
        raise MarioError("scores must be finite, got NaN or infinity")
    logits: Tensor = (scores - bounds[0]) / temperature
    nodes = sum(ranks.row_counts(scores.size(0)))
    if spread < 30:
        # Nothing can underflow: e^{logits} is fixed and only its row and column factors change.
        kernel = logits.exp_()
        ((by_row, by_column),) = _even([kernel], nodes, iterations)
        return kernel.mul_(by_column).mul_(by_row.unsqueeze(1))
    for _ in range(iterations):
        logits -= ranks.stacked(logits.logsumexp(0)).logsumexp(0)
        logits -= logits.logsumexp(1, keepdim=True)
    return logits.softmax(1)  # what is left of the rounding of large logits


def _even(kernels: Sequence[Tensor], nodes: int, iterations: int) -> list[tuple[Tensor, Tensor]]:
    """Sinkhorn's row and column factors of each kernel; columns extend over the ``nodes`` rows of all ranks."""
    columns = kernels[0].new_empty(len(kernels), kernels[0].size(1))
    share = nodes / columns.size(1)
    factors = [(kernel.new_ones(kernel.size(0)), column) for kernel, column in zip(kernels, columns, strict=True)]
    for _ in range(iterations):
        for kernel, (by_row, by_column) in zip(kernels, factors, strict=True):
            torch.mv(kernel.t(), by_row, out=by_column)
        ranks.sum_(columns).reciprocal_().mul_(share)
        for kernel, (by_row, by_column) in zip(kernels, factors, strict=True):
            torch.mv(kernel, by_column, out=by_row).reciprocal_()
    return factors


def swapped_prediction(scores_u: Tensor, scores_v: Tensor, q_u: Tensor, q_v: Tensor, tau: float = 1.0) -> Tensor:
    r"""L_clu of MARIO (Eq. 18, from SwAV): each view's scores predict the other view's assignment; mean over nodes.

    ½(−Σ_k q_v log softmax(scores_u/τ) − Σ_k q_u log softmax(scores_v/τ)). The paper has τ = 1, its released code the τ
    of InfoNCE. With several ranks it is the mean over the nodes of all, with the gradient at the own ones.

    Example:
        >>> import torch
        >>> from mario.contrast import swapped_prediction
        >>> scores, q = torch.zeros(3, 2), torch.eye(2)[[0, 1, 0]]
        >>> round(swapped_prediction(scores, scores, q, q).item(), 4)  # log 2
        0.6931
    """
    check_rows("scores_u", scores_u)
    check_positive("tau", tau)
    for name, given in (("scores_v", scores_v), ("q_u", q_u), ("q_v", q_v)):
        check_rows(name, given)
        if given.shape != scores_u.shape:
            raise MarioError(
                f"{name} must have the shape of scores_u, {tuple(scores_u.shape)}, got {tuple(given.shape)}"
            )
    swapped = q_v * F.log_softmax(scores_u / tau, dim=1) + q_u * F.log_softmax(scores_v / tau, dim=1)
    return summed(swapped.sum() / (-2 * sum(ranks.row_counts(scores_u.size(0)))))


class Prototypes(nn.Module):
    r"""Learnable cluster centers C on the unit sphere, from `SwAV <https://arxiv.org/abs/2006.09882>`_.

    MARIO's Eq. 17 to 19: they are trained with `loss` and determine the pseudo-label of a node.

    Args:
        clusters: their number K.
        dim: length of an embedding.
        generator: source of the Xavier-uniform initialization; `None` is torch's default generator.
        gradient: `sphere` scores by the direction of a prototype and so has the gradient along the sphere. `raw` scores
            by the weight itself, which `normalize_` keeps at unit length outside autograd: its gradient also has the
            part along the prototype, which changes what Adam does with it (the released code of MARIO, and SwAV).

    Example:
        >>> import torch
        >>> from mario.contrast import Prototypes
        >>> prototypes = Prototypes(4, 8, generator=torch.Generator().manual_seed(0))
        >>> u, v = torch.ones(5, 8), torch.ones(5, 8)
        >>> prototypes.loss(u, v).backward()
        >>> prototypes(u).shape, prototypes.assign(u).shape
        (torch.Size([5, 4]), torch.Size([5]))
    """

    def __init__(
        self,
        clusters: int,
        dim: int,
        generator: torch.Generator | None = None,
        *,
        gradient: Literal["sphere", "raw"] = "sphere",
    ) -> None:
        super().__init__()
        check_count("clusters", clusters)
        check_count("dim", dim)
        if gradient not in ("sphere", "raw"):
            raise MarioError(f"gradient must be 'sphere' or 'raw', got '{gradient}'")
        self.gradient = gradient
        self.weight = nn.Parameter(torch.empty(clusters, dim))
        nn.init.xavier_uniform_(self.weight, generator=generator)
        self.normalize_()

    def forward(self, z: Tensor) -> Tensor:
        """Cosine [N, K] of every row with every prototype. With `gradient="raw"` prototypes must have unit length."""
        self._check(z)
        weight = self.weight if self.gradient == "raw" else directions(self.weight)
        return directions(z) @ weight.t()

    @torch.no_grad()
    def normalize_(self) -> None:
        """Scale every prototype to unit length, as SwAV does after each step."""
        self.weight.copy_(directions(self.weight))

    @torch.no_grad()
    def assign(self, z: Tensor) -> Tensor:
        """The nearest prototype [N] of every row: argmax Cᵀz; the length of z has no effect."""
        self._check(z)
        scores = in_range(z) @ directions(self.weight).t()
        if not bool(scores.isfinite().all()):  # argmax would choose one all the same
            raise MarioError("z must be finite, and so its products with the prototypes; got NaN or infinity")
        return scores.argmax(1)

    def loss(self, u: Tensor, v: Tensor, tau: float = 1.0, *, iterations: int = 3, temperature: float = 0.1) -> Tensor:
        """Swapped prediction between two views, with assignments by `sinkhorn`."""
        check_pair(u, v)
        scores_u, scores_v = self(u), self(v)
        q_u = sinkhorn(scores_u, iterations=iterations, temperature=temperature)
        q_v = sinkhorn(scores_v, iterations=iterations, temperature=temperature)
        return swapped_prediction(scores_u, scores_v, q_u, q_v, tau)

    @torch.no_grad()
    def descend(
        self,
        u: Tensor,
        v: Tensor,
        optimizer: torch.optim.Optimizer,
        steps: int,
        tau: float = 1.0,
        *,
        iterations: int = 3,
        temperature: float = 0.1,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """``steps`` steps of ``optimizer`` on `loss` with fixed embeddings; prototypes keep unit length.

        Returns the scores of u and of v after the last step, and the loss before it.

        With Z fixed the gradient has a closed form, (softmax(s/τ) − q)ᵀ ẑ / 2Bτ, minus its component along each
        prototype unless `gradient` is `raw`: two matrix products per step and no autograd graph. Ranks sum it, so that
        all take the same steps.
        """
        check_pair(u, v)
        check_positive("tau", tau)
        check_positive("temperature", temperature)
        check_count("steps", steps)
        self._check(u)
        rows = u.size(0)
        nodes = sum(ranks.row_counts(rows))
        z = u.new_empty(2 * rows, u.size(1))
        unit_rows(u, out=z[:rows])
        unit_rows(v, out=z[rows:])
        # Stored by prototype, which is the faster layout for both products.
        scores = z.new_empty(self.weight.size(0), 2 * rows).t()
        kernel = torch.empty_like(scores)
        # Cosines are within ±1, so that nothing overflows or underflows unless a temperature is very low.
        direct = exponential_fits(1 / tau, z.dtype)
        bounded = 2 / temperature < 30
        message = z.new_zeros(self.weight.numel() + 1)  # summed over ranks: the gradient, and the loss of the last step
        gradient = message[1:].view_as(self.weight)
        for step in range(steps):
            torch.mm(z, self.weight.t(), out=scores)
            if bounded:
                torch.mul(scores, 1 / temperature, out=kernel).exp_()
                (row_u, column_u), (row_v, column_v) = _even(kernel.split(rows), nodes, iterations)
                kernel[:rows].mul_(column_u)
                kernel[rows:].mul_(column_v)
            else:
                for part in (slice(rows), slice(rows, None)):
                    kernel[part] = sinkhorn(scores[part], iterations=iterations, temperature=temperature)
                row_u = row_v = kernel.new_ones(rows)
            if step == steps - 1:
                # Rows of q sum to 1, so that the loss is the mean of log Σ_k e^{s_k/τ} minus Σ_k q_k s_k/τ.
                met = (scores[:rows] * kernel[rows:]).sum(1) @ row_v + (scores[rows:] * kernel[:rows]).sum(1) @ row_u
            if tau != 1:
                scores.div_(tau)
            if direct:
                sums = scores.exp_().sum(1, keepdim=True)
                scores.div_(sums)
                log_sums = sums.log_()
            else:
                log_sums = scores.logsumexp(1)
                torch.softmax(scores, 1, out=scores)
            if step == steps - 1:
                message[0] = (log_sums.sum() - met / tau) / (2 * nodes)
            # Each view predicts the assignment of the other.
            scores[:rows].addcmul_(kernel[rows:], row_v.unsqueeze(1), value=-1)
            scores[rows:].addcmul_(kernel[:rows], row_u.unsqueeze(1), value=-1)
            torch.mm(scores.t(), z, out=gradient)
            ranks.sum_(message)
            gradient.div_(2 * nodes * tau)
            if step == 0 and not bool(gradient.isfinite().all()):
                raise MarioError("u and v must be finite, got NaN or infinity")
            if self.gradient == "sphere":
                along = torch.linalg.vecdot(gradient, self.weight)
                gradient.addcmul_(self.weight, along.unsqueeze(1), value=-1)
            self.weight.grad = gradient
            optimizer.step()
            self.normalize_()
        self.weight.grad = None
        # By node now, in the same memory: faster for operations on rows.
        scores_u, scores_v = torch.mm(z, self.weight.t(), out=scores.t().view(2 * rows, -1)).split(rows)
        return scores_u, scores_v, message[0]

    def _check(self, z: Tensor) -> None:
        check_rows("z", z)
        if z.size(1) != self.weight.size(1):
            raise MarioError(f"z must have {self.weight.size(1)} columns, like the prototypes, got {z.size(1)}")

    def extra_repr(self) -> str:
        return f"clusters={self.weight.size(0)}, dim={self.weight.size(1)}"
