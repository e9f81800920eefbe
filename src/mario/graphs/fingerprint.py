"""A short hash of a graph."""

import hashlib

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.graphs.paging import blocks


def fingerprint(data: Data) -> str:
    """A hash of all tensors of ``data``: names, types, shapes and every number.

    Plain attributes, such as the name of a dataset, do not count.

    Example:
        >>> one = Data(x=torch.zeros(2, 3), edge_index=torch.tensor([[0], [1]]))
        >>> other = Data(x=torch.ones(2, 3), edge_index=one.edge_index)
        >>> fingerprint(one) == fingerprint(one.clone()), fingerprint(one) == fingerprint(other)
        (True, False)
    """
    digest = hashlib.blake2b(digest_size=8)
    for key, value in sorted(data.to_dict().items()):
        for part in _parts(key, value) if isinstance(value, Tensor) else ():
            digest.update(f"{key} {tuple(value.shape)} {part.dtype} {tuple(part.shape)}".encode())
            for block in blocks(part.detach()) if part.dim() else (part.detach(),):
                flat = block.cpu().contiguous().flatten()
                # One number may have any stride, which a view of its bytes refuses.
                digest.update(flat.as_strided(flat.shape, (1,)).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _parts(key: str, value: Tensor) -> tuple[Tensor, ...]:
    if value.layout != torch.strided:
        value = value.to_sparse_csr()
        return value.crow_indices(), value.col_indices(), value.values()
    return value.unbind() if key == "edge_index" else (value,)
