"""The adversarial perturbation of Algorithm 1."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario import ranks
from mario.arguments import check_count, check_number
from mario.errors import MarioError
from mario.graphs.features import FeatureMatrix, Features, Perturbed
from mario.graphs.sparse import row_of_entries
from mario.views.view import View, features_of

Loss = Callable[..., Tensor]


class AdversarialFeatures(View):
    """Adversarial perturbation of the features (MARIO, Algorithm 1; after FLAG, Kong et al. 2022).

    δ starts uniform in [−ε, ε] and takes ``steps`` ascent steps of size ε on a loss. Every ascent step is also a
    backward pass through the network, weighted 1/M, so that after :meth:`ascend` the gradients of the parameters
    are the mean over the M perturbations, and the adversary costs no extra pass.

    If ``x`` is a :class:`mario.graphs.features.Features` and the step is ``frobenius``, δ is kept in factors and no
    matrix of the features' size is built. With several ranks, the norm is that of the perturbation of all ranks.

    As in the algorithm, δ is not projected back into a ball: after M steps it lies within (M + 1)·ε of zero.

    Args:
        epsilon: Size of the start and of each step.
        steps: M, the number of ascent steps.
        step: ``frobenius`` moves by ε·∇/‖∇‖_F (the paper), ``sign`` by ε·sign(∇) (the released code, FLAG).
        loss: The function of the perturbed ``Data`` to ascend; needed only to use this as a transform.

    Example:
        >>> data = Data(x=torch.tensor([[1.0, 2.0]]), edge_index=torch.empty(2, 0, dtype=torch.long))
        >>> harder = AdversarialFeatures(epsilon=0.1, steps=3, step="sign", loss=lambda d: d.x.sum())(data)
        >>> bool((harder.x > data.x + 0.15).all())
        True
    """

    def __init__(
        self,
        epsilon: float = 1e-3,
        steps: int = 3,
        step: Literal["frobenius", "sign"] = "frobenius",
        loss: Callable[[Data], Tensor] | None = None,
    ) -> None:
        check_number("epsilon", epsilon, low=0)
        check_count("steps", steps)
        if loss is not None and not callable(loss):
            raise MarioError(f"loss must be a function of a graph, or None, got {loss!r}")
        if step not in ("frobenius", "sign"):
            raise MarioError(f"step must be 'frobenius' or 'sign', got '{step}'")
        self.epsilon = epsilon
        self.steps = steps
        self.step = step
        self.loss = loss

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        """The perturbed graph after M ascent steps on ``loss``; only the features are differentiated."""
        if self.loss is None:
            raise MarioError("AdversarialFeatures as a transform needs a function to ascend: pass loss=")
        data = copy.copy(data)
        data.x = self._written_out(features_of(self, data), generator)
        for _ in range(self.steps):
            with torch.enable_grad():  # the caller may have turned them off
                value = self.loss(data)
                if not isinstance(value, Tensor) or value.numel() != 1:
                    raise MarioError(f"loss must return a tensor of one number, got {value!r}")
                (gradient,) = torch.autograd.grad(value, data.x)
            self._move(data.x, gradient.clone())  # autograd may return an expanded view of one number
        data.x = data.x.detach()
        return data

    def ascend(self, loss: Loss, views: Sequence[Data], generator: torch.Generator | None = None) -> list[Tensor]:
        """Accumulate the gradients of ``loss(*views)`` over M perturbations of all ``views``; return the M losses."""
        perturbed = self.start(views, generator)
        losses = []
        for step in range(self.steps):
            last = step == self.steps - 1
            for view in perturbed:
                if last and isinstance(view.x, Tensor):
                    view.x.requires_grad_(False)  # no ascent step follows
            value = loss(*perturbed)
            if value.requires_grad:
                (value / self.steps).backward()
            losses.append(value.detach())
            if not last:
                for view in perturbed:
                    self._ascend(view.x)
        for view in perturbed:
            if isinstance(view.x, Perturbed):
                view.x.finish()
        return losses

    def start(self, views: Sequence[Data], generator: torch.Generator | None = None) -> list[Data]:
        """Copies whose features are X + δ₀ and collect a gradient.

        The leaf is X + δ, not δ: their gradients are the same, and one matrix of that size is enough.
        """
        started = []
        for view in views:
            view = copy.copy(view)
            factors = isinstance(view.x, Features) and self.step == "frobenius"
            view.x = Perturbed(view.x, self.epsilon, generator) if factors else self._written_out(view.x, generator)
            started.append(view)
        return started

    def _written_out(self, x: FeatureMatrix, generator: torch.Generator | None) -> Tensor:
        if not isinstance(x, Tensor):
            x = x.matrix()
        dense = torch.empty(x.shape, dtype=x.dtype)
        dense = dense.uniform_(-self.epsilon, self.epsilon, generator=generator).to(x.device)
        return _add(dense, x).requires_grad_()

    def _ascend(self, x: Tensor | Perturbed) -> None:
        if isinstance(x, Perturbed):
            x.move(self._scale(x.squared_norm()))
        elif x.grad is not None:
            self._move(x, x.grad)
            x.grad = None

    @torch.no_grad()
    def _move(self, x: Tensor, gradient: Tensor) -> None:
        if self.step == "sign":
            x.add_(gradient.sign_(), alpha=self.epsilon)
        else:
            x.add_(gradient.mul_(self._scale(gradient.norm().double().square())))

    def _scale(self, squared_norm: Tensor) -> float:
        """ε/‖∇‖_F over the rows of all ranks, or 0 if the gradient vanishes."""
        total = squared_norm.double()
        ranks.sum_(total)
        norm = math.sqrt(max(total.item(), 0.0))
        return self.epsilon / norm if norm >= torch.finfo(torch.float32).tiny else 0.0


def _add(dense: Tensor, x: Tensor) -> Tensor:
    """``dense + x`` in the memory of ``dense``."""
    if x.layout != torch.sparse_csr:
        return dense.add_(x)
    return dense.index_put_((row_of_entries(x.crow_indices()), x.col_indices()), x.values(), accumulate=True)
