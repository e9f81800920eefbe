"""Logistic regression at its optimum, by a second-order method."""

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from mario.arguments import check_positive
from mario.errors import MarioError
from mario.graphs import Block, BlockMatrix
from mario.graphs.sparse import row_of_entries

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
PRODUCTS = 2**31
"""Up to this many multiplications per pass, sparse and wide blocks are written out for their spectrum."""


@torch.no_grad()
def logistic_optimum(
    z: Tensor | BlockMatrix,
    y: Tensor,
    classes: int,
    *,
    l2: float,
    start: tuple[Tensor, Tensor] | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[Tensor, Tensor]:
    """Weights ``[classes, d]`` and biases ``[classes]``, in double precision, at the minimum of the penalized loss.

    The loss is the mean cross-entropy of the rows plus l2/2 ‖W‖²; biases are free. In scikit-learn's terms C is
    1 / (l2 n), or 2 / (l2 n) for two classes, where it only keeps their difference. The minimum is unique up to a
    constant in the biases, which is chosen to make their mean zero. A class without rows has a bias of minus infinity.

    The method is Newton's with conjugate gradients (Nocedal and Wright, Numerical Optimization, 7.1), each step solved
    to an accuracy relative to the gradient, with backtracking. Conjugate gradients are preconditioned in the principal
    axes of z: with the Hessian on the leading axes, and on the others with what it would be if all rows were equally
    uncertain. Blocks of z that are sparse or wide are only multiplied with: they are preconditioned column by column
    and never written out.

    Args:
        z: Training rows ``[n, d]``.
        y: Labels ``[n]`` of two classes or more.
        classes: Number of classes.
        l2: Weight of the penalty, above zero: without it, classes that a plane separates have no optimum.
        start: Initial weights and biases, such as those of an earlier checkpoint; zero by default. They change the
            time it takes, not the result.
        tolerance: Largest norm of the gradient at the result, relative to the root mean square norm of a row.

    Example:
        >>> z = torch.tensor([[-1.0], [1.0]])
        >>> weight, bias = logistic_optimum(z, torch.tensor([0, 1]), 2, l2=0.1)
        >>> p = (z.double() @ weight.T + bias).softmax(1)
        >>> torch.allclose(0.1 * weight[1], (1 - p[1, 1]).reshape(1))  # the gradient is zero
        True
    """
    _check_given(z, y, classes, start)
    return LogisticPath(z, y, classes, start=start).at(l2, tolerance)


def _check_given(z: Tensor | BlockMatrix, y: Tensor, classes: int, start: tuple[Tensor, Tensor] | None) -> None:
    """Raise a :class:`MarioError` unless rows, labels and start fit together."""
    dense = isinstance(z, Tensor) and z.dim() == 2 and z.is_floating_point() and z.layout == torch.strided
    for name, given, right in (
        ("z", z, dense or isinstance(z, BlockMatrix)),
        ("y", y, isinstance(y, Tensor) and y.dim() == 1 and y.dtype == torch.int64),
    ):
        if not right:
            raise MarioError(f"z must be a matrix of real numbers and y one int64 per row; {name} is {type(given)}")
    if z.shape[0] != len(y) or not len(y) or (isinstance(z, Tensor) and not bool(torch.isfinite(z.sum()))):
        raise MarioError(f"z must be finite and have a label for each row, got {z.shape[0]} rows and {len(y)} labels")
    if int(y.min()) < 0 or int(y.max()) >= classes:
        raise MarioError(f"labels must lie in 0 to {classes - 1}, got {int(y.min())} to {int(y.max())}")
    if start is None:
        return
    if start[0].shape != (classes, z.shape[1]) or start[1].shape != (classes,) or not start[0].isfinite().all():
        raise MarioError(f"start must be finite weights [{classes}, {z.shape[1]}] and biases [{classes}]")


class LogisticPath:
    """What :func:`logistic_optimum` returns for one penalty after another; each optimum starts from those before.

    What is known of z is shared, and descending penalties are the quickest.

    Attributes:
        spread: The mean square norm of a row of z, less their mean.

    Example:
        >>> path = LogisticPath(torch.tensor([[-1.0], [1.0]]), torch.tensor([0, 1]), 2)
        >>> [round(float(path.at(l2)[0][1]), 2) for l2 in (1.0, 0.1)]
        [0.34, 1.06]
    """

    @torch.no_grad()
    def __init__(
        self, z: Tensor | BlockMatrix, y: Tensor, classes: int, *, start: tuple[Tensor, Tensor] | None = None
    ) -> None:
        self._found, self._y = y.unique(return_inverse=True)
        if len(self._found) < 2:
            raise MarioError(
                f"logistic regression needs training nodes of two classes, all are of class {int(self._found[0])}"
            )
        self._rows, self._shape = _rows_of(z), (classes, z.shape[1])
        self.spread = float(self._rows.spread.sum())
        self._x = self._rows.center.new_zeros(len(self._found), len(self._rows.spread) + 1)
        self._step: Tensor | None = None
        if start is not None:
            weight, bias = (part[self._found].double() for part in start)
            self._x[:, :-1] = self._rows.inward(weight)
            self._x[:, -1] = torch.where(bias.isfinite(), bias + weight @ self._rows.center, 0.0)

    @torch.no_grad()
    def at(self, l2: float, tolerance: float = TOLERANCE) -> tuple[Tensor, Tensor]:
        """Weights and biases at the minimum with the penalty ``l2``: see :func:`logistic_optimum`."""
        check_positive("l2", l2)
        before = self._x
        self._x = _newton(_Loss(self._rows, self._y, l2), before, tolerance, self._step)
        self._step = self._x - before
        weight = self._rows.outward(self._x[:, :-1])
        bias = self._x[:, -1] - weight @ self._rows.center
        weights = weight.new_zeros(self._shape)
        biases = bias.new_full((self._shape[0],), -torch.inf)
        weights[self._found], biases[self._found] = weight, bias - bias.mean()
        return weights, biases


def _rows_of(z: Tensor | BlockMatrix) -> "_Rows | _Joined":
    """``z`` in the form that suits its size."""
    if isinstance(z, Tensor):
        return _Rows(z)
    n, d = z.shape
    narrow: dict[str, Block] = {}
    for name, block in z.items():
        if not block.is_sparse and sum(b.shape[1] for b in narrow.values()) + block.shape[1] <= WHITENED:
            narrow[name] = block
    if len(narrow) == len(z) or (min(n, d) <= WHITENED and 8 * n * d <= BYTES and n * d * min(n, d) <= PRODUCTS):
        return _Rows(z)
    return _Joined(z, narrow)


class _Rows:
    """The rows of an embedding in double precision: centered, and in their principal axes if those are affordable.

    Neither moves the optimum: biases are free, and the penalty is the same in all axes. With fewer rows than features
    there are as many axes as rows; the optimum is in their span, as the penalty shrinks everything else.
    """

    def __init__(self, z: Tensor | BlockMatrix) -> None:
        n, d = z.shape
        self._z = z
        self._parts = torch.arange(n).split(max(1, BYTES // (64 * d)))
        self._whole: Tensor | None = None
        self.center = torch.stack([self._dense(part).sum(0, dtype=torch.float64) for part in self._parts]).sum(0) / n
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
        if self._whole is not None:
            self._finish([block @ axes for block in self._rows()])
        self.basis = axes if span is None else span @ axes
        # Enough rows to know the Hessian of the leading axes by, as far as a preconditioner has to.
        self.sampled = torch.randperm(n, generator=torch.Generator().manual_seed(0))[:SAMPLED].sort().values
        if self._whole is not None:
            sample = self._whole[self.sampled]
        else:
            sample = (self._dense(self.sampled).double() - self.center) @ axes
        self.sample = sample.T.contiguous()

    def _dense(self, index: Tensor) -> Tensor:
        if isinstance(self._z, BlockMatrix):
            return self._z.rows(index).dense(torch.float64)
        return self._z[index.to(self._z.device)]

    def _finish(self, blocks: list[Tensor]) -> None:
        self._whole = torch.cat(blocks)

    def _rows(self) -> Iterator[Tensor]:
        """Blocks of rows, finished or only centered; the other steps are applied to the smaller factor of a product."""
        if self._whole is not None:
            yield self._whole
            return
        for part in self._parts:
            yield self._dense(part).double() - self.center

    def inward(self, weight: Tensor) -> Tensor:
        """Weights ``[classes, d]`` of the columns of z as weights of these axes."""
        return weight if self.basis is None else weight @ self.basis

    def outward(self, weight: Tensor) -> Tensor:
        """Weights of these axes as weights of the columns of z."""
        return weight if self.basis is None else weight @ self.basis.T

    def logits(self, x: Tensor) -> Tensor:
        """Logits of all rows, ``[classes, n]``; classes first, so that a softmax is vectorized over adjacent rows."""
        weight, bias = x[:, :-1], x[:, -1:]
        if self._whole is None:
            weight = self.outward(weight)
        parts = [torch.addmm(bias, weight, block.T) for block in self._rows()]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def back(self, errors: Tensor) -> Tensor:
        """The sum over rows of ``errors`` ``[classes, n]`` in the logits, in terms of x."""
        weight = errors.new_zeros(len(errors), len(self.center) if self._whole is None else self._whole.size(1))
        first = 0
        for block in self._rows():
            weight.addmm_(errors[:, first : first + len(block)], block)
            first += len(block)
        if self._whole is None:
            weight = self.inward(weight)
        return torch.cat([weight, errors.sum(1, keepdim=True)], 1)


class _Joined:
    """Rows in blocks, of which some are sparse or wide: those are only multiplied with.

    The others, together narrow, are in their principal axes and come last, where :class:`_Rows` has its leading axes.
    """

    def __init__(self, z: BlockMatrix, narrow: Mapping[str, Block]) -> None:
        self._columns, self._names = z.columns, list(narrow)
        self._wide = {name: _Columns(block) for name, block in z.items() if name not in narrow}
        self._narrow = _Rows(BlockMatrix(narrow)) if narrow else None
        self.center = torch.cat([wide.center for wide in self._wide.values()])
        self.spread = torch.cat([wide.spread for wide in self._wide.values()])
        self.basis = None
        if self._narrow is not None:
            self.center = torch.cat([self.center, self._narrow.center])
            self.spread = torch.cat([self.spread, self._narrow.spread])
            self.basis = self._narrow.basis
            self.sampled, self.sample = self._narrow.sampled, self._narrow.sample
        self.center = self._in_order(self.center)

    def _in_order(self, parts: Tensor) -> Tensor:
        """The last dimension, wide blocks and then the narrow ones, in the order of the columns of z."""
        names = [*self._wide, *self._names]
        sizes = [self._columns[name].stop - self._columns[name].start for name in names]
        found = dict(zip(names, parts.split(sizes, -1), strict=True))
        return torch.cat([found[name] for name in self._columns], -1)

    def _parts(self, x: Tensor) -> list[Tensor]:
        """The columns of x for each wide block, and the rest."""
        sizes = [len(wide.center) for wide in self._wide.values()]
        return list(x.split([*sizes, x.size(1) - sum(sizes)], 1))

    def inward(self, weight: Tensor) -> Tensor:
        """Weights ``[classes, d]`` of the columns of z as weights of the columns and axes here."""
        parts = [weight[:, self._columns[name]] for name in self._wide]
        if self._narrow is not None:
            parts.append(self._narrow.inward(torch.cat([weight[:, self._columns[name]] for name in self._names], 1)))
        return torch.cat(parts, 1)

    def outward(self, weight: Tensor) -> Tensor:
        """Weights of the columns and axes here as weights of the columns of z."""
        *wide, rest = self._parts(weight)
        return self._in_order(torch.cat([*wide, rest if self._narrow is None else self._narrow.outward(rest)], 1))

    def logits(self, x: Tensor) -> Tensor:
        """Logits of all rows, ``[classes, n]``."""
        *wide, rest = self._parts(x)
        found = rest if self._narrow is None else self._narrow.logits(rest)
        for part, weight in zip(self._wide.values(), wide, strict=True):
            found = found + part.matmul(weight)
        return found

    def back(self, errors: Tensor) -> Tensor:
        """The sum over rows of ``errors`` ``[classes, n]`` in the logits, in terms of x."""
        rest = errors.sum(1, keepdim=True) if self._narrow is None else self._narrow.back(errors)
        across = errors.T.contiguous()
        return torch.cat([*(part.back(across) for part in self._wide.values()), rest], 1)


class _Columns:
    """A sparse or wide block in double precision, centered by what is subtracted from products."""

    def __init__(self, block: Block) -> None:
        n, d = block.shape
        self._block = block.to(torch.float64) if block.is_sparse else block
        self.center = self._block.back(torch.ones(n, 1, dtype=torch.float64))[:, 0] / n
        if not block.is_sparse:
            parts = torch.arange(n).split(max(1, BYTES // (64 * d)))
            sums = [(block.rows(part).dense(torch.float64) - self.center).square().sum(0) for part in parts]
            self.spread = torch.stack(sums).sum(0) / n
            return
        # (v - m)² is v (v - 2 m), which is zero where v is, plus m².
        x = self._block.values
        row, column, v = row_of_entries(x.crow_indices()), x.col_indices(), x.values()
        self.spread = torch.zeros_like(self.center)
        if block.centers is None or block.group is None:
            self.spread.index_add_(0, column, v.square())
        else:
            m = block.centers.double()
            self.spread.index_add_(0, column, v * (v - 2 * m[block.group[row], column]))
            self.spread += block.group.bincount(minlength=len(m)).double() @ m.square()
        self.spread.mul_(block.scale**2 / n).sub_(self.center.square()).clamp_(min=0)

    def matmul(self, weight: Tensor) -> Tensor:
        """Logits ``[classes, n]`` for weights ``[classes, d]``."""
        return self._block.matmul(weight.T.contiguous()).T - (weight @ self.center)[:, None]

    def back(self, errors: Tensor) -> Tensor:
        """Sums ``[classes, d]`` over rows, for ``errors`` ``[n, classes]``."""
        return self._block.back(errors).T - errors.sum(0)[:, None] * self.center


class _Loss:
    """The penalized mean cross-entropy of x ``[classes, axes + 1]``: weights, and biases in the last column."""

    def __init__(self, rows: _Rows | _Joined, y: Tensor, l2: float) -> None:
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
        if self.rows.basis is None:
            return lambda x: x / diagonal
        axes = self.spread[-1 - len(self.rows.sample) :]  # and the bias
        k = min(int((axes > self.l2[0]).sum()), LEADING // classes)
        if k < 2:
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


def _newton(loss: _Loss, x: Tensor, tolerance: float, step: Tensor | None = None) -> Tensor:
    """The minimum from x, or from x and another ``step`` like the last one if that is lower."""
    logits = loss.rows.logits(x)
    value = loss.value(logits, x)
    if step is not None:
        further = logits + loss.rows.logits(step)
        if (lower := loss.value(further, x + step)) < value:
            x, logits, value = x + step, further, lower
    first = 0.0
    scale = float(loss.spread.sum()) ** 0.5
    for _ in range(STEPS):
        p = logits.softmax(0)
        gradient = loss.gradient(p, x)
        size = float(gradient.norm()) / scale
        if size <= tolerance:
            return x
        first = first or size
        accuracy = max(min(0.1, (size / first) ** 0.5), 0.5 * tolerance / size)
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
