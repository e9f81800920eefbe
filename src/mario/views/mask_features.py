"""Feature masking."""

import torch
from torch_geometric.data import Data

from mario.arguments import check_probability
from mario.graphs.features import Features
from mario.views.view import View, features_of


class MaskFeatures(View):
    """Sets each feature column to zero for all nodes with probability ``p``, as in `"Deep Graph Contrastive
    Representation Learning" <https://arxiv.org/abs/2006.04131>`_ (GRACE).

    ``x`` may be dense or sparse CSR; a sparse matrix keeps its pattern, with zeros stored in the masked columns.

    Args:
        p: Probability that a column is masked.
        in_parts: Return ``x`` as :class:`mario.graphs.features.Features`, which masks the weight that X is multiplied
            by and copies nothing. Use it only with a :class:`mario.encoders.FeatureEncoder`.

    Example:
        >>> data = Data(x=torch.ones(2, 4))
        >>> MaskFeatures(0.5)(data, torch.Generator().manual_seed(0)).x.tolist()
        [[0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    """

    def __init__(self, p: float, *, in_parts: bool = False) -> None:
        self.p = check_probability("p", p)
        self.in_parts = in_parts

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        x = features_of(self, data)
        if self.p > 0:
            masked = (torch.rand(x.size(1), generator=generator) < self.p).to(x.device)
            data.x = Features(x, ~masked) if self.in_parts else Features(x, ~masked).matrix()
        elif self.in_parts:
            data.x = Features(x)
        return data

    def __repr__(self) -> str:
        return f"MaskFeatures({self.p:g})"
