"""Elliptic: Bitcoin transactions in 49 snapshots, illicit or not (Weber et al. 2019), split as EERM does.

The files are those of Kaggle, which PyG's `EllipticBitcoinDataset` downloads too: ``elliptic_txs_features.csv`` (no
header: transaction, time step 1 to 49, 165 features), ``elliptic_txs_classes.csv`` (``txId,class``: 1 illicit, 2 licit,
unknown) and ``elliptic_txs_edgelist.csv`` (``txId1,txId2``: a payment from the first to the second).
"""

import copy
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.rules import choose

SNAPSHOTS = 49
FEATURES = 165  # EERM and PyG leave the time step out, which is the first of Kaggle's 166
_TRAIN, _OOD_VAL, _OOD_TEST = (7, 11), (12, 16), (17, 49)  # first and last snapshot of each, counted from 1
_GROUP = 4
_CLASS = {"1": 1, "2": 0, "unknown": -1}


def read_elliptic(features: Path, edges: Path, classes: Path) -> Data:
    """The graph of all snapshots: ``x``, ``edge_index``, ``y`` (-1 unknown) and ``time_step``, 1 to 49.

    Nodes are in the order of the file of features. `MarioError` names the file, the line and what is wrong there.
    """
    table = _numbers(features, columns=2 + FEATURES)
    ids, step = _whole(table[:, 0], features, "transaction"), _whole(table[:, 1], features, "time step")
    order = np.argsort(ids, kind="stable")
    doubled = np.flatnonzero(np.diff(ids[order]) == 0)
    if len(doubled):
        raise MarioError(f"{features.name} has transaction {ids[order[doubled[0]]]} twice; each needs one line")
    if len(outside := np.flatnonzero((step < 1) | (step > SNAPSHOTS))):
        raise MarioError(
            f"{features.name} line {outside[0] + 1} has time step {step[outside[0]]}; 1 to {SNAPSHOTS} would do"
        )
    x = torch.from_numpy(table[:, 2:]).float()
    if not bool(torch.isfinite(x).all()):
        row, column = (int(place[0]) for place in np.nonzero(~np.isfinite(x.numpy())))
        raise MarioError(f"{features.name} line {row + 1}, column {column + 3} is NaN or infinite; a number would do")
    edge_index = _positions(_edge_ids(edges), ids, order, edges)
    time_step = torch.from_numpy(step)
    if len(across := (time_step[edge_index[0]] != time_step[edge_index[1]]).nonzero().view(-1)):
        line = int(across[0]) + 2
        raise MarioError(f"{edges.name} line {line} leads from one time step to another; a payment stays within one")
    return Data(x=x, edge_index=edge_index, y=_labels(classes, ids, order, features), time_step=time_step)


