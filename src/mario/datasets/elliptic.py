"""Elliptic: Bitcoin transactions in 49 snapshots, illicit or licit (Weber et al. 2019), split in time as EERM does."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mario.datasets.card import DatasetCard, RawFile
from mario.datasets.dataset import Dataset
from mario.datasets.files import fetch_url
from mario.datasets.registry import register
from mario.graphs.rules import choose

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

_TRAIN, _OOD_VAL, _OOD_TEST = (7, 11), (12, 16), (17, 49)  # first and last snapshot of each, counted from 1
_GROUP = 4


@register
class Elliptic(Dataset):
    card = DatasetCard(
        name="elliptic",
        what="Bitcoin transactions and payments in 49 snapshots; is a transaction illicit?",
        nodes=203769,
        edges=234355,
        features=165,
        classes=2,
        domains=("time",),
        metric="f1",
        files=(
            RawFile("EllipticBitcoin/raw/elliptic_txs_features.csv"),
            RawFile("EllipticBitcoin/raw/elliptic_txs_edgelist.csv"),
            RawFile("EllipticBitcoin/raw/elliptic_txs_classes.csv"),
        ),
        source="https://www.kaggle.com/datasets/ellipticco/elliptic-data-set (PyG EllipticBitcoinDataset; Weber 2019)",
        license="see its Kaggle page",
        notes=(
            "Snapshots 7 to 11 train, 12 to 16 validate, 17 to 49 test in nine groups of four (T9 is snapshot 49).",
            "A fifth of the nodes has a label, 1 illicit or 0 licit; the others are -1 and in no mask.",
            "The files' checksums are not known: the files were not available to us.",
        ),
        shifts=("label",),
        setting="inductive",
        layouts=("elliptic_bitcoin_dataset", "elliptic", "raw", ""),
    )

    def read(self, files: Sequence[Path]) -> Data:
        from mario.datasets.readers.elliptic import read_elliptic

        return read_elliptic(*files)

    def split(self, data: Data, *, domain: str, shift: str, split_seed: int) -> Data:
        return elliptic_graph(data, split_seed=split_seed)

    def download(self, folder: Path) -> None:
        import io
        import shutil
        import zipfile

        for file in self.card.files:
            target = folder / file.path
            packed = io.BytesIO(fetch_url(f"https://data.pyg.org/datasets/elliptic/{target.name}.zip"))
            target.parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(packed) as archive, archive.open(target.name) as content, target.open("wb") as written:
                shutil.copyfileobj(content, written)


def elliptic_graph(data: Data, *, split_seed: int = 0, lone: str = "last") -> Data:
    """Split by time: snapshots 7 to 11 train, 12 to 16 validate, 17 to 49 are the nine test groups T1 to T9.

    Nodes without a label are in no part, but training sees all nodes of its snapshots (``visible_mask``). The labeled
    training nodes carry the snapshot as ``env_id``. Snapshots 1 to 6 are extremely imbalanced (Wu et al., ICLR 2022)
    and are in no part.

    Args:
        data: the graph of `mario.datasets.readers.elliptic.read_elliptic`.
        split_seed: stored in the graph. Nothing is drawn: there is one split in time.
        lone: which of the nine groups has a single snapshot, the ``"last"`` (T9 is snapshot 49) or the ``"first"``
            (T1 is snapshot 17, as in EERM's released code).

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> steps = torch.arange(1, 50)
        >>> chain = Data(x=torch.eye(49), edge_index=torch.zeros(2, 0).long(), y=steps % 2, time_step=steps)
        >>> made = elliptic_graph(chain)
        >>> (made.train_mask.nonzero().view(-1) + 1).tolist(), made.group_id[-2:].tolist()
        ([7, 8, 9, 10, 11], [7, 8])
    """
    import torch

    choose("lone", lone, ("last", "first"))
    step: Tensor = data.time_step
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
    made.shift, made.setting, made.split_seed, made.num_classes = "label", "inductive", split_seed, 2
    return made
