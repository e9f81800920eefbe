"""Message passing as the product of a sparse matrix and the nodes' features.

On a CPU this is about ten times faster than gathering and scattering along the edges, as PyG does for an
``edge_index``. The matrix is built once for all layers of an encoder, and so is its transpose for the backward pass.
"""

from collections.abc import Callable
from typing import Any

import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from mario.encoders.adjacency import CSRParts, Normalization, normalized_adjacency
from mario.errors import MarioError
from mario.graphs.remembered import remembered
from mario.graphs.sparse import csr, row_of_entries

_FULL = 1 / 8  # fraction of nonzero entries above which a dense product is faster
_DENSE_BYTES = 2**28  # largest matrix to keep dense
# In single precision on a CPU, `embedding_bag` takes a third to a half of the time of MKL's CSR product for features
# this wide, and about the same for narrower ones (benchmarks/propagation_way.py; AMD EPYC, torch 2.13). Products of
# fewer multiplications take a fraction of a millisecond either way. In double precision CSR is faster at all sizes.
_WIDE, _LARGE = 16, 2**19


class Propagation:
    """A linear map of messages: row i of the result is the weighted sum of the rows that reach node i.

    Created by :meth:`of` and :meth:`from_matrix`. The gradient multiplies by the transpose, which is built in the first
    backward pass and kept.

    Attributes:
        shape: Number of receiving nodes, number of sending nodes.
        dtype: Dtype of the weights. For features of another dtype, the weights are converted to that dtype.

    Example:
        >>> mean = Propagation.of(torch.tensor([[0, 1], [2, 2]]), 3, "mean")
        >>> mean(torch.tensor([[2.0], [4.0], [9.0]]))
        tensor([[0.],
                [0.],
                [3.]])
    """

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        csr: CSRParts | None = None,
        full: Tensor | None = None,
    ) -> None:
        # Plain tensors: torch can neither deep-copy a sparse tensor nor share a block of its rows.
        self.shape = shape
        self._csr = csr
        self._full = full
        self._symmetric: bool | None = None  # unknown until the transpose is needed
        self._transpose: Propagation | None = None
        self._rounded: dict[torch.dtype, Tensor] = {}

    @classmethod
    def of(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        normalization: Normalization = "symmetric",
        dtype: torch.dtype | None = None,
        edge_weight: Tensor | None = None,
    ) -> "Propagation":
        """The map whose matrix is :func:`propagation_matrix`, with the same arguments."""
        csr = normalized_adjacency(edge_index, num_nodes, normalization, dtype, edge_weight)
        return cls._of_csr((num_nodes, num_nodes), *csr)

    @classmethod
    def from_matrix(cls, matrix: Tensor) -> "Propagation":
        """The map given by a ready matrix, sparse CSR or dense, with one row per receiving node.

        A dense matrix gets a gradient. A sparse matrix gets none; its map is cached for as long as the matrix lives, as
        by :func:`propagation_of`.
        """
        if matrix.dim() != 2 or matrix.layout not in (torch.sparse_csr, torch.strided):
            raise MarioError(
                f"matrix must be dense or torch.sparse_csr with 2 dimensions, got {matrix.layout} with {matrix.dim()}"
            )
        if matrix.layout == torch.strided:
            return cls((matrix.size(0), matrix.size(1)), full=matrix)
        if matrix.requires_grad:
            raise MarioError(
                "matrix is sparse and requires grad, which only a dense matrix supports: detach it or make it dense"
            )
        return remembered(matrix, None, lambda: cls._of_sparse(matrix))

    @classmethod
    def _of_sparse(cls, matrix: Tensor) -> "Propagation":
        shape = (matrix.size(0), matrix.size(1))
        # .data, because torch's views would keep the matrix alive.
        crow, col, value = (part.data for part in (matrix.crow_indices(), matrix.col_indices(), matrix.values()))
        # A column out of range would read foreign memory instead of failing.
        if col.numel():
            low, high = (int(end) for end in col.aminmax())
            if low < 0 or high >= shape[1]:
                raise MarioError(f"matrix must have columns 0 to {shape[1] - 1}, got {low} to {high}")
        if max(shape[1], col.numel()) < 2**31:
            crow, col = crow.to(torch.int32), col.to(torch.int32)
        return cls._of_csr(shape, crow, col, value)

    @classmethod
    def _of_csr(cls, shape: tuple[int, int], crow: Tensor, col: Tensor, value: Tensor) -> "Propagation":
        size = shape[0] * shape[1]
        if col.numel() > _FULL * size and size * value.element_size() <= _DENSE_BYTES:
            return cls(shape, full=csr(crow, col, value, shape).to_dense())
        return cls(shape, csr=(crow, col, value))

    @property
    def dtype(self) -> torch.dtype:
        return self._values.dtype

    @property
    def device(self) -> torch.device:
        return self._values.device

    @property
    def _values(self) -> Tensor:
        if self._full is not None:
            return self._full
        assert self._csr is not None
        return self._csr[2]

    @property
    def transpose(self) -> "Propagation":
        """The map along the reversed edges, built once; for a symmetric matrix, the map itself."""
        if self._symmetric is None:
            self._transpose = self._transposed()
            self._symmetric = self._transpose is None
        # No reference to itself, nor from the transpose to this: a map is freed with its last user.
        return self._transpose or self

    def _transposed(self) -> "Propagation | None":
        shape = (self.shape[1], self.shape[0])
        if self._csr is None:
            assert self._full is not None
            return Propagation(shape, full=self._full.t())
        csr = _transposed(self._csr, self.shape)
        if all(torch.equal(mine, other) for mine, other in zip(self._csr, csr, strict=True)):
            return None
        return Propagation(shape, csr=csr)

    def __call__(self, x: Tensor) -> Tensor:
        """The messages that reach each node, one row per node; ``x`` is dense, one row per sending node."""
        if x.dim() != 2 or x.size(0) != self.shape[1] or x.layout != torch.strided:
            raise MarioError(f"x must be dense of shape [{self.shape[1]}, width], got {x.layout} {list(x.shape)}")
        if self._full is not None:
            return self._full.to(x.dtype) @ x
        return _product(x, self, False)

    def rows(self, start: int, stop: int) -> "Propagation":
        """The map restricted to receivers ``start`` to ``stop - 1``; weights and columns are shared."""
        if not 0 <= start <= stop <= self.shape[0]:
            raise MarioError(f"start and stop must ascend within 0 to {self.shape[0]}, got {start} and {stop}")
        shape = (stop - start, self.shape[1])
        if self._csr is None:
            assert self._full is not None
            return Propagation(shape, full=self._full[start:stop])
        crow, col, value = self._csr
        crow = crow[start : stop + 1]
        first, last = int(crow[0]), int(crow[-1])
        return Propagation(shape, csr=(crow - first, col[first:last], value[first:last]))

    def _multiply(self, x: Tensor) -> Tensor:
        assert self._csr is not None
        crow, col, value = self._csr
        if x.dtype != value.dtype:
            if x.dtype not in self._rounded:
                self._rounded[x.dtype] = value.to(x.dtype)
            value = self._rounded[x.dtype]
        return _multiply((crow, col, value), x)


