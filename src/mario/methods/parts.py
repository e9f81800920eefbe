"""Parts of a method that a user may bring: an encoder, a projector, two views."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from mario.draws import drawing_from
from mario.encoders.apply import takes_argument
from mario.errors import MarioError
from mario.graphs.subgraph import count_nodes
from mario.methods.settings import shown
from mario.views import View

Transform = Callable[..., Data]
"""``Data`` in, ``Data`` out: a :class:`mario.views.View`, a PyG transform, or a function."""

PARTS = ("encoder", "projector", "views")
"""The settings that may hold objects instead of plain values."""


def fresh(module: nn.Module) -> nn.Module:
    """A copy of ``module`` to train: its weights are drawn anew if it has ``reset_parameters``, else kept."""
    made = copy.deepcopy(module)
    reset = getattr(made, "reset_parameters", None)
    if callable(reset):
        reset()
    return made


def check_views(name: str, value: Any) -> tuple[Transform, Transform] | None:
    """``value`` if it is ``None`` or two transforms."""
    if value is None:
        return None
    if isinstance(value, list):
        value = tuple(value)
    if not isinstance(value, tuple) or len(value) != 2 or not all(_is_transform(part) for part in value):
        raise MarioError(
            f"{name} must be None or two transforms, Data in and Data out, such as "
            f"(DropEdges(0.2), MaskFeatures(0.3)), got {shown(value)}"
        )
    return value


def _is_transform(part: Any) -> bool:
    return callable(part) and not isinstance(part, type)


def view_of(transform: Transform, data: Data, generator: torch.Generator | None = None) -> Data:
    """``transform`` applied to a copy of ``data``.

    A transform with a parameter ``generator`` gets it. Others draw from torch's default generator, which is seeded for
    the call and then restored.
    """
    if isinstance(transform, View):  # which copies the graph itself
        view = transform(data, generator)
    elif takes_argument(transform, "generator"):
        view = transform(copy.copy(data), generator=generator)
    else:
        with drawing_from(generator, data.edge_index.device):
            view = transform(copy.copy(data))
    if not isinstance(view, Data):
        raise MarioError(f"a view must be a Data; {qualified_name(transform)} returned {type(view).__name__}")
    return view


def check_same_nodes(view: Data, data: Data, transform: Transform) -> None:
    """Raise a :class:`MarioError` unless ``view`` has as many nodes as ``data``."""
    if count_nodes(view) != count_nodes(data):
        raise MarioError(
            f"a view must keep all nodes, so that row i of both views is node i; {qualified_name(transform)} returned "
            f"{count_nodes(view)} of {count_nodes(data)}"
        )


def qualified_name(part: Any) -> str:
    """The module and name of a part's class, or of a function."""
    named = part if hasattr(part, "__qualname__") else type(part)
    return f"{named.__module__}.{named.__qualname__}"


def described(value: Any) -> Any:
    """A setting as a plain value: objects are replaced by the names of their classes."""
    if isinstance(value, tuple) and any(callable(part) for part in value):
        return [qualified_name(part) for part in value]
    return qualified_name(value) if isinstance(value, nn.Module) else value


def is_object(value: Any) -> bool:
    """Whether a setting is an object or a pair of objects, which cannot be written to a file."""
    return described(value) is not value


def match(name: str, value: Any, saved: Any) -> None:
    """Raise a :class:`MarioError` unless ``value``, given for the setting ``name``, is of the saved class or classes."""
    given, kept = described(value), saved
    pairs = zip(given, kept, strict=True) if isinstance(kept, list) and isinstance(given, list) else [(given, kept)]
    if not all(_same_name(a, b) for a, b in pairs):
        raise MarioError(f"the model was saved with {name}={_listed(kept)}, got {_listed(given)}")


def _same_name(one: Any, other: Any) -> bool:
    """Whether two qualified names are of one class; a script that is run calls its module ``__main__``."""
    if one == other or not (isinstance(one, str) and isinstance(other, str)):
        return bool(one == other)
    parts = one.split("."), other.split(".")
    return any(p[0] == "__main__" for p in parts) and parts[0][-1] == parts[1][-1]


def _listed(names: Any) -> str:
    return f"({', '.join(names)})" if isinstance(names, list) else str(names)
