"""WebKB of LINQS: web pages of four universities with one numbering of classes (Lu & Getoor, ICML 2003)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mario.datasets.card import DatasetCard, raw_files
from mario.datasets.dataset import Dataset
from mario.datasets.files import fetch_url
from mario.datasets.registry import register
from mario.graphs.rules import SplitRule

if TYPE_CHECKING:
    from torch_geometric.data import Data


@register
class WebKB(Dataset):
    card = DatasetCard(
        name="webkb",
        what="the sound WebKB: web pages of four universities and their links, one numbering of classes. Recommended",
        nodes=877,
        edges=1608,
        features=1703,
        classes=5,
        domains=("university", "cornell", "texas", "washington", "wisconsin"),
        parts=("cornell", "texas", "washington", "wisconsin"),
        files=raw_files("WebKB-LINQS/"),
        source="https://linqs-data.soe.ucsc.edu/public/lbc/WebKB.tgz (Lu & Getoor, ICML 2003)",
        license="not stated",
        notes=(
            "Covariate shift holds out one university: the one that domain names, wisconsin for domain university.",
            "Classes: 0 course, 1 faculty, 2 project, 3 staff, 4 student.",
            "Edges point from the linking page to the linked one.",
        ),
    )
    rule = SplitRule(descending=False, held_out="wisconsin", environments=3, bias=(0.85, 0.75, 0.85, 0.8, 0.5))
    verify_download = True

    def read(self, files: Sequence[Path]) -> "Data":
        from mario.datasets.readers.linqs import read_linqs
        from mario.datasets.readers.pyg import combine

        return combine([read_linqs(content, cites) for cites, content in zip(files[::2], files[1::2], strict=True)])

    def download(self, folder: Path) -> None:
        import io
        import tarfile

        packed = io.BytesIO(fetch_url(self.card.source.split()[0]))
        with tarfile.open(fileobj=packed) as archive:
            members = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}
            for file in self.card.files:
                content = archive.extractfile(members[Path(file.path).name])
                target = folder / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read() if content else b"")
