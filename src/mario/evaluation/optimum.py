"""Logistic regression at its optimum, by a second-order method."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from mario.arguments import check_positive
from mario.errors import MarioError

TOLERANCE = 1e-10
"""Largest norm of the gradient, relative to the root mean square norm of a row."""
STEPS = 200
WHITENED = 1000
"""Up to this many features or rows, the spectrum of the embedding is computed for preconditioning."""
LEADING = 300
"""Number of weights of the leading axes, over all classes, that are preconditioned with the Hessian itself."""
SAMPLED = 8192
"""Number of rows from which the Hessian of the leading axes is estimated; always the same draw."""
BYTES = 2**28
"""Up to this size the embedding is kept in double precision; above, blocks of rows are converted in each pass."""


@torch.no_grad()
def logistic_optimum(
    z: Tensor, y: Tensor, classes: int, *, l2: float, start: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Weights ``[classes, d]`` and biases ``[classes]``, in double precision, at the minimum of the penalized loss.

    The loss is the mean cross-entropy of the rows plus l2/2 ‖W‖²; biases are free. In scikit-learn's terms C is
    1 / (l2 n), or 2 / (l2 n) for two classes, where it only keeps their difference. The minimum is unique up to a
    constant in the biases, which is chosen to make their mean zero. A class without rows has a bias of minus infinity.

    The method is Newton's with conjugate gradients (Nocedal and Wright, Numerical Optimization, 7.1), each step solved
    to an accuracy relative to the gradient, with backtracking. Conjugate gradients are preconditioned in the principal
    axes of z: with the Hessian on the leading axes, and on the others with what it would be if all rows were equally
    uncertain.

    Args:
        z: Training rows ``[n, d]``.
        y: Labels ``[n]`` of two classes or more.
        classes: Number of classes.
        l2: Weight of the penalty, above zero: without it, classes that a plane separates have no optimum.
        start: Initial weights and biases, such as those of an earlier checkpoint; zero by default. They change the
            time it takes, not the result.

    Example:
        >>> z = torch.tensor([[-1.0], [1.0]])
        >>> weight, bias = logistic_optimum(z, torch.tensor([0, 1]), 2, l2=0.1)
        >>> p = (z.double() @ weight.T + bias).softmax(1)
        >>> torch.allclose(0.1 * weight[1], (1 - p[1, 1]).reshape(1))  # the gradient is zero
        True
    """
    for name, given, right in (
        ("z", z, isinstance(z, Tensor) and z.dim() == 2 and z.is_floating_point() and z.layout == torch.strided),
        ("y", y, isinstance(y, Tensor) and y.dim() == 1 and y.dtype == torch.int64),
    ):
        if not right:
            raise MarioError(f"z must be a matrix of real numbers and y one int64 per row; {name} is {type(given)}")
    if len(z) != len(y) or not len(y) or not bool(torch.isfinite(z.sum())):
        raise MarioError(f"z must be finite and have a label for each row, got {len(z)} rows and {len(y)} labels")
    if int(y.min()) < 0 or int(y.max()) >= classes:
        raise MarioError(f"labels must lie in 0 to {classes - 1}, got {int(y.min())} to {int(y.max())}")
    found, y = y.unique(return_inverse=True)
    if len(found) < 2:
        raise MarioError(f"logistic regression needs training nodes of two classes, all are of class {int(found[0])}")
    check_positive("l2", l2)
    rows = _Rows(z)
    x = rows.center.new_zeros(len(found), len(rows.spread) + 1)
    if start is not None:
        if start[0].shape != (classes, z.size(1)) or start[1].shape != (classes,) or not start[0].isfinite().all():
            raise MarioError(f"start must be finite weights [{classes}, {z.size(1)}] and biases [{classes}]")
        weight, bias = (part[found].double() for part in start)
        x[:, :-1] = weight if rows.basis is None else weight @ rows.basis
        x[:, -1] = torch.where(bias.isfinite(), bias + weight @ rows.center, 0.0)
    x = _newton(_Loss(rows, y, l2), x)
    weight = x[:, :-1] if rows.basis is None else x[:, :-1] @ rows.basis.T
    bias = x[:, -1] - weight @ rows.center
    weights = weight.new_zeros(classes, z.size(1))
    biases = bias.new_full((classes,), -torch.inf)
    weights[found], biases[found] = weight, bias - bias.mean()
    return weights, biases


