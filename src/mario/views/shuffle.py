"""Shuffled features."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.subgraph import select_rows
from mario.views.view import View


class ShuffleFeatures(View):
    """Permutes the rows of ``x``, dense or sparse CSR, on the same edges: the corruption of `"Deep Graph Infomax"
    <https://arxiv.org/abs/1809.10341>`_ (DGI).

    Example:
        >>> data = Data(x=torch.tensor([[0.0], [1.0], [2.0]]), edge_index=torch.tensor([[0, 1], [1, 2]]))
        >>> ShuffleFeatures()(data, torch.Generator().manual_seed(0)).x.tolist()
        [[2.0], [0.0], [1.0]]
    """

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        x = data.get("x")
        if not isinstance(x, Tensor) or x.dim() != 2:
            got = f"x of shape {tuple(x.shape)}" if isinstance(x, Tensor) else "no x"
            raise MarioError(f"data has {got}; ShuffleFeatures needs x of shape [nodes, features]")
        data.x = select_rows(x, torch.randperm(x.size(0), generator=generator).to(x.device))
        return data

    def __repr__(self) -> str:
        return "ShuffleFeatures()"
