"""A short hash of a graph."""

import hashlib
from collections.abc import Iterator

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.graphs.paging import release

# A larger tensor is sampled: this many evenly spaced blocks, of this many numbers in total. That suffices to detect
# other data and reads little of a mapped file.
_BLOCKS, _MOST = 64, 2**22


def fingerprint(data: Data) -> str:
    """A hash of what training sees of ``data``.

    It covers features, edges with their weights and attributes, labels, the training mask, environments, and the
    assignment of nodes to graphs.

    Example:
        >>> one = Data(x=torch.zeros(2, 3), edge_index=torch.tensor([[0], [1]]))
        >>> other = Data(x=torch.ones(2, 3), edge_index=one.edge_index)
        >>> fingerprint(one) == fingerprint(one.clone()), fingerprint(one) == fingerprint(other)
        (True, False)
    """
    digest = hashlib.blake2b(digest_size=8)
    for key in ("x", "edge_index", "y", "train_mask", "env_id", "batch", "edge_weight", "edge_attr"):
        value = data.get(key)
        for part in _parts(key, value) if isinstance(value, Tensor) else ():
            digest.update(f"{key} {part.dtype} {tuple(part.shape)}".encode())
            for block in _some(part.detach()):
                digest.update(block.cpu().numpy().tobytes())
            release(part)
    return digest.hexdigest()


def _parts(key: str, value: Tensor) -> tuple[Tensor, ...]:
    if value.layout == torch.sparse_csr:
        return value.crow_indices(), value.col_indices(), value.values()
    return value.unbind() if key == "edge_index" else (value,)


def _some(part: Tensor) -> Iterator[Tensor]:
    """All rows of ``part``, or evenly spaced blocks of them."""
    if part.numel() <= _MOST:
        yield part
        return
    rows = part.size(0)
    height = min(rows, max(1, _MOST // _BLOCKS * rows // part.numel()))
    for start in torch.linspace(0, rows - height, _BLOCKS, dtype=torch.float64).long().tolist():
        yield part[start : start + height]
