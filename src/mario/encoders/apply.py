"""Calling an encoder: one of ours, or any ``nn.Module`` that maps ``(x, edge_index)`` to one row per node."""

import copy
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter
from torch_geometric.data import Data

from mario.draws import drawing_from
from mario.errors import MarioError
from mario.graphs.features import FeatureMatrix
from mario.graphs.paging import check_file
from mario.graphs.rules import EDGE_DATA


def encode(encoder: nn.Module, data: Data, generator: torch.Generator | None = None) -> Tensor:
    """One row per node of ``data``.

    A :class:`~mario.encoders.FeatureEncoder` gets the features as they are and the generator. Any other module gets
    dense features and draws its random numbers (dropout) from torch's default generator, which is seeded from
    ``generator`` for the call and then restored. Both get ``edge_weight`` and ``edge_attr`` of ``data`` if they take
    them.

    Args:
        encoder: Any module that maps ``(x, edge_index)`` to one row per node.
        data: A graph with ``x`` and ``edge_index``.
        generator: Source of all random numbers; ``None`` is torch's default generator.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> data = Data(x=torch.ones(3, 4).to_sparse_csr(), edge_index=torch.tensor([[0, 1], [1, 2]]))
        >>> encode(GCN(4, 8, num_layers=2), data).shape
        torch.Size([3, 8])
    """
    edges = {name: data[name] for name in EDGE_DATA if name in data and takes(encoder, name)}
    for value in (data.x, data.edge_index, *edges.values()):
        check_file(value)
    if takes_features(encoder):
        own: Tensor = encoder(data.x, data.edge_index, **edges, generator=generator)
        return own
    x = dense(data.x)
    try:
        rows = run(encoder, x, data.edge_index, **edges, generator=generator)
    except TypeError as error:
        for name in EDGE_DATA:
            if name not in data and f"argument: '{name}'" in str(error):
                raise MarioError(f"the encoder {type(encoder).__name__} needs {name}, which the graph lacks") from None
        raise
    matrix = isinstance(rows, Tensor) and rows.dim() == 2 and rows.is_floating_point()
    if not isinstance(rows, Tensor) or not matrix or rows.size(0) != x.size(0):
        got = f"{rows.dtype} of shape {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
        raise MarioError(
            f"the encoder {type(encoder).__name__} must return one row of real numbers for each of {x.size(0)} nodes, "
            f"got {got}"
        )
    return rows


def run(module: nn.Module, x: Tensor, *inputs: Tensor, generator: torch.Generator | None, **named: Tensor) -> Any:
    """``module(x, ...)`` for a module of any kind, with the random numbers of ``generator``.

    If the module has an attribute ``products``, such as ``torch.bfloat16``, training uses autocast to that type.
    """
    products = getattr(module, "products", None) if module.training else None
    reduced = nullcontext() if products is None else torch.autocast(x.device.type, products)
    try:
        with drawing_from(generator, x.device), reduced:
            out = module(x, *inputs, **named)
    except ValueError as error:
        if module.training and x.size(0) == 1:
            raise MarioError(f"{type(module).__name__} cannot be trained on one row ({error})") from None
        raise
    return out.to(x.dtype) if products is not None and isinstance(out, Tensor) else out


def takes_features(encoder: object) -> bool:
    """Whether ``encoder`` says that it is a :class:`~mario.encoders.FeatureEncoder`.

    In each step this is asked several times, and ``isinstance`` would take 50 times as long.
    """
    return getattr(encoder, "supports_features", False) is True


def takes(encoder: nn.Module, name: str) -> bool:
    """Whether ``encoder`` takes ``edge_weight`` or ``edge_attr``.

    PyG's models and our encoders say so in ``supports_edge_weight`` and ``supports_edge_attr``; for other modules the
    signature of ``forward`` decides. PyG's convolutions that were made without ``edge_dim`` do not take ``edge_attr``.
    """
    declared = getattr(encoder, f"supports_{name}", None)
    taken = declared if isinstance(declared, bool) else takes_argument(encoder.forward, name)
    if name == "edge_attr" and taken and not takes_features(encoder):
        sizes = [module.edge_dim for module in encoder.modules() if hasattr(module, "edge_dim")]
        return not sizes or any(size is not None for size in sizes)
    return taken


def takes_argument(function: Callable[..., Any], name: str) -> bool:
    """Whether ``function`` has a parameter ``name``."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # not written in Python
        return False


def dense(x: FeatureMatrix) -> Tensor:
    """The features as a dense matrix."""
    matrix = x if isinstance(x, Tensor) else x.matrix()
    return matrix.to_dense() if matrix.layout == torch.sparse_csr else matrix


def encoder_width(encoder: nn.Module, in_channels: int, edge_channels: int = 0) -> int:
    """The number of columns that ``encoder`` returns, from a pass over a graph of two nodes.

    Args:
        encoder: Any encoder.
        in_channels: Features per node.
        edge_channels: Columns of ``edge_attr``; 0 without any.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> encoder_width(GCN(4, 16, num_layers=2, out_channels=8), 4)
        8
    """
    device = _device(encoder)
    pair = Data(x=torch.ones(2, in_channels, device=device), edge_index=torch.tensor([[0, 1], [1, 0]], device=device))
    pair.edge_weight = torch.ones(2, device=device)
    if edge_channels:
        pair.edge_attr = torch.ones(2, edge_channels, device=device)
    return _width(encoder, lambda module: encode(module, pair), f"a graph with {in_channels} features per node")


def projector_width(projector: nn.Module, in_channels: int) -> int:
    """The number of columns that ``projector`` returns, from a pass over two rows."""
    rows = torch.ones(2, in_channels, device=_device(projector))

    def project(module: nn.Module) -> Tensor:
        out = module(rows)
        if not isinstance(out, Tensor) or out.dim() != 2 or out.size(0) != 2:
            raise ValueError("it must return one row for each row")
        return out

    return _width(projector, project, f"rows of {in_channels} numbers")


def _width(module: nn.Module, call: Callable[[nn.Module], Tensor], what: str) -> int:
    lazy = (UninitializedParameter, UninitializedBuffer)
    try:
        with torch.no_grad():
            if any(isinstance(part, lazy) for part in (*module.parameters(), *module.buffers())):  # made by a pass
                call(module)
            return call(copy.deepcopy(module).eval()).size(1)  # a copy: a pass may change what the module counts
    except MarioError:
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise MarioError(f"{type(module).__name__} cannot be applied to {what}: {reason}") from error


def _device(module: nn.Module) -> torch.device:
    return next((p.device for p in module.parameters()), torch.device("cpu"))
