"""The adversarial perturbation of Algorithm 1."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.views.view import View

Loss = Callable[..., Tensor]


class AdversarialFeatures(View):
    """The worst view within reach of small changes to the features (MARIO, Algorithm 1; after FLAG, Kong et al. 2022).

    δ starts uniform in [−ε, ε] and takes ``steps`` ascent steps of size ε on a loss. Every ascent step is also a
    backward pass through the network, weighted 1/M, so that after :meth:`ascend` the gradients of the parameters
    are the mean over the M perturbations and no pass was spent on the adversary alone.

    As the algorithm has it, δ is not projected back into a ball: after M steps it lies within (M + 1)·ε of zero.

    Args:
        epsilon: Size of the start and of each step.
        steps: M, the number of ascent steps.
        step: ``frobenius`` moves by ε·∇/‖∇‖_F (the paper), ``sign`` by ε·sign(∇) (the released code, FLAG).
        loss: What to ascend, a function of the perturbed ``Data``; needed only to use this as a transform.

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
        if not 0 <= epsilon < math.inf:
            raise MarioError(f"epsilon must be finite and not negative, got {epsilon}")
        if steps < 1:
            raise MarioError(f"steps must be at least 1, got {steps}")
        if step not in ("frobenius", "sign"):
            raise MarioError(f"step must be 'frobenius' or 'sign', got '{step}'")
        self.epsilon = epsilon
        self.steps = steps
        self.step = step
        self.loss = loss

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        """The perturbed graph after M ascent steps on ``loss``; nothing but the features is differentiated."""
        if self.loss is None:
            raise MarioError("AdversarialFeatures as a transform needs to know what to ascend: give it loss=")
        (data,) = self.start([data], generator)
        for _ in range(self.steps):
            (gradient,) = torch.autograd.grad(self.loss(data), data.x)
            self._move(data.x, gradient.clone())  # autograd may hand out one number seen as a whole matrix
        data.x = data.x.detach()
        return data

    def ascend(self, loss: Loss, views: Sequence[Data], generator: torch.Generator | None = None) -> list[Tensor]:
        """Accumulate the gradients of ``loss(*views)`` over M perturbations of all ``views``; return the M losses."""
        perturbed = self.start(views, generator)
        losses = []
        for _ in range(self.steps):
            value = loss(*perturbed)
            (value / self.steps).backward()
            losses.append(value.detach())
            for view in perturbed:
                if view.x.grad is not None:
                    self._move(view.x, view.x.grad)
                    view.x.grad = None
        return losses

    def start(self, views: Sequence[Data], generator: torch.Generator | None = None) -> list[Data]:
        """Copies whose features are X + δ₀ and require a gradient.

        X + δ is the leaf and not δ: their gradients are the same, and one matrix of that size is enough.
        """
        started = []
        for view in views:
            view = copy.copy(view)
            x = torch.empty(view.x.shape, dtype=view.x.dtype)
            x = x.uniform_(-self.epsilon, self.epsilon, generator=generator).to(view.x.device)
            view.x = _add(x, view.x).requires_grad_()
            started.append(view)
        return started

    @torch.no_grad()
    def _move(self, x: Tensor, gradient: Tensor) -> None:
        if self.step == "sign":
            x.add_(gradient.sign_(), alpha=self.epsilon)
        else:
            norm = gradient.norm()
            if norm >= torch.finfo(gradient.dtype).tiny:  # a gradient that vanishes has no direction
                x.add_(gradient.div_(norm), alpha=self.epsilon)


def _add(dense: Tensor, x: Tensor) -> Tensor:
    """``dense + x`` in the memory of ``dense``."""
    if x.layout != torch.sparse_csr:
        return dense.add_(x)
    rows = torch.arange(x.size(0), device=x.device).repeat_interleave(x.crow_indices().diff())
    return dense.index_put_((rows, x.col_indices()), x.values(), accumulate=True)
