"""Linear layers trained by Adam, many at once."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

BETAS = (0.9, 0.999)
EPSILON = 1e-8
"""Kingma and Ba's, and torch's."""

TRANSPOSED = 2**18
"""Up to this many numbers, about the size of a core's cache, products with a copy of zᵀ are faster."""

SPARSE = 1 / 16
"""In a larger z, sparse products are faster up to this share of nonzero entries."""


@torch.no_grad()
def adam_layers(
    z: Tensor, y: Tensor, classes: int, seeds: Sequence[Sequence[int]], *, epochs: int, lr: float
) -> tuple[Tensor, Tensor]:
    """Weights ``[e, s, classes, d]`` and biases ``[e, s, classes]`` of linear layers after ``epochs`` steps of Adam.

    Adam is Kingma and Ba's (ICLR 2015), on the mean cross-entropy of all rows. Its gradient for weights W is
    (P − Y)ᵀ z / n, with P the softmax of the logits and Y the labels one-hot, so autograd is not
    needed. Layers over the same embedding are stacked into one product; embeddings into one batch of products.

    Args:
        z: Training rows of e embeddings, ``[e, n, d]``.
        y: Labels ``[n]``.
        classes: Number of classes.
        seeds: For each embedding, the seeds of the initial weights of its s layers, uniform within 1/√d as in
            ``nn.Linear``.
        epochs: Steps.
        lr: Learning rate.

    Example:
        >>> z = torch.tensor([[[-1.0], [1.0]]])
        >>> weight, bias = adam_layers(z, torch.tensor([0, 1]), 2, [[0, 1, 2]], epochs=5, lr=0.1)
        >>> weight.shape, bias.shape
        (torch.Size([1, 3, 2, 1]), torch.Size([1, 3, 2]))
    """
    count, n, d = z.shape
    rows = len(seeds[0]) * classes
    # All weights and biases are one buffer, so that an operation of Adam is one call: small steps cost mostly calls.
    values, gradient, mean, square, root = z.new_zeros(5, count * rows * (d + 1)).unbind()
    weight, bias = _split(values, count, rows, d)
    weight_gradient, bias_gradient = _split(gradient, count, rows, d)
    for e, of_one in enumerate(seeds):
        for s, seed in enumerate(of_one):
            generator = torch.Generator().manual_seed(seed)
            for part in (weight, bias):
                start = part[e, s * classes : (s + 1) * classes]
                drawn = torch.empty(start.shape, dtype=torch.float32).uniform_(-(d**-0.5), d**-0.5, generator=generator)
                start.copy_(drawn)
    products = _SparseProducts(z[0]) if _is_sparse(z) else _Products(z)
    truth = F.one_hot(y, classes).T.to(z.dtype, memory_format=torch.contiguous_format)
    # Classes come before rows: the softmax is then vectorized over adjacent rows.
    logits, errors = z.new_empty(2, count, rows, n).unbind()
    by_class, by_class_errors = (x.view(count, -1, classes, n) for x in (logits, errors))
    for step in range(1, epochs + 1):
        products.logits(weight, bias, out=logits)
        torch.softmax(by_class, 2, out=by_class_errors)
        by_class_errors.sub_(truth)
        products.gradient(errors, out=weight_gradient)
        torch.sum(errors, 2, keepdim=True, out=bias_gradient)
        # The gradient is n times that of the mean, and so are its moments' roots: ε carries the n, the rest cancels.
        mean.lerp_(gradient, 1 - BETAS[0])
        square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        correction = (1 - BETAS[1] ** step) ** 0.5
        torch.sqrt(square, out=root).add_(n * EPSILON * correction)
        values.addcdiv_(mean, root, value=-lr * correction / (1 - BETAS[0] ** step))
    return weight.view(count, -1, classes, d), bias.view(count, -1, classes)


class _Products:
    """W zᵀ + b and E z."""

    def __init__(self, z: Tensor) -> None:
        self.z, self.across = z, z.mT.contiguous() if z[0].numel() <= TRANSPOSED else z.mT

    def logits(self, weight: Tensor, bias: Tensor, *, out: Tensor) -> None:
        torch.baddbmm(bias, weight, self.across, out=out)

    def gradient(self, errors: Tensor, *, out: Tensor) -> None:
        torch.bmm(errors, self.z, out=out)


class _SparseProducts:
    """The same for one z that is mostly 0, such as word counts."""

    def __init__(self, z: Tensor) -> None:
        self.z, self.across = z.to_sparse_csr(), z.t().to_sparse_csr()

    def logits(self, weight: Tensor, bias: Tensor, *, out: Tensor) -> None:
        torch.add((self.z @ weight[0].t()).t(), bias[0], out=out[0])

    def gradient(self, errors: Tensor, *, out: Tensor) -> None:
        out[0] = (self.across @ errors[0].t()).t()


def _is_sparse(z: Tensor) -> bool:
    return len(z) == 1 and z.numel() > TRANSPOSED and int(z.count_nonzero()) <= SPARSE * z.numel()


def _split(values: Tensor, count: int, rows: int, d: int) -> tuple[Tensor, Tensor]:
    weight, bias = values.split([count * rows * d, count * rows])
    return weight.view(count, rows, d), bias.view(count, rows, 1)