def elliptic_graph(data: Data, *, split_seed: int = 0, lone: str = "last") -> Data:
    """Snapshots 7 to 11 train, 12 to 16 validate, 17 to 49 are the nine test groups T1 to T9; unknown nodes in no part.

    Training sees all nodes of its snapshots, labeled or not (``visible_mask``); its labeled ones carry the snapshot
    as ``env_id``. Snapshots 1 to 6 are extremely imbalanced (Wu et al., ICLR 2022) and are in no part.

    Args:
        data: what `read_elliptic` gives.
        split_seed: kept with the graph. Nothing is drawn: a split in time is one split.
        lone: which of the nine groups has a single snapshot, the ``"last"`` (T9 is snapshot 49) or the ``"first"``
            (T1 is snapshot 17, as EERM's released code cuts them).

    Example:
        >>> steps = torch.arange(1, 50)
        >>> chain = Data(x=torch.eye(49), edge_index=torch.zeros(2, 0).long(), y=steps % 2, time_step=steps)
        >>> made = elliptic_graph(chain)
        >>> (made.train_mask.nonzero().view(-1) + 1).tolist(), made.group_id[-2:].tolist()
        ([7, 8, 9, 10, 11], [7, 8])
    """
    choose("lone", lone, ("last", "first"))
    step = data.time_step
    known = data.y >= 0

    def within(span: tuple[int, int]) -> Tensor:
        return (step >= span[0]) & (step <= span[1])

    made = copy.copy(data)
    del made.time_step
    made.train_mask, made.ood_val_mask = known & within(_TRAIN), known & within(_OOD_VAL)
    made.ood_test_mask = known & within(_OOD_TEST)
    made.visible_mask = within(_TRAIN)
    made.domain_id = step - 1
    made.env_id = torch.where(made.train_mask, step - _TRAIN[0], -1)
    group = (step - _OOD_TEST[0] + (_GROUP - 1 if lone == "first" else 0)) // _GROUP
    made.group_id = torch.where(within(_OOD_TEST), group, -1)
    made.groups = [f"T{test + 1}" for test in range(-(-(_OOD_TEST[1] - _OOD_TEST[0] + 1) // _GROUP))]
    made.shift, made.split_seed, made.num_classes = "label", split_seed, 2
    return made


def _labels(path: Path, ids: np.ndarray, order: np.ndarray, features: Path) -> Tensor:
    rows = _rows(path, ("txId", "class"))
    given = np.array([_identity(row[0], path, number) for number, row in rows], dtype=np.int64)
    if wrong := next(((number, row[1]) for number, row in rows if row[1] not in _CLASS), None):
        raise MarioError(f"{path.name} line {wrong[0]} has class {wrong[1]!r}; 1, 2 or unknown would do")
    positions = _positions(given, ids, order, path)
    times = torch.bincount(positions, minlength=len(ids))
    if len(odd := (times != 1).nonzero().view(-1)):
        how = "no class" if times[odd[0]] == 0 else "two classes"
        raise MarioError(f"{path.name} has {how} for transaction {ids[odd[0]]} of {features.name}; one would do")
    y = torch.empty(len(ids), dtype=torch.int64)
    y[positions] = torch.tensor([_CLASS[row[1]] for _, row in rows])
    return y


def _edge_ids(path: Path) -> np.ndarray:
    rows = _rows(path, ("txId1", "txId2"))
    ends = [[_identity(end, path, number) for end in row] for number, row in rows]
    return np.array(ends, dtype=np.int64).reshape(-1, 2).T


def _positions(given: np.ndarray, ids: np.ndarray, order: np.ndarray, path: Path) -> Tensor:
    """The rows of transactions ``given``, in the shape they are given in."""
    place = np.minimum(np.searchsorted(ids, given, sorter=order), len(ids) - 1)
    found = order[place]
    if len(unknown := given[ids[found] != given]):
        raise MarioError(f"{path.name} names transaction {unknown[0]}, of which there are no features")
    return torch.from_numpy(found)


def _numbers(path: Path, *, columns: int) -> np.ndarray:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of an empty file, which is an error below
            table = np.loadtxt(path, delimiter=",", dtype=np.float64, ndmin=2, comments=None, encoding="utf-8")
    except (ValueError, OSError) as error:
        reason = str(error).partition(";")[0]
        rows = " (rows count from 0)" if reason.startswith("could not convert") else ""
        raise MarioError(f"{path.name} must be {columns} numbers a line and no header: {reason}{rows}") from None
    if table.size == 0 or table.shape[1] != columns:
        raise MarioError(
            f"{path.name} must have {columns} columns (transaction, time step, {columns - 2} features) and no header, "
            f"got {table.shape[1] if table.size else 'an empty file'}"
        )
    return table


def _whole(values: np.ndarray, path: Path, what: str) -> np.ndarray:
    # 2^53: above it a float64 no longer tells neighboring whole numbers apart.
    wrong = np.flatnonzero(~((values >= 0) & (values <= 2**53) & (values == np.floor(values))))
    if len(wrong):
        raise MarioError(f"{path.name} line {wrong[0] + 1} has {what} {values[wrong[0]]}; a whole number would do")
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
            raise MarioError(f"{path.name} line {number} has {len(cells)} columns; {','.join(header)} would do")
        rows.append((number, cells))
    return rows


def _identity(text: str, path: Path, number: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise MarioError(f"{path.name} line {number} has transaction {text!r}; a whole number would do")
    return int(text)