class _Rows:
    """The rows of an embedding in double precision: centered, and in their principal axes if those are affordable.

    Neither moves the optimum: biases are free, and the penalty is the same in all axes. With fewer rows than features
    there are as many axes as rows; the optimum is in their span, as the penalty shrinks everything else.
    """

    def __init__(self, z: Tensor) -> None:
        n, d = z.shape
        self._blocks: tuple[Tensor, ...] = z.split(max(1, BYTES // (64 * d)))
        self.center = torch.stack([block.sum(0, dtype=torch.float64) for block in self._blocks]).sum(0) / n
        self._finished = False
        self.basis: Tensor | None = None
        if 8 * n * d <= BYTES:
            self._finish(list(self._rows()))
        if min(n, d) > WHITENED:
            self.spread = torch.stack([block.square().sum(0) for block in self._rows()]).sum(0) / n
            return
        span = None
        if n < d:
            span = torch.linalg.qr(torch.cat(list(self._rows())).T).Q
            self._finish([block @ span for block in self._rows()])
        moment = self.center.new_zeros(min(n, d), min(n, d))
        for block in self._rows():
            moment.addmm_(block.T, block)
        self.spread, axes = torch.linalg.eigh(moment / n)
        self.spread.clamp_(min=0)
        if self._finished:
            self._finish([block @ axes for block in self._rows()])
        self.basis = axes if span is None else span @ axes
        # Enough rows to know the Hessian of the leading axes by, as far as a preconditioner has to.
        self.sampled = torch.randperm(n, generator=torch.Generator().manual_seed(0))[:SAMPLED].sort().values
        self.sample = (self._blocks[0] if self._finished else z)[self.sampled.to(z.device)]
        if not self._finished:
            self.sample = (self.sample.double() - self.center) @ axes
        self.sample = self.sample.T.contiguous()

    def _finish(self, blocks: list[Tensor]) -> None:
        self._blocks, self._finished = (torch.cat(blocks),), True

    def _rows(self) -> Iterator[Tensor]:
        """Blocks of rows, finished or only centered; the other steps are applied to the smaller factor of a product."""
        for block in self._blocks:
            yield block if self._finished else block.double() - self.center

    def logits(self, x: Tensor) -> Tensor:
        """Logits of all rows, ``[classes, n]``; classes first, so that a softmax is vectorized over adjacent rows."""
        weight, bias = x[:, :-1], x[:, -1:]
        if self.basis is not None and not self._finished:
            weight = weight @ self.basis.T
        parts = [torch.addmm(bias, weight, block.T) for block in self._rows()]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def back(self, errors: Tensor) -> Tensor:
        """The sum over rows of ``errors`` ``[classes, n]`` in the logits, in terms of x."""
        parts = errors.split([len(block) for block in self._blocks], 1)
        weight = errors.new_zeros(len(errors), self._blocks[0].size(1))
        for part, block in zip(parts, self._rows(), strict=True):
            weight.addmm_(part, block)
        if self.basis is not None and not self._finished:
            weight = weight @ self.basis
        return torch.cat([weight, errors.sum(1, keepdim=True)], 1)


class _Loss:
    """The penalized mean cross-entropy of x ``[classes, axes + 1]``: weights, and biases in the last column."""

    def __init__(self, rows: _Rows, y: Tensor, l2: float) -> None:
        self.rows, self.y, self.n = rows, y, len(y)
        self.spread = torch.cat([rows.spread, rows.spread.new_ones(1)])
        self.l2 = torch.full_like(self.spread, l2)
        self.l2[-1] = 0.0

    def value(self, logits: Tensor, x: Tensor) -> float:
        fit = torch.logsumexp(logits, 0) - logits.gather(0, self.y[None])[0]
        return float(fit.mean() + 0.5 * (self.l2 * x * x).sum())

    def gradient(self, p: Tensor, x: Tensor) -> Tensor:
        errors = p.scatter_add(0, self.y[None], p.new_full((1, self.n), -1.0))
        return self.rows.back(errors).mul_(1 / self.n).addcmul_(self.l2, x)

    def curved(self, p: Tensor, logits: Tensor, x: Tensor) -> Tensor:
        """The Hessian at probabilities ``p`` times x, whose ``logits`` these are."""
        weighted = p * logits
        return self.rows.back(weighted.addcmul_(p, weighted.sum(0), value=-1.0)).mul_(1 / self.n).addcmul_(self.l2, x)

    def preconditioner(self, p: Tensor) -> Callable[[Tensor], Tensor]:
        """An approximate inverse of the Hessian: on all but the leading axes, as if all rows were equally uncertain."""
        classes = len(p)
        diagonal = (p - p * p).mean(1, keepdim=True).clamp_(min=1e-12) * self.spread + self.l2
        k = min(int((self.spread > self.l2[0]).sum()), LEADING // classes)
        if self.rows.basis is None or k < 2:
            return lambda x: x / diagonal
        p, rows = p[:, self.rows.sampled], self.rows.sample[1 - k :]
        rows = torch.cat([rows, rows.new_ones(1, rows.size(1))])
        weighted = (p[:, None] * rows).flatten(0, 1)
        hessian = (weighted @ weighted.T).view(classes, k, classes, k).neg_()
        hessian.diagonal(dim1=0, dim2=2).add_((weighted @ rows.T).view(classes, k, k).permute(1, 2, 0))
        hessian /= rows.size(1)
        hessian[:, -1, :, -1] += 1.0  # a constant in all biases changes nothing, and must not make this singular
        flat = hessian.view(classes * k, classes * k)
        flat.diagonal().add_(self.l2[-k:].repeat(classes)).mul_(1 + 1e-10)
        factor, failed = torch.linalg.cholesky_ex(flat)
        if failed:
            return lambda x: x / diagonal

        def undo(x: Tensor) -> Tensor:
            found = x / diagonal
            found[:, -k:] = torch.cholesky_solve(x[:, -k:].reshape(-1, 1), factor).view(classes, k)
            return found

        return undo


def _newton(loss: _Loss, x: Tensor) -> Tensor:
    logits = loss.rows.logits(x)
    value = loss.value(logits, x)
    scale = float(loss.spread.sum()) ** 0.5
    for _ in range(STEPS):
        p = logits.softmax(0)
        gradient = loss.gradient(p, x)
        size = float(gradient.norm()) / scale
        if size <= TOLERANCE:
            return x
        accuracy = max(min(0.1, size**0.5), 0.5 * TOLERANCE / size)
        direction, change = _conjugate_gradients(loss, p, gradient, accuracy)
        slope = float((gradient * direction).sum())
        length = 1.0
        # Near the optimum the gain is below what the loss can say in double precision.
        rounding = 1e-14 * (1 + float(logits.abs().max()))
        while True:
            moved, moved_logits = x + length * direction, logits + length * change
            new = loss.value(moved_logits, moved)
            if new <= value + 1e-4 * length * slope + rounding:
                break
            length /= 2
            if length < 1e-10:
                raise MarioError(f"the probe's loss falls no further at a gradient of {size:.0e}: try a larger l2")
        x, logits, value = moved, moved_logits, new
    raise MarioError(f"the probe found no optimum in {STEPS} Newton steps: try a larger l2")


def _conjugate_gradients(loss: _Loss, p: Tensor, gradient: Tensor, accuracy: float) -> tuple[Tensor, Tensor]:
    """The Newton direction to ``accuracy`` relative to the gradient, and its logits, which cost no extra product."""
    precondition = loss.preconditioner(p)
    direction, change = torch.zeros_like(gradient), torch.zeros_like(p)
    residual = -gradient
    enough = accuracy * float(gradient.norm())
    search = precondition(residual)
    weight = float((residual * search).sum())
    for _ in range(gradient.numel()):
        logits = loss.rows.logits(search)
        curved = loss.curved(p, logits, search)
        curvature = float((search * curved).sum())
        if curvature <= 0:  # by rounding only: the loss is convex
            break
        length = weight / curvature
        direction.add_(search, alpha=length)
        change.add_(logits, alpha=length)
        residual.sub_(curved, alpha=length)
        if float(residual.norm()) <= enough:
            break
        scaled = precondition(residual)
        before, weight = weight, float((residual * scaled).sum())
        search = scaled.add_(search, alpha=weight / before)
    return direction, change