class _Product(torch.autograd.Function):
    """P x, or Pᵀ x if ``backwards``; the gradient is the other of the two."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, propagation: Propagation, backwards: bool) -> Tensor:
        ctx.of = propagation, backwards
        return (propagation.transpose if backwards else propagation)._multiply(x.detach().contiguous())

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None]:
        propagation, backwards = ctx.of
        return _product(outer[0], propagation, not backwards), None, None


_product: Callable[..., Tensor] = _Product.apply


def _multiply(parts: CSRParts, x: Tensor) -> Tensor:
    """The product by whichever kernel is faster for this size and dtype."""
    on_cpu, wide = x.device.type == "cpu", x.size(1) >= _WIDE and parts[1].numel() * x.size(1) >= _LARGE
    # On the CPU, torch has a CSR product for single and double precision only.
    by_bag = on_cpu and (wide if x.dtype == torch.float32 else x.dtype != torch.float64)
    return _by_bag(parts, x) if by_bag else _by_csr(parts, x)


def _by_csr(parts: CSRParts, x: Tensor) -> Tensor:
    matrix = csr(*parts, (parts[0].numel() - 1, x.size(0)))
    if x.device.type != "cpu" or not torch.backends.mkl.is_available():
        return matrix @ x
    # As @ does, but without first writing zeros, which takes up to a third of its time.
    out = x.new_empty(matrix.size(0), x.size(1))
    return torch.addmm(out, matrix, x, beta=0, out=out)


def _by_bag(csr: CSRParts, x: Tensor) -> Tensor:
    # A node's neighbors are a bag of words.
    crow, col, value = csr
    return F.embedding_bag(col, x, crow, mode="sum", per_sample_weights=value, include_last_offset=True)


def propagation_of(
    edge_index: Tensor,
    num_nodes: int,
    normalization: Normalization = "symmetric",
    dtype: torch.dtype | None = None,
    edge_weight: Tensor | None = None,
) -> Propagation:
    """:meth:`Propagation.of`, cached as long as ``edge_index`` and ``edge_weight`` live and are not changed in place.

    Changes that torch does not track, through ``.data`` or a numpy array, are not noticed.

    Example:
        >>> edge_index = torch.tensor([[0], [1]])
        >>> propagation_of(edge_index, 2) is propagation_of(edge_index, 2)
        True
    """
    dtype = dtype or torch.get_default_dtype()
    key = (num_nodes, normalization, dtype)

    def make() -> Propagation:
        return Propagation.of(edge_index, num_nodes, normalization, dtype, edge_weight)

    return remembered(edge_index, key, make, edge_weight)


def _transposed(csr: CSRParts, shape: tuple[int, int]) -> CSRParts:
    crow, col, value = csr
    if value.device.type != "cpu" or value.dtype not in (torch.float32, torch.float64):
        order = col.sort(stable=True).indices
        starts = torch.zeros(shape[1] + 1, dtype=crow.dtype, device=crow.device)
        torch.cumsum(torch.bincount(col, minlength=shape[1]), 0, out=starts[1:])
        return starts, row_of_entries(crow).to(col.dtype)[order], value[order]
    # Two to nine times as fast as torch's, because it counts instead of sorting.
    matrix = sp.csr_array((value.numpy(), col.numpy(), crow.numpy()), shape=shape).tocsc()
    return torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data)
