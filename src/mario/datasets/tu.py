"""Sets of protein graphs of TUDataset (Morris et al. 2020), split by size: methods train on small graphs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from mario.datasets.card import DatasetCard, raw_files
from mario.datasets.dataset import Dataset
from mario.datasets.files import fetch_url
from mario.datasets.registry import register

if TYPE_CHECKING:
    from torch_geometric.data import Data

_SOURCE = "https://www.chrsmrrs.com/graphkerneldatasets (PyG TUDataset; Morris et al. 2020)"
_NO_VALIDATION = "Node labels, one-hot, are the features; there is no validation set, so the last checkpoint is scored."


class TUSet(Dataset):
    """A set of graphs in TUDataset's text files, of which small ones are for training.

    Attributes:
        tu_name: TUDataset's name of the set.
        sizes: the fewest and the most nodes of a training graph.
        train: how many of the graphs of these sizes are for training; ``None`` for all of them.
    """

    tu_name: ClassVar[str]
    sizes: ClassVar[tuple[int, int]]
    train: ClassVar[int | None] = None
    verify_download = True

    @property
    def graph_name(self) -> str:
        return self.tu_name

    def read(self, files: Sequence[Path]) -> "Data":
        from mario.datasets.readers.tu import read_tu

        return read_tu(*files)

    def split(self, data: "Data", *, domain: str, shift: str, split_seed: int) -> "Data":
        from mario.graphs.by_size import size_split

        return size_split(data, self.sizes, self.train, split_seed)

    def download(self, folder: Path) -> None:
        import io
        import zipfile

        packed = io.BytesIO(fetch_url(f"{_SOURCE.split()[0]}/{self.tu_name}.zip"))
        with zipfile.ZipFile(packed) as archive:
            for file in self.card.files:
                target = folder / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(f"{self.tu_name}/{target.name}"))


@register
class Proteins25(TUSet):
    card = DatasetCard(
        name="proteins-25",
        what="1,113 proteins as graphs; is one an enzyme? Trains on small ones",
        nodes=43471,
        edges=162088,
        features=3,
        classes=2,
        domains=("size",),
        files=raw_files("TUDataset/PROTEINS/"),
        source=_SOURCE,
        license="not stated",
        notes=(
            "Trains on 500 of the 548 graphs of 4 to 25 nodes, which split_seed draws, and tests on the other 613.",
            _NO_VALIDATION,
        ),
        shifts=("covariate",),
        setting="inductive",
        level="graph",
        graphs=1113,
    )
    tu_name = "PROTEINS"
    sizes = (4, 25)
    train = 500


def _dd(name: str, largest: int, *notes: str) -> DatasetCard:
    return DatasetCard(
        name=name,
        what=f"1,178 larger proteins as graphs (D&D); is one an enzyme? Trains on those of up to {largest} nodes",
        nodes=334925,
        edges=1686092,
        features=89,
        classes=2,
        domains=("size",),
        files=raw_files("TUDataset/DD/"),
        source=_SOURCE,
        license="not stated",
        notes=(*notes, _NO_VALIDATION),
        shifts=("covariate",),
        setting="inductive",
        level="graph",
        graphs=1178,
    )


@register
class DD200(TUSet):
    card = _dd(
        "dd-200",
        200,
        "Trains on all 462 graphs of 30 to 200 nodes and tests on the other 716, of 201 to 5,748; split_seed draws "
        "nothing.",
    )
    tu_name = "DD"
    sizes = (30, 200)


@register
class DD300(TUSet):
    card = _dd(
        "dd-300",
        300,
        "Trains on 500 of the 740 graphs of 30 to 300 nodes, which split_seed draws, and tests on the other 678.",
        "The paper's table says 400 training graphs and its text 500; only 500 adds up to 1,178.",
    )
    tu_name = "DD"
    sizes = (30, 300)
    train = 500
