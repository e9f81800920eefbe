"""Embeddings in named blocks of columns: a node's own features beside what an encoder makes of its neighborhood.

A block is never written out as a whole unless asked for: features on disk stay there, sparse ones stay sparse, and
centers are subtracted from the rows that are read, or from the result of a product.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from mario.errors import MarioError
from mario.graphs.paging import count_not_finite, gather, mapping_of, release
from mario.graphs.sparse import select_rows

_ROWS = 2**14


@dataclass(frozen=True, eq=False)
class Block:
    """One block of columns: row i is ``(values[i] - centers[group[i]]) * scale``.

    Args:
        values: A dense or sparse CSR matrix [N, F]; it may be on disk.
        scale: One number for the whole block.
        centers: What is subtracted [D, F], one row per group of nodes, or ``None``.
        group: The row of ``centers`` for each node [N].

    Example:
        >>> block = Block(torch.eye(2), 0.5, torch.tensor([[1.0, 1.0]]), torch.tensor([0, 0]))
        >>> block.dense()
        tensor([[ 0.0000, -0.5000],
                [-0.5000,  0.0000]])
    """

    values: Tensor
    scale: float = 1.0
    centers: Tensor | None = None
    group: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.size(0), self.values.size(1)

    @property
    def is_sparse(self) -> bool:
        return bool(self.values.layout == torch.sparse_csr)

    def rows(self, index: Tensor) -> "Block":
        """The rows in ``index``, ids or a mask, in that order; rows on disk are read."""
        index = index.nonzero().view(-1) if index.dtype == torch.bool else index
        values = gather(self.values, index) if mapping_of(self.values) is not None else select_rows(self.values, index)
        return replace(self, values=values, group=None if self.group is None else self.group[index])

    def to(self, dtype: torch.dtype) -> "Block":
        """The block with its values in ``dtype``, for many products of that type."""
        return replace(self, values=self.values.to(dtype))

    def dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """The block as a dense matrix."""
        found = torch.empty(self.shape, dtype=dtype or self.values.dtype)
        self.write(found)
        return found

    def write(self, out: Tensor) -> None:
        """Write the block into ``out`` [N, F], in its type, a few rows at a time."""
        parts = self._sparse_parts() if self.is_sparse else self._parts()
        groups = None if self.group is None else self.group.split(_ROWS)
        for number, (part, place) in enumerate(zip(parts, out.split(_ROWS), strict=True)):
            place.copy_(part)
            if self.centers is not None and groups is not None:
                place -= self.centers[groups[number]].to(out.dtype)
            place.mul_(self.scale)

    def numpy(self) -> Any:
        """The block for scikit-learn, in double precision: a SciPy matrix if it is sparse and not centered."""
        if self.is_sparse and self.centers is None:
            return self._scipy.astype(np.float64) * self.scale
        return self.dense(torch.float64).numpy()

    def matmul(self, weight: Tensor) -> Tensor:
        """The product [N, k] with ``weight`` [F, k], in its type."""
        if self.is_sparse:
            found = torch.from_numpy(self._scipy @ weight.numpy())
        else:
            found = torch.cat([part.to(weight.dtype) @ weight for part in self._parts()])
        if self.centers is not None and self.group is not None:
            found -= (self.centers.to(weight.dtype) @ weight)[self.group]
        return found.mul_(self.scale)

    def back(self, errors: Tensor) -> Tensor:
        """The product [F, k] of the transposed block with ``errors`` [N, k], in their type."""
        if self.is_sparse:
            found = torch.from_numpy(self._scipy.T @ errors.numpy())
        else:
            found = errors.new_zeros(self.shape[1], errors.size(1))
            for part, error in zip(self._parts(), errors.split(_ROWS), strict=True):
                found.addmm_(part.to(errors.dtype).t(), error)
        if self.centers is not None and self.group is not None:
            sums = errors.new_zeros(self.centers.size(0), errors.size(1)).index_add_(0, self.group, errors)
            found -= self.centers.to(errors.dtype).t() @ sums
        return found.mul_(self.scale)

    def group_sums(self, group: Tensor, groups: int) -> Tensor:
        """The sums [groups, F] of the ``values`` of the nodes of each group, in double precision."""
        if self.is_sparse:
            nodes = np.arange(len(group))
            members = sparse.csr_matrix((np.ones(len(group)), (group.numpy(), nodes)), (groups, len(group)))
            return torch.from_numpy((members @ self._scipy).toarray())
        sums = torch.zeros(groups, self.shape[1], dtype=torch.float64)
        for part, of in zip(self._parts(), group.split(_ROWS), strict=True):
            sums.index_add_(0, of, part.double())
        return sums

    def squares(self) -> float:
        """The sum of the squares of all ``values``."""
        if self.is_sparse:
            return float(self.values.values().double().square().sum())
        return sum(float(part.double().square().sum()) for part in self._parts())

    def _parts(self) -> Iterator[Tensor]:
        for part in self.values.split(_ROWS):
            yield part
            release(self.values)

    def _sparse_parts(self) -> Iterator[Tensor]:
        for start in range(0, self.shape[0], _ROWS):
            yield torch.from_numpy(self._scipy[start : start + _ROWS].toarray())

    @cached_property
    def _scipy(self) -> Any:
        x = self.values
        return sparse.csr_matrix((x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()), self.shape)


class BlockMatrix(Mapping[str, Block]):
    """Named blocks of columns for the same nodes, in order.

    ``numpy.asarray`` and :meth:`dense` write all of it out, as ``transform`` does; :meth:`rows` and the products of its
    blocks do not.

    Example:
        >>> z = BlockMatrix({"x": Block(torch.eye(2)), "graph": Block(torch.ones(2, 3), 0.5)})
        >>> z.shape, z.columns["graph"], z.dense()[0].tolist()
        ((2, 5), slice(2, 5, None), [1.0, 0.0, 0.5, 0.5, 0.5])
    """

    def __init__(self, blocks: Mapping[str, Block]) -> None:
        if not blocks:
            raise MarioError("a block matrix needs at least one block")
        rows = {name: block.shape[0] for name, block in blocks.items()}
        if len(set(rows.values())) > 1:
            raise MarioError(f"blocks must have one row per node, all the same number; got {rows}")
        self._blocks = dict(blocks)

    @classmethod
    def of(cls, z: "BlockMatrix | Tensor | np.ndarray[Any, Any] | Mapping[str, Any]") -> "BlockMatrix":
        """``z`` itself, a matrix as one block, or matrices by name; all entries must be finite."""
        if isinstance(z, BlockMatrix):
            return z
        parts = z if isinstance(z, Mapping) else {"z": z}
        return cls({name: Block(_matrix(name, part)) for name, part in parts.items()})

    def __getitem__(self, name: str) -> Block:
        return self._blocks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks)

    def __len__(self) -> int:
        """The number of blocks."""
        return len(self._blocks)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of nodes and of all columns."""
        blocks = list(self._blocks.values())
        return blocks[0].shape[0], sum(block.shape[1] for block in blocks)

    @property
    def columns(self) -> dict[str, slice]:
        """The columns of each block in :meth:`dense`."""
        found, start = {}, 0
        for name, block in self._blocks.items():
            found[name] = slice(start, start + block.shape[1])
            start += block.shape[1]
        return found

    def rows(self, index: Tensor) -> "BlockMatrix":
        """The rows in ``index``, ids or a mask, in that order."""
        return BlockMatrix({name: block.rows(index) for name, block in self._blocks.items()})

    def dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """All columns side by side."""
        kinds = [block.values.dtype for block in self._blocks.values()]
        kind = dtype or functools.reduce(torch.promote_types, kinds)
        found = torch.empty(self.shape, dtype=kind)
        for name, columns in self.columns.items():
            self[name].write(found[:, columns])
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.dense().numpy(), dtype=dtype)


def _matrix(name: str, part: Any) -> Tensor:
    try:
        matrix = part if isinstance(part, Tensor) else torch.as_tensor(np.asarray(part))
    except (TypeError, ValueError) as error:
        raise MarioError(f"block '{name}' must be a matrix of numbers, got {type(part).__name__} ({error})") from None
    if matrix.dim() != 2 or not matrix.is_floating_point() or matrix.numel() == 0:
        raise MarioError(
            f"block '{name}' must be a matrix of floating-point numbers that is not empty, "
            f"got {matrix.dtype} of shape {tuple(matrix.shape)}"
        )
    if bad := count_not_finite(matrix.values() if matrix.layout == torch.sparse_csr else matrix):
        raise MarioError(f"block '{name}' holds {bad} NaN or infinite entries")
    return matrix.detach().cpu()
