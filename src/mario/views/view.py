"""The base class of views: a PyG transform that takes a random generator."""

import copy
from abc import abstractmethod

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from mario.draws import check_generator
from mario.errors import MarioError
from mario.graphs.validation import check_structure


class View(BaseTransform):  # type: ignore[misc, unused-ignore]  # PyG ships no types
    """A random view of a graph: takes a ``Data``, returns a new ``Data``, and leaves the input unchanged.

    A view keeps no state. All randomness comes from ``generator`` (``None`` is torch's default generator), so that
    equal generator states give equal views. Without a generator it works in ``torch_geometric.transforms.Compose`` and
    as the ``transform`` of a dataset. A subclass defines ``forward``, which may set attributes of the shallow copy it
    receives but must not change a tensor in place. A view that changes edges must change ``edge_weight`` and
    ``edge_attr`` with them.

    Example:
        >>> class Reverse(View):
        ...     def forward(self, data, generator=None):
        ...         data.edge_index = data.edge_index.flip(0)
        ...         return data
        >>> Reverse()(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)).edge_index.tolist()
        [[1], [0]]
    """

    def __call__(self, data: Data, generator: torch.Generator | None = None) -> Data:
        check_structure(data)
        check_generator(generator)
        return self.forward(copy.copy(data), generator)

    @abstractmethod
    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data: ...


def features_of(view: View, data: Data) -> Tensor:
    """``data.x``; `MarioError` unless it is a matrix."""
    x = data.get("x")
    if not isinstance(x, Tensor) or x.dim() != 2:
        got = f"x of shape {tuple(x.shape)}" if isinstance(x, Tensor) else "no x"
        raise MarioError(f"data has {got}; {type(view).__name__} needs x of shape [nodes, features]")
    return x


def edges_of(view: View, data: Data) -> Tensor:
    """``data.edge_index``; `MarioError` if there is none."""
    edge_index: Tensor | None = data.edge_index
    if edge_index is None:
        raise MarioError(f"data has no edge_index; {type(view).__name__} needs one of shape [2, edges]")
    return edge_index
