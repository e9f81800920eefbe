"""Message passing as the product of a sparse matrix and the nodes' features.

On a CPU that is about ten times quicker than gathering and scattering along the edges, PyG's way for an ``edge_index``.
The matrix is made once for all the layers of an encoder, and its transpose, for the backward, once for all of theirs.
"""

import threading
import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args

import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from mario.errors import MarioError

Normalization = Literal["symmetric", "mean", "sum"]
_CSR = tuple[Tensor, Tensor, Tensor]  # starts of the rows, columns, values

# torch says so once for every process; there is nothing a user could do about it.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")

_FULL = 1 / 8  # of all entries; with more of them there a dense product is quicker
_DENSE_BYTES = 2**28  # that a matrix may take to be kept dense
_SMALL = 2**19  # multiplications below which no product is measured: all take a fraction of a millisecond
_SAMPLE = 2**22  # multiplications in a measurement, milliseconds
_LOOP = 2**32 + 1  # times i is the edge from i to i, target · 2³² + source


class Propagation:
    """A linear map of messages: row i of the result is the weighted sum of the rows that reach node i.

    Made by :meth:`of` and :meth:`from_matrix`. The gradient multiplies by the transpose, which is made at the first
    backward and kept.

    Attributes:
        shape: Number of nodes that receive, number of nodes that send.
        dtype: Of the weights. Features of another dtype are multiplied by weights that are rounded to theirs.

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
        csr: _CSR | None = None,
        full: Tensor | None = None,
    ) -> None:
        # Plain tensors, as torch can neither deep-copy a sparse one nor share a block of its rows.
        self.shape = shape
        self._csr = csr
        self._full = full
        self._symmetric: bool | None = None  # known with the transpose
        self._transpose: Propagation | None = None
        self._rounded: dict[torch.dtype, Tensor] = {}
        self._products: dict[tuple[int, torch.dtype], str] = {}

    @classmethod
    def of(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        normalization: Normalization = "symmetric",
        dtype: torch.dtype | None = None,
    ) -> "Propagation":
        """The map whose matrix is :func:`propagation_matrix`, with the same arguments."""
        return cls._of_csr((num_nodes, num_nodes), *_weights(edge_index, num_nodes, normalization, dtype))

    @classmethod
    def from_matrix(cls, matrix: Tensor) -> "Propagation":
        """The map by a ready matrix with a row for each node that receives, sparse CSR or dense.

        A dense matrix gets a gradient. The map by a sparse one, which gets none, is remembered as by
        :func:`propagation_of`, for as long as the matrix lives.
        """
        if matrix.dim() != 2 or matrix.layout not in (torch.sparse_csr, torch.strided):
            raise MarioError(
                f"matrix must be dense or torch.sparse_csr with 2 dimensions, got {matrix.layout} with {matrix.dim()}"
            )
        if matrix.layout == torch.strided:
            return cls((matrix.size(0), matrix.size(1)), full=matrix)
        if matrix.requires_grad:
            raise MarioError(
                "matrix is sparse and requires grad, which only a dense one gets: detach it or make it dense"
            )
        return remembered(matrix, None, lambda: cls._of_sparse(matrix))

    @classmethod
    def _of_sparse(cls, matrix: Tensor) -> "Propagation":
        shape = (matrix.size(0), matrix.size(1))
        # .data, as torch would have its views keep the matrix alive.
        crow, col, value = (part.data for part in (matrix.crow_indices(), matrix.col_indices(), matrix.values()))
        # A column out of range would not fail but read memory that is not the features'.
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
            return cls(shape, full=torch.sparse_csr_tensor(crow, col, value, shape, check_invariants=False).to_dense())
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
        """The map along the same edges the other way, made once. It is the map itself where its matrix is symmetric."""
        if self._symmetric is None:
            self._transpose = self._transposed()
            self._symmetric = self._transpose is None
        # No reference to itself, nor from the transpose to this: a map is to go with the last that uses it.
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
        """The messages that reach each node, one row a node; ``x`` is dense, one row a node that sends."""
        if x.dim() != 2 or x.size(0) != self.shape[1] or x.layout != torch.strided:
            raise MarioError(f"x must be dense of shape [{self.shape[1]}, width], got {x.layout} {list(x.shape)}")
        if self._full is not None:
            return self._full.to(x.dtype) @ x
        return _Product.apply(x, self, False)

    def rows(self, start: int, stop: int) -> "Propagation":
        """The map to the nodes from ``start`` to before ``stop`` alone; weights and columns are shared."""
        if not 0 <= start <= stop <= self.shape[0]:
            raise MarioError(f"start and stop must be in order and within 0 to {self.shape[0]}, got {start} and {stop}")
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
        csr, size = (crow, col, value), (x.size(1), x.dtype)
        if size not in self._products:
            self._products[size] = _quickest(csr, x)
        return _PRODUCTS[self._products[size]](csr, x)


def _quickest(csr: _CSR, x: Tensor) -> str:
    """The name of the quickest product for a matrix and features of these sizes."""
    products = dict(_PRODUCTS)
    if x.device.type == "cpu" and x.dtype not in (torch.float32, torch.float64):
        del products["csr"]  # torch has none
    return next(iter(products))


class _Product(torch.autograd.Function):
    """P x, or Pᵀ x where it is ``backwards``; the gradient is the other of the two."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, propagation: Propagation, backwards: bool) -> Tensor:
        ctx.of = propagation, backwards
        return (propagation.transpose if backwards else propagation)._multiply(x.detach().contiguous())

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None]:
        propagation, backwards = ctx.of
        return _Product.apply(outer[0], propagation, not backwards), None, None


