"""Features kept in parts, so that an encoder can multiply by them without building the matrix."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from mario.graphs.paging import check_file
from mario.graphs.sparse import csr, select_rows

# Numbers of the perturbation drawn at once: 16 MiB of float32.
_BLOCK = 2**22
# Number of columns from which a dense matrix is kept in parts.
_WIDE = 512
# A sum of squares below this may have lost digits.
_SMALL = 1e-25


def is_wide(x: Tensor) -> bool:
    """Whether ``x`` should be kept in parts: it is sparse, or wider than the layers of an encoder."""
    return x.layout == torch.sparse_csr or x.size(1) > _WIDE


class Features:
    """X with some columns masked, in place of ``data.x``.

    Masking a column of X is equivalent to masking a row of the weight that X is multiplied by. So X is shared, not
    copied, and a sparse CSR matrix stays sparse. The encoders in :mod:`mario.encoders` take it in place of a matrix.
    The product with a weight is cached until the weight changes, so that several passes over one view compute it once.

    Args:
        x: Dense or sparse CSR [nodes, features].
        kept: Bool [features]; ``None`` keeps all columns.

    Example:
        >>> features = Features(torch.tensor([[1.0, 2.0]]), kept=torch.tensor([True, False]))
        >>> features.times(torch.tensor([[1.0, 1.0]])).tolist(), features.matrix().tolist()
        ([[1.0]], [[1.0, 0.0]])
    """

    def __init__(self, x: Tensor, kept: Tensor | None = None) -> None:
        self.x = x
        self.kept = kept
        self._products: dict[int, tuple[Tensor, int, Tensor]] = {}
        self._transposed: Tensor | None = None

    @property
    def shape(self) -> torch.Size:
        return self.x.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.x.dtype

    @property
    def device(self) -> torch.device:
        return self.x.device

    def size(self, dim: int) -> int:
        return self.x.size(dim)

    def times(self, weight: Tensor) -> Tensor:
        """X Wᵀ for a weight [out, features] as ``nn.Linear`` has it."""
        with torch.autocast(self.device.type, enabled=False):
            return _times(weight, self)

    def select(self, rows: Tensor) -> "SelectedRows":
        """These rows, in this order."""
        return SelectedRows(self, rows)

    def matrix(self) -> Tensor:
        """The features as a matrix, sparse if X is."""
        if self.kept is None:
            return self.x
        if self.x.layout == torch.sparse_csr:
            columns = self.x.col_indices()
            # Filled, not multiplied: 0 · NaN is NaN, and a masked column must not leak its values.
            values = self.x.values().masked_fill(~self.kept[columns], 0)
            return csr(self.x.crow_indices(), columns, values, (self.size(0), self.size(1)))
        return self.x.masked_fill(~self.kept, 0)

    def product(self, weight: Tensor) -> Tensor:
        """X Wᵀ without a gradient, cached until the weight changes."""
        known = self._products.get(id(weight))
        if known is None or known[0] is not weight or known[1] != weight._version:
            shown = weight.detach() if self.kept is None else weight.detach() * self.kept
            value = torch.sparse.mm(self.x, shown.t()) if self.x.layout == torch.sparse_csr else self.x @ shown.t()
            self._products[id(weight)] = known = (weight, weight._version, value)
        return known[2]

    def transposed_product(self, g: Tensor) -> Tensor:
        """gᵀ X, the gradient of the weight if the product has the gradient ``g``."""
        if self.x.layout != torch.sparse_csr:
            found = g.t() @ self.x
        else:
            if self._transposed is None:
                columns = self.x.to_sparse_csc()
                shape = (self.size(1), self.size(0))
                self._transposed = csr(columns.ccol_indices(), columns.row_indices(), columns.values(), shape)
            found = torch.sparse.mm(self._transposed, g).t().contiguous()
        return found if self.kept is None else found * self.kept


class _Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, features: Features) -> Tensor:
        ctx.features = features
        product = features.product(weight)
        return product.view_as(product)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return ctx.features.transposed_product(g), None


_times: Callable[..., Tensor] = _Times.apply


class SelectedRows:
    """Rows of features, possibly repeated or reordered; their product is taken from the cached product of all rows."""

    def __init__(self, features: "Features | Perturbed", rows: Tensor) -> None:
        self.features = features
        self.rows = rows
        self.shape = torch.Size((rows.numel(), features.size(1)))
        self.dtype, self.device = features.dtype, features.device

    def size(self, dim: int) -> int:
        return self.shape[dim]

    def times(self, weight: Tensor) -> Tensor:
        return self.features.times(weight).index_select(0, self.rows)

    def matrix(self) -> Tensor:
        return select_rows(self.features.matrix(), self.rows)


class Perturbed:
    r"""Features plus a perturbation δ that is never built as a matrix.

    Its random start is redrawn from its seed, and the ascent steps are kept as a product of thin matrices.

    Let a loss depend on X + δ through products Y_k = (X + δ) W_kᵀ and let G_k be its gradient at Y_k. Then
    ∇_δ = Σ_k G_k W_k, so that a step δ ← δ + c·∇_δ moves Y_j by c Σ_k G_k (W_k W_jᵀ), and
    ‖∇_δ‖² = Σ_{kl} ⟨G_kᵀG_l, W_k W_lᵀ⟩. The gradient of W_j is Σ_t G_jᵀ(X + δ₀) + Σ_t G_jᵀ(δ_t − δ₀); the first sum
    needs X and δ₀ once, at the end.

    Backward passes do not set the gradients of the weights: :meth:`finish` does, for all passes together.

    Args:
        features: The features to perturb.
        epsilon: δ₀ is uniform in [−ε, ε].
        generator: Draws the seed of δ₀.
    """

    def __init__(self, features: Features, epsilon: float, generator: torch.Generator | None = None) -> None:
        self.features = features
        self.epsilon = epsilon
        self.shape, self.dtype, self.device = features.shape, features.dtype, features.device
        self._seed = int(torch.randint(2**62, (), generator=generator))
        self.handle = torch.zeros((), requires_grad=True)  # δ for autograd, whatever weights are frozen
        self._weights: dict[int, Tensor] = {}
        self._shift: dict[int, Tensor] = {}  # δ_t W_kᵀ
        self._received: dict[int, Tensor] = {}  # G_k of this pass
        self._total: dict[int, Tensor] = {}  # Σ_t G_k
        self._drift: dict[int, Tensor] = {}  # Σ_s c_s G_k, whose product with W_k is δ_t − δ₀
        self._cross: dict[tuple[int, int], Tensor] = {}  # Σ_t G_jᵀ drift_k

    def size(self, dim: int) -> int:
        return self.shape[dim]

    def times(self, weight: Tensor) -> Tensor:
        """(X + δ) Wᵀ."""
        with torch.autocast(self.device.type, enabled=False):
            return _perturbed_times(weight, self.handle, self)

    def select(self, rows: Tensor) -> SelectedRows:
        return SelectedRows(self, rows)

    @torch.no_grad()
    def matrix(self) -> Tensor:
        """X + δ as a matrix."""
        x = self.features.matrix()
        dense = x.to_dense() if x.layout == torch.sparse_csr else x.clone()
        for rows, block in self._start():
            dense[rows] += block
        for k, drift in self._drift.items():
            dense += drift @ self._weights[k]
        return dense

    @torch.no_grad()
    def squared_norm(self) -> Tensor:
        """‖∇_δ‖² of the last backward pass, float64 where it is too large or too small for the type of the features."""
        found = self._squared_norm(self._received)
        if _SMALL < float(found) < torch.inf:
            return found
        size = max((float(g.abs().max()) for g in self._received.values()), default=0.0)
        if not 0 < size < torch.inf:
            return found
        return self._squared_norm({k: g / size for k, g in self._received.items()}).double() * size**2

    def _squared_norm(self, received: dict[int, Tensor]) -> Tensor:
        found = torch.zeros((), dtype=self.dtype, device=self.device)
        for k, g in received.items():
            for j, h in received.items():
                weights = self._weights[k] @ self._weights[j].t()
                found += torch.sum((g.t() @ h) * weights)
        return found

    @torch.no_grad()
    def move(self, scale: float) -> None:
        """δ ← δ + scale·∇_δ."""
        for k, g in self._received.items():
            moved = g * scale
            for j, shift in self._shift.items():
                shift.addmm_(moved, self._weights[k] @ self._weights[j].t())
            self._drift[k] = moved if k not in self._drift else self._drift[k].add_(moved)
        self._received = {}

    def forget(self) -> None:
        """Leave the backward passes so far out of the gradients of the weights; δ stays where they moved it."""
        self._total, self._cross = {}, {}

    @torch.no_grad()
    def finish(self) -> None:
        """Add the gradients of all backward passes to the weights."""
        trained = {k: g for k, g in self._total.items() if self._weights[k].requires_grad}
        gradients = {k: self.features.transposed_product(g) for k, g in trained.items()}
        if trained:
            for rows, block in self._start():
                for k, g in trained.items():
                    gradients[k].addmm_(g[rows].t(), block)
        for (j, k), cross in self._cross.items():
            if j in gradients:
                gradients[j].addmm_(cross, self._weights[k])
        for k, gradient in gradients.items():
            weight = self._weights[k]
            weight.grad = gradient if weight.grad is None else weight.grad + gradient

    def product(self, weight: Tensor) -> Tensor:
        key = id(weight)
        if key not in self._shift:
            self._weights[key] = weight
            shift = torch.empty(self.size(0), weight.size(0), dtype=self.dtype, device=self.device)
            for rows, block in self._start():
                torch.mm(block, weight.t(), out=shift[rows])
            for k, drift in self._drift.items():
                shift.addmm_(drift, self._weights[k] @ weight.t())
            self._shift[key] = shift
        return self.features.product(weight) + self._shift[key]

    def receive(self, weight: Tensor, g: Tensor) -> None:
        key = id(weight)
        for k, drift in self._drift.items():
            cross = g.t() @ drift
            self._cross[key, k] = cross if (key, k) not in self._cross else self._cross[key, k].add_(cross)
        self._received[key] = g if key not in self._received else self._received[key] + g
        self._total[key] = g.clone() if key not in self._total else self._total[key].add_(g)

    def _start(self) -> Iterator[tuple[slice, Tensor]]:
        """δ₀ in blocks of rows, the same on every call."""
        generator = torch.Generator().manual_seed(self._seed)
        step = max(1, _BLOCK // max(1, self.size(1)))
        for first in range(0, self.size(0), step):
            rows = slice(first, min(first + step, self.size(0)))
            block = torch.empty(rows.stop - first, self.size(1), dtype=self.dtype)
            yield rows, block.uniform_(-self.epsilon, self.epsilon, generator=generator).to(self.device)


FeatureMatrix = Tensor | Features | SelectedRows | Perturbed
"""All forms that the features of a graph can have."""


def rows_of(x: FeatureMatrix, rows: slice) -> FeatureMatrix:
    """A block of consecutive rows."""
    check_file(x)
    if isinstance(x, Tensor):
        return x[rows] if x.layout != torch.sparse_csr else select_rows(x, _range(rows, x.device))
    if isinstance(x, Features):
        part = rows_of(x.x, rows)
        assert isinstance(part, Tensor)
        return Features(part, x.kept)
    return take_rows(x, _range(rows, x.device))


def take_rows(x: FeatureMatrix, rows: Tensor) -> FeatureMatrix:
    """These rows, in this order."""
    if isinstance(x, Tensor):
        return select_rows(x, rows)
    return SelectedRows(x.features, x.rows[rows]) if isinstance(x, SelectedRows) else x.select(rows)


def _range(rows: slice, device: torch.device) -> Tensor:
    return torch.arange(rows.start, rows.stop, device=device)


class _PerturbedTimes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, handle: Tensor, features: Perturbed) -> Tensor:
        ctx.features, ctx.weight = features, weight
        return features.product(weight)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, None, None]:
        ctx.features.receive(ctx.weight, g)
        return None, None, None


_perturbed_times: Callable[..., Tensor] = _PerturbedTimes.apply
