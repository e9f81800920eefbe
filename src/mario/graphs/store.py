"""A graph in one safetensors file, which holds numbers and text and cannot run code."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.files import write_tensors
from mario.graphs.sparse import csr
from mario.graphs.validation import check_structure
from mario.untrusted import open_file, parse_json, read_safetensors

_FORMAT = 1
_CSR_PARTS = ("crow", "col", "values")


def save_graph(data: Data, path: str | os.PathLike[str]) -> None:
    """Write a graph to ``path``: all tensors (sparse CSR ones as three parts each), and plain attributes as JSON.

    The file is written atomically.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_graph(Data(x=torch.eye(2), name="two"), f"{folder}/two.safetensors")
        ...     load_graph(f"{folder}/two.safetensors")
        Data(x=[2, 2], name='two')
    """
    check_structure(data)
    tensors: dict[str, Tensor] = {}
    sizes: dict[str, list[int]] = {}
    plain: dict[str, Any] = {}
    for key, value in data.to_dict().items():
        if not isinstance(value, Tensor):
            plain[key] = value
        elif value.layout == torch.sparse_csr:
            sizes[key] = list(value.shape)
            parts = (value.crow_indices(), value.col_indices(), value.values())
            tensors |= {f"{key}.{name}": part for name, part in zip(_CSR_PARTS, parts, strict=True)}
        elif value.layout == torch.strided:
            tensors[key] = value
        else:
            raise MarioError(f"data.{key} has layout {value.layout}; make it dense or sparse CSR")
    described = as_json({"format": _FORMAT, "keys": list(data.to_dict()), "csr": sizes, "plain": plain})
    write_tensors(Path(path), _unshared(tensors), {"mario-graph": described})


def load_graph(path: str | os.PathLike[str]) -> Data:
    """Read a graph that `save_graph` wrote; `MarioError` if the file is something else or damaged."""
    path = Path(path)
    open_file(path).close()  # its errors say it better
    try:
        about, tensors = read_safetensors(path, "mario-graph")
    except MarioError as error:
        raise MarioError(f"{path} is not a graph that mario wrote, or is damaged: {error}") from None
    try:
        if about["format"] != _FORMAT:
            raise MarioError(f"{path} has graph format {about['format']}; this version reads format {_FORMAT}")
        values: dict[str, Any] = dict(about["plain"])
        for key, size in about["csr"].items():
            crow, col, entries = (tensors.pop(f"{key}.{name}") for name in _CSR_PARTS)
            values[key] = csr(crow, col, entries, (int(size[0]), int(size[1])), check=True)
        values |= tensors
        return Data.from_dict({key: values[key] for key in about["keys"]})
    except MarioError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise MarioError(f"{path} is not a graph that mario wrote, or is damaged: {error}") from None


def as_json(about: dict[str, Any]) -> str:
    """A description of a graph as text; `MarioError` if a plain attribute has no such form."""
    try:
        _check_keys(about)
        text = json.dumps(about)
        parse_json(text, "it", finite=False)  # nothing is written that cannot be read
    except (TypeError, ValueError, RecursionError) as error:
        raise MarioError(f"a plain attribute of data cannot be written as JSON: {error}") from None
    return text


def _check_keys(value: Any) -> None:
    """JSON would make texts of other keys."""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"a dict has the key {key!r}, which is not a text")
    if isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            _check_keys(item)


def _unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies where needed: safetensors writes whole storages, each of which must belong to one tensor."""
    seen: set[int] = set()
    result = {}
    for key, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        storage = tensor.untyped_storage()
        if storage.data_ptr() in seen or storage.nbytes() != tensor.nbytes:
            tensor = tensor.clone()
        seen.add(tensor.untyped_storage().data_ptr())
        result[key] = tensor
    return result
