"""What an encoder can declare so that methods take their fast paths with it."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from mario.graphs.features import FeatureMatrix


@runtime_checkable
class FeatureEncoder(Protocol):
    """An encoder that takes more than plain tensors.

    Any ``nn.Module`` that maps ``(x, edge_index)`` to one row per node can encode views. A module that also has the
    attributes below promises the call below, and methods then use their fast paths with it:

    - ``x`` may be a sparse CSR matrix or :class:`mario.graphs.features.Features`, so that wide features are neither
      copied nor made dense.
    - ``edge_index`` may be a ready propagation matrix, sparse CSR with one row per receiving node.
    - All randomness comes from ``generator``, so that a pass can be recomputed instead of stored.

    All encoders in :mod:`mario.encoders` do. ``supports_edge_weight`` and ``supports_edge_attr`` have the meaning that
    they have in PyG's models, which have these two attributes and not ``supports_features``.

    Example:
        >>> from torch_geometric.nn import GCN as OfPyG
        >>> from mario.encoders import GCN
        >>> isinstance(GCN(4), FeatureEncoder), isinstance(OfPyG(4, 8, 2), FeatureEncoder)
        (True, False)
    """

    supports_features: bool
    supports_edge_weight: bool
    supports_edge_attr: bool

    def __call__(
        self,
        x: FeatureMatrix,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor: ...