def _by_csr(csr: _CSR, x: Tensor) -> Tensor:
    matrix = torch.sparse_csr_tensor(*csr, size=(csr[0].numel() - 1, x.size(0)), check_invariants=False)
    if x.device.type != "cpu" or not torch.backends.mkl.is_available():
        return matrix @ x
    # What @ does but for zeros that it writes first, up to a third of its time.
    out = x.new_empty(matrix.size(0), x.size(1))
    return torch.addmm(out, matrix, x, beta=0, out=out)


def _by_bag(csr: _CSR, x: Tensor) -> Tensor:
    # A node's neighbors are a bag of words.
    crow, col, value = csr
    return F.embedding_bag(col, x, crow, mode="sum", per_sample_weights=value, include_last_offset=True)


def _by_gather(csr: _CSR, x: Tensor) -> Tensor:
    crow, col, value = csr
    messages = x.index_select(0, col).mul_(value.unsqueeze(1))
    return x.new_zeros(crow.numel() - 1, x.size(1)).index_add_(0, _owners(crow), messages)


# The default first.
_PRODUCTS: dict[str, Callable[[_CSR, Tensor], Tensor]] = {
    "csr": _by_csr,
    "bag": _by_bag,
    "gather": _by_gather,
}


def propagation_of(
    edge_index: Tensor,
    num_nodes: int,
    normalization: Normalization = "symmetric",
    dtype: torch.dtype | None = None,
) -> Propagation:
    """:meth:`Propagation.of`, remembered for as long as the tensor ``edge_index`` lives and is not changed in place.

    Changes that torch does not see, through ``.data`` or a numpy array, go unseen here too.

    Example:
        >>> edge_index = torch.tensor([[0], [1]])
        >>> propagation_of(edge_index, 2) is propagation_of(edge_index, 2)
        True
    """
    dtype = dtype or torch.get_default_dtype()
    key = (num_nodes, normalization, dtype)
    return remembered(edge_index, key, lambda: Propagation.of(edge_index, num_nodes, normalization, dtype))


T = TypeVar("T")

# Of each tensor its version and the maps made of it. No map may refer to that tensor, which would then live on.
_known: Any = WeakTensorKeyDictionary()
_lock = threading.Lock()


def remembered(tensor: Tensor, key: object, make: Callable[[], T]) -> T:
    """What ``make`` makes of ``tensor``, once for as long as that lives and is not changed in place."""
    if tensor.is_inference():  # has no version that would show a change
        return make()
    version = tensor._version
    with _lock:
        known = _known.get(tensor)
        if known is None or known[0] != version:
            known = _known[tensor] = (version, {})
    # Made outside the lock; where two threads make it at once, the first stays.
    found: dict[object, T] = known[1]
    return found[key] if key in found else found.setdefault(key, make())


def forget(tensor: Tensor) -> None:
    """Let go of what is :func:`remembered` of ``tensor``."""
    with _lock:
        _known.pop(tensor, None)


