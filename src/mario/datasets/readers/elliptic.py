"""The CSV files of Elliptic (Weber et al. 2019).

They are Kaggle's, which PyG's `EllipticBitcoinDataset` downloads too: ``elliptic_txs_features.csv`` (no
header: transaction, time step 1 to 49, 165 features), ``elliptic_txs_classes.csv`` (``txId,class``: 1 illicit, 2 licit,
unknown) and ``elliptic_txs_edgelist.csv`` (``txId1,txId2``: a payment from the first to the second).
"""

import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError

SNAPSHOTS = 49
FEATURES = 165  # like EERM and PyG, without the time step, which is the first of Kaggle's 166
_CLASS = {"1": 1, "2": 0, "unknown": -1}


def read_elliptic(features: Path, edges: Path, classes: Path) -> Data:
    """The graph of all snapshots: ``x``, ``edge_index``, ``y`` (-1 unknown) and ``time_step``, 1 to 49.

    Nodes are in the order of the feature file. `MarioError` names the file, the line and the problem.
    """
    table = _numbers(features, columns=2 + FEATURES)
    ids, step = _whole(table[:, 0], features, "transaction"), _whole(table[:, 1], features, "time step")
    order = np.argsort(ids, kind="stable")
    doubled = np.flatnonzero(np.diff(ids[order]) == 0)
    if len(doubled):
        raise MarioError(f"{features.name} has transaction {ids[order[doubled[0]]]} twice; it must have one line")
    if len(outside := np.flatnonzero((step < 1) | (step > SNAPSHOTS))):
        raise MarioError(
            f"{features.name} line {outside[0] + 1} has time step {step[outside[0]]}; it must be from 1 to {SNAPSHOTS}"
        )
    x = torch.from_numpy(table[:, 2:]).float()
    if not bool(torch.isfinite(x).all()):
        row, column = (int(place[0]) for place in np.nonzero(~np.isfinite(x.numpy())))
        raise MarioError(
            f"{features.name} line {row + 1}, column {column + 3} is NaN or infinite; it must be a finite number"
        )
    edge_index = _positions(_edge_ids(edges), ids, order, edges)
    time_step = torch.from_numpy(step)
    if len(across := (time_step[edge_index[0]] != time_step[edge_index[1]]).nonzero().view(-1)):
        line = int(across[0]) + 2
        raise MarioError(f"{edges.name} line {line} goes from one time step to another; a payment stays within one")
    return Data(x=x, edge_index=edge_index, y=_labels(classes, ids, order, features), time_step=time_step)


def _labels(path: Path, ids: np.ndarray, order: np.ndarray, features: Path) -> Tensor:
    rows = _rows(path, ("txId", "class"))
    given = np.array([_identity(row[0], path, number) for number, row in rows], dtype=np.int64)
    if wrong := next(((number, row[1]) for number, row in rows if row[1] not in _CLASS), None):
        raise MarioError(f"{path.name} line {wrong[0]} has class {wrong[1]!r}; it must be 1, 2 or unknown")
    positions = _positions(given, ids, order, path)
    times = torch.bincount(positions, minlength=len(ids))
    if len(odd := (times != 1).nonzero().view(-1)):
        how = "no class" if times[odd[0]] == 0 else "two classes"
        raise MarioError(f"{path.name} has {how} for transaction {ids[odd[0]]} of {features.name}; it must have one")
    y = torch.empty(len(ids), dtype=torch.int64)
    y[positions] = torch.tensor([_CLASS[row[1]] for _, row in rows])
    return y


def _edge_ids(path: Path) -> np.ndarray:
    rows = _rows(path, ("txId1", "txId2"))
    ends = [[_identity(end, path, number) for end in row] for number, row in rows]
    return np.array(ends, dtype=np.int64).reshape(-1, 2).T


def _positions(given: np.ndarray, ids: np.ndarray, order: np.ndarray, path: Path) -> Tensor:
    """The rows of the transactions ``given``, in the same shape."""
    place = np.minimum(np.searchsorted(ids, given, sorter=order), len(ids) - 1)
    found = order[place]
    if len(unknown := given[ids[found] != given]):
        raise MarioError(f"{path.name} names transaction {unknown[0]}, which has no features")
    return torch.from_numpy(found)


def _numbers(path: Path, *, columns: int) -> np.ndarray:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty file is an error below
            table = np.loadtxt(path, delimiter=",", dtype=np.float64, ndmin=2, comments=None, encoding="utf-8")
    except (ValueError, OSError) as error:
        reason = str(error).partition(";")[0]
        rows = " (rows count from 0)" if reason.startswith("could not convert") else ""
        raise MarioError(f"{path.name} must have {columns} numbers per line and no header: {reason}{rows}") from None
    if table.size == 0 or table.shape[1] != columns:
        raise MarioError(
            f"{path.name} must have {columns} columns (transaction, time step, {columns - 2} features) and no header, "
            f"got {table.shape[1] if table.size else 'an empty file'}"
        )
    return table


def _whole(values: np.ndarray, path: Path, what: str) -> np.ndarray:
    # Above 2^53, float64 cannot represent every whole number.
    wrong = np.flatnonzero(~((values >= 0) & (values <= 2**53) & (values == np.floor(values))))
    if len(wrong):
        raise MarioError(f"{path.name} line {wrong[0] + 1} has {what} {values[wrong[0]]}; it must be a whole number")
    return values.astype(np.int64)


def _rows(path: Path, header: tuple[str, str]) -> list[tuple[int, list[str]]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MarioError(f"{path.name} cannot be read: {error}") from None
    if not lines or tuple(cell.strip() for cell in lines[0].split(",")) != header:
        got = lines[0][:80] if lines else "an empty file"
        raise MarioError(f"{path.name} must begin with the line {','.join(header)}, got {got}")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 2:
            raise MarioError(f"{path.name} line {number} has {len(cells)} columns; it must have {','.join(header)}")
        rows.append((number, cells))
    return rows


def _identity(text: str, path: Path, number: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise MarioError(f"{path.name} line {number} has transaction {text!r}; it must be a whole number")
    return int(text)
