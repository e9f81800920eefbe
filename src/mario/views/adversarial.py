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
from mario.views.view import View

Loss = Callable[..., Tensor]

# A norm below this is of squares that have lost digits in float32.
_SHORT = 1e-12


class AdversarialFeatures(View):
    """Adversarial perturbation of the features (MARIO, Algorithm 1; after FLAG, Kong et al. 2022).

    δ starts uniform in [−ε, ε] and takes ``steps`` ascent steps on a loss. With ``gradients="every"`` each ascent step
    is also a backward pass through the network, weighted 1/M, so that after :meth:`ascend` the gradients of the
    parameters are the mean over the M perturbations, and the adversary costs no extra pass. With ``"last"`` the M
    ascent steps differentiate the features only, and one more pass gives the gradients at the perturbation where they
    end, as in adversarial training (Madry et al. 2018; with one step, Wong et al. 2020).

    If ``x`` is a :class:`mario.graphs.features.Features` and the step is ``frobenius``, δ is kept in factors and no
    matrix of the features' size is built. The other steps build two, X + δ and its gradient, also if ``x`` is sparse:
    δ has no zeros, as words that a node does not have are perturbed too. That is 8 bytes for each row of the batch and
    column, 0.2 GB for 3,000 nodes with 8,415 words. With several ranks, the norm is that of the perturbation of all
    ranks.

    As in the algorithm, δ is not projected back into a ball by ``frobenius`` and ``sign``: after M steps it lies within
    (M + 1)·ε of zero.

    Args:
        epsilon: ε, the size of the start and of each step: a number, or for the two sign steps one number per column,
            such as ``0.3 * column_std(x)`` with :func:`mario.graphs.column_std`. A column with 0 is not perturbed.
        steps: M, the number of ascent steps.
        step: ``frobenius`` moves by ε·∇/‖∇‖_F (the paper), ``sign`` by ε·sign(∇) (the released code, FLAG).
            ``projected_sign`` moves by min(1, 2.5/M)·ε·sign(∇) and then back to |δ| ≤ ε.
        loss: The function of the perturbed ``Data`` to ascend; needed only to use this as a transform.
        gradients: The passes of :meth:`ascend` that give gradients to the parameters, ``every`` or the ``last``.

    Example:
        >>> data = Data(x=torch.tensor([[1.0, 2.0]]), edge_index=torch.empty(2, 0, dtype=torch.long))
        >>> harder = AdversarialFeatures(epsilon=0.1, steps=3, step="sign", loss=lambda d: d.x.sum())(data)
        >>> bool((harder.x > data.x + 0.15).all())
        True
    """

    def __init__(
        self,
        epsilon: float | Tensor = 1e-3,
        steps: int = 3,
        step: Literal["frobenius", "sign", "projected_sign"] = "frobenius",
        loss: Callable[[Data], Tensor] | None = None,
        *,
        gradients: Literal["every", "last"] = "every",
    ) -> None:
        if isinstance(epsilon, Tensor):
            if epsilon.dim() != 1 or not bool(((epsilon >= 0) & (epsilon < math.inf)).all()):
                raise MarioError("epsilon per column must be finite numbers in one row, none of them negative")
            if step == "frobenius":
                raise MarioError("epsilon per column needs step 'sign' or 'projected_sign', got 'frobenius'")
        else:
            check_number("epsilon", epsilon, low=0)
        check_count("steps", steps)
        if loss is not None and not callable(loss):
            raise MarioError(f"loss must be a function of a graph, or None, got {loss!r}")
        if step not in ("frobenius", "sign", "projected_sign"):
            raise MarioError(f"step must be 'frobenius', 'sign' or 'projected_sign', got '{step}'")
        if gradients not in ("every", "last"):
            raise MarioError(f"gradients must be 'every' or 'last', got '{gradients}'")
        self.epsilon = epsilon
        self.steps = steps
        self.step = step
        self.loss = loss
        self.gradients = gradients

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        """The perturbed graph after M ascent steps on ``loss``; only the features are differentiated."""
        if self.loss is None:
            raise MarioError("AdversarialFeatures as a transform needs a function to ascend: pass loss=")
        if data.get("x") is None:
            raise MarioError("data has no x; AdversarialFeatures needs x of shape [nodes, features]")
        x = data.x
        data = copy.copy(data)
        data.x = self._written_out(x, generator)
        for _ in range(self.steps):
            with torch.enable_grad():  # the caller may have turned them off
                value = self.loss(data)
                if not isinstance(value, Tensor) or value.numel() != 1:
                    raise MarioError(f"loss must return a tensor of one number, got {value!r}")
                (gradient,) = torch.autograd.grad(value, data.x)
            self._move(data.x, gradient.clone(), x)  # autograd may return an expanded view of one number
        data.x = data.x.detach()
        return data

    def ascend(self, loss: Loss, views: Sequence[Data], generator: torch.Generator | None = None) -> list[Tensor]:
        """Add the gradients of ``loss(*views)`` at perturbations of all ``views``; return the losses there.

        These are M perturbations whose gradients are averaged, or the last alone.
        """
        perturbed = self.start(views, generator)
        passes = self.steps
        if self.gradients == "last":
            passes = 1
            for _ in range(self.steps):
                self._climb(loss, perturbed, views)
        losses = []
        for step in range(passes):
            last = step == passes - 1
            for view in perturbed:
                if last and isinstance(view.x, Tensor):
                    view.x.requires_grad_(False)  # no ascent step follows
            value = loss(*perturbed)
            if value.requires_grad:
                (value / passes).backward()
            losses.append(value.detach())
            if not last:
                for view, origin in zip(perturbed, views, strict=True):
                    self._ascend(view.x, origin.x)
        for view in perturbed:
            if isinstance(view.x, Perturbed):
                view.x.finish()
        return losses

    def _climb(self, loss: Loss, perturbed: Sequence[Data], views: Sequence[Data]) -> None:
        """One ascent step without gradients of the parameters, which takes less than a whole backward pass."""
        value = loss(*perturbed)
        if value.requires_grad:
            value.backward(inputs=[view.x.handle if isinstance(view.x, Perturbed) else view.x for view in perturbed])
        for view, origin in zip(perturbed, views, strict=True):
            self._ascend(view.x, origin.x)
            if isinstance(view.x, Perturbed):
                view.x.forget()

    def start(self, views: Sequence[Data], generator: torch.Generator | None = None) -> list[Data]:
        """Copies whose features are X + δ₀ and collect a gradient.

        The leaf is X + δ, not δ: their gradients are the same, and one matrix of that size is enough.
        """
        started = []
        for view in views:
            view = copy.copy(view)
            factors = isinstance(view.x, Features) and self.step == "frobenius"
            view.x = (
                Perturbed(view.x, float(self.epsilon), generator) if factors else self._written_out(view.x, generator)
            )
            started.append(view)
        return started

    def _written_out(self, x: FeatureMatrix, generator: torch.Generator | None) -> Tensor:
        x = _matrix(x)
        dense = torch.empty(x.shape, dtype=x.dtype)
        if isinstance(self.epsilon, Tensor):
            if self.epsilon.numel() != x.size(1):
                raise MarioError(f"epsilon must be one number or {x.size(1)}, one per column, got {len(self.epsilon)}")
            dense = dense.uniform_(-1, 1, generator=generator).to(x.device).mul_(self.epsilon)
        else:
            dense = dense.uniform_(-self.epsilon, self.epsilon, generator=generator).to(x.device)
        return _add(dense, x).requires_grad_()

    def _ascend(self, x: Tensor | Perturbed, origin: FeatureMatrix) -> None:
        if isinstance(x, Perturbed):
            x.move(self._scale(x.squared_norm()))
        elif x.grad is not None:
            self._move(x, x.grad, origin)
            x.grad = None

    @torch.no_grad()
    def _move(self, x: Tensor, gradient: Tensor, origin: FeatureMatrix) -> None:
        """Move ``x`` = X + δ along ``gradient``, which is overwritten; X is ``origin``."""
        if self.step == "frobenius":
            norm = gradient.norm().double()
            if not _SHORT < float(norm) < math.inf:  # squares do not fit in float32
                norm = torch.linalg.vector_norm(gradient, dtype=torch.float64)
            x.add_(gradient.mul_(self._scale(norm.square())))
            return
        share = min(1.0, 2.5 / self.steps) if self.step == "projected_sign" else 1.0
        x.add_(gradient.sign_().mul_(self.epsilon), alpha=share)
        if self.step == "projected_sign":
            clean, bound = _matrix(origin), torch.as_tensor(self.epsilon, dtype=x.dtype, device=x.device)
            _add(x, clean, -1)
            x.clamp_(-bound, bound)
            _add(x, clean)

    def _scale(self, squared_norm: Tensor) -> float:
        """ε/‖∇‖_F over the rows of all ranks, or 0 if the gradient vanishes."""
        total = squared_norm.double()
        ranks.sum_(total)
        norm = math.sqrt(max(total.item(), 0.0))
        return float(self.epsilon) / norm if norm >= torch.finfo(torch.float32).tiny else 0.0


def _matrix(x: FeatureMatrix) -> Tensor:
    return x if isinstance(x, Tensor) else x.matrix()


def _add(dense: Tensor, x: Tensor, times: int = 1) -> Tensor:
    """``dense + times·x`` in the memory of ``dense``."""
    if x.layout != torch.sparse_csr:
        return dense.add_(x, alpha=times)
    entries = x.values() if times == 1 else x.values() * times
    return dense.index_put_((row_of_entries(x.crow_indices()), x.col_indices()), entries, accumulate=True)
