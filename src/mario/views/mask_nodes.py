"""Node masking."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import check_probability
from mario.errors import MarioError
from mario.graphs.sparse import csr, row_of_entries
from mario.views.induced import graph_of_nodes
from mario.views.view import View, features_of

FILLS = ("mean", "noise", "zero")


class MaskNodes(View):
    """Masks all features of a node with probability ``p``, the attribute masking of `"Graph Contrastive Learning with
    Augmentations" <https://arxiv.org/abs/2010.13902>`_ (GraphCL).

    ``x`` may be dense or sparse CSR; a sparse matrix stays sparse with ``fill="zero"`` and becomes dense otherwise.

    Args:
        p: Probability that a node is masked.
        fill: The features of a masked node: ``mean``, the mean over its graph (the authors' code for semi-supervised
            learning), ``noise``, normal with mean and standard deviation 0.5 (their code for unsupervised learning), or
            ``zero``.

    Example:
        >>> data = Data(x=torch.tensor([[0.0], [2.0], [4.0]]))
        >>> MaskNodes(0.5)(data, torch.Generator().manual_seed(0)).x.tolist()
        [[2.0], [2.0], [2.0]]
    """

    def __init__(self, p: float, *, fill: str = "mean") -> None:
        self.p = check_probability("p", p)
        if fill not in FILLS:
            raise MarioError(f"fill must be one of {', '.join(FILLS)}, got '{fill}'")
        self.fill = fill

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        x = features_of(self, data)
        if self.p == 0:
            return data
        masked = (torch.rand(x.size(0), generator=generator) < self.p).to(x.device)
        # Filled, not multiplied: 0 · NaN is NaN, and a masked node must not leak its values.
        if self.fill == "zero" and x.layout == torch.sparse_csr:
            values = x.values().masked_fill(masked[row_of_entries(x.crow_indices())], 0)
            data.x = csr(x.crow_indices(), x.col_indices(), values, (x.size(0), x.size(1)))
            return data
        x = x.to_dense() if x.layout == torch.sparse_csr else x
        rows = masked.nonzero().view(-1)
        data.x = x.index_copy(0, rows, self._shown(x, rows, graph_of_nodes(data), generator))
        return data

    def _shown(self, x: Tensor, rows: Tensor, graph: Tensor, generator: torch.Generator | None) -> Tensor:
        if self.fill == "zero" or not rows.numel():
            return x.new_zeros(rows.numel(), x.size(1))
        if self.fill == "noise":
            return (
                torch.empty(rows.numel(), x.size(1), dtype=x.dtype).normal_(0.5, 0.5, generator=generator).to(x.device)
            )
        sizes = torch.bincount(graph)
        sums = x.new_zeros(sizes.numel(), x.size(1)).index_add_(0, graph, x)
        return (sums / sizes.clamp(min=1).unsqueeze(1))[graph[rows]]

    def __repr__(self) -> str:
        return f"MaskNodes({self.p:g}{'' if self.fill == 'mean' else f', fill={self.fill!r}'})"
