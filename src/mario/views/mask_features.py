"""Feature masking."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.views.view import View, check_probability


class MaskFeatures(View):
    """Sets each feature column to zero for all nodes with probability ``p``, as in `"Deep Graph Contrastive
    Representation Learning" <https://arxiv.org/abs/2006.04131>`_ (GRACE).

    ``x`` may be dense or sparse CSR; a sparse one keeps its pattern, with zeros stored in the masked columns.

    Args:
        p: probability that a column is masked.

    Example:
        >>> data = Data(x=torch.ones(2, 4))
        >>> MaskFeatures(0.5)(data, torch.Generator().manual_seed(0)).x.tolist()
        [[0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    """

    def __init__(self, p: float) -> None:
        self.p = check_probability("p", p)

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        x = data.get("x")
        if not isinstance(x, Tensor) or x.dim() != 2:
            got = f"x of shape {tuple(x.shape)}" if isinstance(x, Tensor) else "no x"
            raise MarioError(f"data has {got}; MaskFeatures needs x of shape [nodes, features]")
        if self.p == 0:
            return data
        masked = (torch.rand(x.size(1), generator=generator) < self.p).to(x.device)
        # Filled and not multiplied: 0 · NaN is NaN, and a masked column must not leak what it held.
        if x.layout == torch.sparse_csr:
            values = x.values().masked_fill(masked[x.col_indices()], 0)
            data.x = torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape, check_invariants=False)
        else:
            data.x = x.masked_fill(masked, 0)
        return data

    def __repr__(self) -> str:
        return f"MaskFeatures({self.p:g})"