def propagation_matrix(
    edge_index: Tensor,
    num_nodes: int,
    normalization: Normalization = "symmetric",
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The transposed adjacency as a CSR matrix: row i holds the weights of the messages that reach node i.

    Args:
        edge_index: ``[2, E]``, sources above targets. Repeated edges count as often as they stand there.
        num_nodes: Number of rows and columns.
        normalization: ``symmetric`` is D^-1/2 (A + I) D^-1/2 (GCN, Kipf & Welling 2017), ``mean`` divides by the
            in-degree (GraphSAGE), ``sum`` is A + I (GIN with its ε at 0).
        dtype: Of the weights; torch's default where it is ``None``.

    Example:
        >>> propagation_matrix(torch.tensor([[0, 1], [1, 0]]), 2).to_dense()
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
    """
    crow, col, value = _weights(edge_index, num_nodes, normalization, dtype)
    size = (num_nodes, num_nodes)
    return torch.sparse_csr_tensor(crow.long(), col.long(), value, size=size, check_invariants=False)


def entries(matrix: Tensor) -> Tensor:
    """The edges, from column to row, along which a sparse CSR matrix carries something."""
    return torch.stack([matrix.col_indices(), _owners(matrix.crow_indices())])


def _weights(edge_index: Tensor, num_nodes: int, normalization: Normalization, dtype: torch.dtype | None) -> _CSR:
    """Starts of the rows, columns in order, and weights of :func:`propagation_matrix`."""
    if normalization not in get_args(Normalization):
        raise MarioError(f"normalization must be one of {', '.join(get_args(Normalization))}, got '{normalization}'")
    if num_nodes >= 2**31:
        raise MarioError(f"num_nodes must be below 2^31, got {num_nodes}")
    edge_index = edge_index.to(torch.int64)
    if edge_index.numel():
        low, high = (int(end) for end in edge_index.aminmax())
        # A column out of range would not fail but read memory that is not the features'.
        if low < 0 or high >= num_nodes:
            raise MarioError(f"edge_index must hold nodes 0 to {num_nodes - 1}, got {low} to {high}")
    source, target = edge_index
    degree = torch.bincount(target, minlength=num_nodes)
    # Each edge as one number: nothing has to follow the order, and numpy's vectorized sort is ten times an argsort.
    given = source.numel()
    edges = source.new_empty(given + (0 if normalization == "mean" else num_nodes))
    torch.add(source, target, alpha=2**32, out=edges[:given])
    kept = edges.numel()
    if normalization != "mean":
        degree += 1
        torch.arange(0, num_nodes * _LOOP, _LOOP, out=edges[given:])
    if normalization == "symmetric" and (loops := (source == target).nonzero().view(-1)).numel():
        degree -= torch.bincount(target[loops], minlength=num_nodes)
        edges[loops] = torch.iinfo(torch.int64).max  # sorted to the end and left out there, as filtering is slow
        kept -= loops.numel()
    if edges.device.type == "cpu":
        edges.numpy().sort()
    else:
        edges = edges.sort().values
    edges = edges[:kept]
    index = torch.int32 if edges.numel() < 2**31 else torch.int64  # MKL's own is int32
    col = edges.bitwise_and_(2**32 - 1).to(index)
    crow = torch.zeros(num_nodes + 1, dtype=index, device=edges.device)
    torch.cumsum(degree, 0, out=crow[1:])
    dtype = dtype or torch.get_default_dtype()
    if normalization == "sum":
        return crow, col, torch.ones(col.numel(), dtype=dtype, device=col.device)
    scale = degree.to(dtype).pow_(-0.5 if normalization == "symmetric" else -1)
    value = scale.repeat_interleave(degree, output_size=col.numel())
    return crow, col, value.mul_(scale.index_select(0, col)) if normalization == "symmetric" else value


def _transposed(csr: _CSR, shape: tuple[int, int]) -> _CSR:
    crow, col, value = csr
    if value.device.type != "cpu" or value.dtype not in (torch.float32, torch.float64):
        order = col.sort(stable=True).indices
        starts = torch.zeros(shape[1] + 1, dtype=crow.dtype, device=crow.device)
        torch.cumsum(torch.bincount(col, minlength=shape[1]), 0, out=starts[1:])
        return starts, _owners(crow).to(col.dtype)[order], value[order]
    # Two to nine times as quick as torch's, as it counts and does not sort.
    matrix = sp.csr_array((value.numpy(), col.numpy(), crow.numpy()), shape=shape).tocsc()
    return torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data)


def _owners(crow: Tensor) -> Tensor:
    """The row of each entry."""
    return torch.arange(crow.numel() - 1, device=crow.device).repeat_interleave(crow.diff())


def _bucket(size: int) -> int:
    """The power of two up to ``size``."""
    return 1 << max(1, size).bit_length() - 1
