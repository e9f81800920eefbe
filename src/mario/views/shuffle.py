"""Shuffled features."""

import torch
from torch_geometric.data import Data

from mario.graphs.sparse import select_rows
from mario.views.view import View, features_of


class ShuffleFeatures(View):
    """Permutes the rows of ``x``, dense or sparse CSR, on the same edges: the corruption of `"Deep Graph Infomax"
    <https://arxiv.org/abs/1809.10341>`_ (DGI).

    Example:
        >>> data = Data(x=torch.tensor([[0.0], [1.0], [2.0]]), edge_index=torch.tensor([[0, 1], [1, 2]]))
        >>> ShuffleFeatures()(data, torch.Generator().manual_seed(0)).x.tolist()
        [[2.0], [0.0], [1.0]]
    """

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        x = features_of(self, data)
        data.x = select_rows(x, torch.randperm(x.size(0), generator=generator).to(x.device))
        return data

    def __repr__(self) -> str:
        return "ShuffleFeatures()"
