"""A sequence of views."""

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from mario.draws import drawing_from
from mario.errors import MarioError
from mario.graphs.validation import check_structure
from mario.views.view import View


class Chain(View):
    """Applies views in order and passes the generator to each.

    PyG transforms that are not a :class:`View` draw from torch's default generator, which is seeded for the call and
    then restored.

    Example:
        >>> from mario.views import DropEdges, MaskFeatures
        >>> Chain(DropEdges(0.2), MaskFeatures(0.3))
        Chain(DropEdges(0.2), MaskFeatures(0.3))
    """

    def __init__(self, *views: BaseTransform) -> None:
        for view in views:
            if not isinstance(view, BaseTransform):
                raise MarioError(f"views must be views or PyG transforms, got {view!r}")
        self.views = views

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        for view in self.views:
            if isinstance(view, View):  # its input is a copy that has passed
                data = view.forward(data, generator)
            else:
                with drawing_from(generator):
                    data = view(data)
                check_structure(data)
        return data

    def __repr__(self) -> str:
        return f"Chain({', '.join(map(repr, self.views))})"
