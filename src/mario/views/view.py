"""What every view is: a PyG transform that takes a random generator."""

import copy
import math
from abc import abstractmethod

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from mario.errors import MarioError


class View(BaseTransform):
    """A random view of a graph: ``Data`` in, a new ``Data`` out, the input left as it was.

    A view keeps no state. All its randomness comes from ``generator`` (``None`` is torch's default generator), so equal
    generator states give equal views, and without a generator it works in ``torch_geometric.transforms.Compose``.
    A subclass writes ``forward``, which may set attributes of the shallow copy it is given and changes no tensor.

    Example:
        >>> class Reverse(View):
        ...     def forward(self, data, generator=None):
        ...         data.edge_index = data.edge_index.flip(0)
        ...         return data
        >>> Reverse()(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)).edge_index.tolist()
        [[1], [0]]
    """

    def __call__(self, data: Data, generator: torch.Generator | None = None) -> Data:
        return self.forward(copy.copy(data), generator)

    @abstractmethod
    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data: ...


def check_probability(name: str, value: float) -> float:
    """``value`` as a float, if it is a probability."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1 or math.isnan(value):
        raise MarioError(f"{name} must be a probability in [0, 1], got {value!r}")
    return float(value)
