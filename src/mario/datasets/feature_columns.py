"""Columns of tables that became features, read back from these so that a graph can be split by them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mario.errors import MarioError
from mario.graphs.card import GraphCard

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor
    from torch_geometric.data import Data

_SPLITTABLE = ("numeric", "boolean", "categorical")


def with_column(data: "Data", card: GraphCard, name: str) -> dict[str, tuple[str, ...]]:
    """Put a column of the card that is a feature into ``data`` under its name; returns the names of its codes, by it.

    Numbers come back as they were in the table, to six digits, and NaN where they were missing; truth values and
    categories as codes. Nothing happens if the graph has an attribute of this name, or the card no such feature.
    """
    column = card.columns.get(name)
    if name in data or column is None or (column.role, column.table) != ("feature", "nodes"):
        return {}
    if card.plan is None or not column.features:
        return {}
    if column.kind not in _SPLITTABLE:
        raise MarioError(f"{name} is a {column.kind} column; a graph can be split by {', '.join(_SPLITTABLE)} columns")
    from mario.graphs.tables.features import FeaturePlan

    plan = FeaturePlan.load(card.folder / card.plan)
    start = 0
    for part in plan.parts:
        if part.column == name:
            block = _columns(data.x, start, start + len(part.names))
            data[name], names = _values(part.encoder.form, part.encoder.as_json(), block, name)
            return names
        start += len(part.names)
    return {}


def _values(
    form: str, state: Mapping[str, Any], block: "np.ndarray", name: str
) -> "tuple[Tensor, dict[str, tuple[str, ...]]]":
    import numpy as np
    import torch

    missing = block[:, -1] > 0 if state.get("indicator") else np.zeros(len(block), bool)
    if form == "numeric" and state["spread"]:
        found = np.where(missing, np.nan, _unbent(block[:, 0].astype(np.float64), state["center"], state["spread"]))
        return torch.from_numpy(found), {}
    if form == "boolean":
        return torch.from_numpy(np.where(missing, -1, block[:, 0] > 0.5).astype(np.int64)), {name: ("no", "yes")}
    if form == "one-hot":
        values = block[:, : len(state["values"])]
        codes = np.where(values.any(axis=1), values.argmax(axis=1), -1)
        return torch.from_numpy(codes.astype(np.int64)), {name: tuple(state["values"])}
    raise MarioError(f"{name} has too many values to split by, or one only; build the graph with --domain {name}")


def _unbent(values: "np.ndarray", center: float, spread: float) -> "np.ndarray":
    """The numbers that `mario.graphs.tables.encoding.numeric.squash` made of them, to six digits."""
    import numpy as np

    from mario.graphs.tables.encoding.numeric import LARGEST

    share = np.clip(values / LARGEST, -1 + 1e-7, 1 - 1e-7)
    plain = center + spread * values / np.sqrt(1 - share**2)
    size = 10.0 ** (5 - np.floor(np.log10(np.maximum(np.abs(plain), 1e-300))))
    with np.errstate(all="ignore"):
        rounded = np.round(plain * size) / size
    return np.where(np.isfinite(rounded), rounded, plain)


def _columns(x: "Tensor", start: int, end: int) -> "np.ndarray":
    """Some columns of dense or sparse CSR features, dense."""
    import torch

    from mario.graphs.paging import blocks
    from mario.graphs.sparse import row_of_entries

    if x.layout != torch.sparse_csr:
        return torch.cat([block[:, start:end].clone() for block in blocks(x)]).numpy()
    inside = (x.col_indices() >= start) & (x.col_indices() < end)
    found = torch.zeros(x.size(0), end - start, dtype=x.dtype)
    found[row_of_entries(x.crow_indices())[inside], x.col_indices()[inside] - start] = x.values()[inside]
    return found.numpy()
