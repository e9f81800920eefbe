"""From published raw files to one graph a dataset, through PyG's dataset classes.

Raw files may be read-only, damaged or hostile. They are copied into a private folder, checked there, and handed to PyG
(which writes its ``processed`` files beside them); a ``processed`` file that a user has is never read, as it is a
pickle. The graph is kept in the user's cache under the checksum of the files it came from.
"""

import contextlib
import hashlib
import io
import os
import shutil
import socket
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric import datasets
from torch_geometric.data import Data, InMemoryDataset

from mario.errors import MarioError
from mario.graphs.catalog import DatasetCard, RawFile
from mario.graphs.elliptic import read_elliptic
from mario.graphs.files import absent_message, cache_folder, downloads_folder, file_paths, locate, sha256
from mario.graphs.store import load_graph, save_graph
from mario.graphs.subgraph import csr
from mario.graphs.tu_files import read_tu
from mario.graphs.validation import check_graph

_GRAPH_VERSION = b"1"  # raise it when the graph that is made from the same files changes
_WIDE, _DENSE_ENOUGH = 2000, 0.1
_CSR_MEMBERS = tuple(
    f"{matrix}_{part}" for matrix in ("attr", "adj") for part in ("data", "indices", "indptr", "shape")
)


@dataclass(frozen=True)
class PygSource:
    """A PyG dataset class, the folder and names it is called with, and the arrays that it reads from an ``.npz``."""

    dataset: type[InMemoryDataset]
    folder: str
    names: tuple[str, ...]
    npz_members: tuple[str, ...] = ()

    def read(self, home: Path) -> list[Data]:
        """The graph of each name; sparse before PyG saves it where that is smaller."""
        return [self.dataset(str(home / self.folder), name, pre_transform=_compacted)[0] for name in self.names]

    def download(self, home: Path) -> None:
        """The raw files alone: nothing that came over the network is opened before it is checked."""
        if not hasattr(self.dataset, "_process"):  # or what is put in its place below would be called by nobody
            raise MarioError("this version of PyG cannot download files without opening them; fetch them by hand")
        fetch = type("Fetch", (self.dataset,), {"_process": lambda self: None, "load": lambda self, path: None})
        for name in self.names:
            fetch(str(home / self.folder), name)


def source_graph(card: DatasetCard, *, root: str | os.PathLike[str] | None = None, download: bool = True) -> Data:
    """The unsplit graph of a dataset: ``x``, ``edge_index``, ``y`` and, where parts stand side by side, ``part_id``.

    Where they are snapshots in time it is ``time_step``.
    """
    folder = find_files(card, root=root, download=download)
    key = hashlib.sha256(
        _GRAPH_VERSION + "".join(sha256(path) for path in file_paths(card, folder)).encode()
    ).hexdigest()
    kept = cache_folder() / "graphs" / f"{_TU_NAMES.get(card.name, card.name)}-{key[:16]}.safetensors"
    if kept.is_file():
        with contextlib.suppress(MarioError):
            return load_graph(kept)
    data = _build(card, folder)
    with contextlib.suppress(MarioError):  # a cache that cannot be written is no cache, and no error
        save_graph(data, kept)
    return data


def find_files(card: DatasetCard, *, root: str | os.PathLike[str] | None = None, download: bool = True) -> Path:
    """The folder that has a dataset's files, after a download into the user's cache where none has."""
    folder = locate(card, root)
    if folder is not None:
        return folder
    if not download:
        raise MarioError(absent_message(card, root, "downloading is switched off"))
    try:
        _download(card)
    except MarioError:
        raise
    except Exception as error:  # PyG and urllib raise whatever they meet; to a user it is all one
        raise MarioError(absent_message(card, root, f"the download failed ({error})")) from None
    return downloads_folder()


def combine(parts: Sequence[Data]) -> Data:
    """Graphs side by side in one disconnected graph; ``part_id`` says which one a node is from."""
    sizes = [part.x.size(0) for part in parts]
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    return Data(
        x=parts[0].x if len(parts) == 1 else torch.cat([part.x for part in parts]),
        edge_index=torch.cat([part.edge_index + start for part, start in zip(parts, starts, strict=True)], dim=1),
        y=torch.cat([part.y for part in parts]),
        part_id=torch.repeat_interleave(torch.arange(len(parts)), torch.tensor(sizes)),
    )


def compact(x: Tensor) -> Tensor:
    """Wide and mostly empty features as sparse CSR, others as they are."""
    if x.size(1) < _WIDE or int(torch.count_nonzero(x)) > _DENSE_ENOUGH * x.numel():
        return x
    row, col = x.nonzero(as_tuple=True)
    crow = torch.zeros(x.size(0) + 1, dtype=torch.int64)
    torch.cumsum(torch.bincount(row, minlength=x.size(0)), 0, out=crow[1:])
    return csr(crow, col, x[row, col], (x.size(0), x.size(1)))


def read_linqs(folder: Path, university: str) -> Data:
    """One university of LINQS's WebKB: pages (``.content``) and links (``.cites``: the page linked to, then by which).

    Classes are numbered by name, alike for every university.
    """
    content, cites = folder / f"WebKB-LINQS/{university}.content", folder / f"WebKB-LINQS/{university}.cites"
    page_id: dict[str, int] = {}
    words: list[np.ndarray] = []
    classes: list[int] = []
    for number, line in _lines(content):
        page, *row = line.split("\t")
        label = row.pop() if row else ""
        wrong_width = bool(words) and len(row) != len(words[0])
        if page in page_id or label not in _LINQS_CLASSES or not set(row) <= {"0", "1"} or wrong_width:
            raise MarioError(
                f"{content.name} line {number} is damaged: it must be a new URL, 0/1 words and a class, by tabs"
            )
        page_id[page] = len(page_id)
        words.append(np.array(row, dtype=np.float32))
        classes.append(_LINQS_CLASSES.index(label))
    links = []
    for number, line in _lines(cites):
        ends = line.split()
        if len(ends) != 2 or not set(ends) <= page_id.keys():
            raise MarioError(f"{cites.name} line {number} is damaged: it must be two URLs of pages in {content.name}")
        links.append((page_id[ends[1]], page_id[ends[0]]))
    return Data(
        x=torch.from_numpy(np.stack(words)),
        edge_index=torch.tensor(links, dtype=torch.int64).view(-1, 2).t().contiguous(),
        y=torch.tensor(classes),
    )


def check_npz(path: Path, members: Sequence[str]) -> None:
    """Raise `MarioError` unless every member that PyG will read is there once, is whole and is plain numbers.

    PyG opens some of them with ``allow_pickle``; NumPy then unpickles object arrays, and files that are no archive.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [entry.filename for entry in archive.infolist()]
            for member in members:
                if names.count(f"{member}.npy") != 1 or member in names:
                    raise MarioError(f"{path.name} must hold one array {member!r}, as PyG reads it")
                with archive.open(f"{member}.npy") as stream:
                    np.lib.format.read_array(stream, allow_pickle=False)
    except MarioError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each have their own ways to say "damaged"
        raise MarioError(f"{path.name} is damaged or holds pickled objects, which are never read: {error}") from None


def _build(card: DatasetCard, folder: Path) -> Data:
    source = _PYG_SOURCES.get(card.name)
    with tempfile.TemporaryDirectory(prefix="mario-") as private:
        stage = Path(private)
        try:
            if card.name == "elliptic":  # our own parser reads the files in place, large as they are
                data = read_elliptic(*file_paths(card, folder))
                check_graph(data)
                return data
            if card.name in _TU_NAMES:
                data = read_tu(folder, _TU_NAMES[card.name])
                check_graph(data)
                return data
            for file in card.files:
                _stage(file, folder, stage, source.npz_members if source else ())
            with contextlib.redirect_stderr(io.StringIO()):  # PyG's "Processing..."
                graphs = [read_linqs(stage, name) for name in card.parts] if source is None else source.read(stage)
            for graph in graphs:  # each by itself: side by side, an id past the end of one is a node of the next
                check_graph(Data(x=graph.x, edge_index=graph.edge_index, y=graph.y))
            data = combine(graphs)
            if not card.parts:
                del data.part_id
        except MarioError as error:
            raise MarioError(f"{card.name} cannot be read from {folder}: {error}") from None
        except Exception as error:  # a parser met something that is not the published format
            named = f"{type(error).__name__}: {error}"
            advice = f"`mario data verify {card.name}` says which"
            raise MarioError(
                f"{card.name} cannot be read from {folder}: a file is damaged ({named}); {advice}"
            ) from None
    return data


def _stage(file: RawFile, folder: Path, stage: Path, npz_members: Sequence[str]) -> None:
    copied = stage / file.path
    copied.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / file.path, copied)
    if npz_members:
        check_npz(copied, npz_members)
    if "attr_shape" in npz_members:
        _check_csr_members(copied)


def _check_csr_members(path: Path) -> None:
    """SciPy trusts indices when it makes a matrix dense, so that wrong ones would write outside it."""
    with np.load(path, allow_pickle=False) as arrays:
        for matrix in ("attr", "adj"):
            indices, indptr = arrays[f"{matrix}_indices"], arrays[f"{matrix}_indptr"]
            rows, columns = (int(size) for size in arrays[f"{matrix}_shape"])
            sound = (
                indptr.shape == (rows + 1,)
                and indptr[0] == 0
                and bool((np.diff(indptr) >= 0).all())
                and indptr[-1] == len(indices) == len(arrays[f"{matrix}_data"])
                and (not len(indices) or (indices.min() >= 0 and indices.max() < columns))
            )
            if not sound:
                raise MarioError(
                    f"{path.name} is damaged: {matrix}_indices and {matrix}_indptr are no matrix of {rows} x {columns}"
                )


def _download(card: DatasetCard) -> None:
    """Into a private folder in the cache first, so that a file in its place is always a whole one."""
    home = downloads_folder()
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".downloading-") as private:
        stage = Path(private)
        with _time_limit(60):
            if card.name in _PYG_SOURCES:
                _PYG_SOURCES[card.name].download(stage)
            elif card.name == "elliptic":
                _download_elliptic(card, stage)
            elif card.name in _TU_NAMES:
                _download_tu(_TU_NAMES[card.name], stage)
            else:
                _download_linqs(card, stage)
        for file in card.files:
            # PyG does not check certificates; where we know the published bytes, nothing else gets in.
            if card.name in ("webkb", "good-webkb", *_TU_NAMES) and sha256(stage / file.path) != file.sha256:
                raise MarioError(
                    f"the download of {card.name} brought a {file.path} that is not the published one; try again"
                )
            target = home / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(stage / file.path, target)


def _download_linqs(card: DatasetCard, stage: Path) -> None:
    with urllib.request.urlopen(card.source.split()[0]) as response:
        packed = io.BytesIO(response.read())
    with tarfile.open(fileobj=packed) as archive:
        members = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}
        for file in card.files:
            content = archive.extractfile(members[Path(file.path).name])
            target = stage / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read() if content else b"")


def _download_tu(name: str, stage: Path) -> None:
    with urllib.request.urlopen(f"{datasets.TUDataset.url}/{name}.zip") as response:
        packed = io.BytesIO(response.read())
    raw = stage / "TUDataset" / name / "raw"
    raw.mkdir(parents=True)
    with zipfile.ZipFile(packed) as archive:
        for part in ("A", "graph_indicator", "graph_labels", "node_labels"):
            (raw / f"{name}_{part}.txt").write_bytes(archive.read(f"{name}/{name}_{part}.txt"))


def _download_elliptic(card: DatasetCard, stage: Path) -> None:
    for file in card.files:
        target = stage / file.path
        with urllib.request.urlopen(f"{datasets.EllipticBitcoinDataset.url}/{target.name}.zip") as response:
            packed = io.BytesIO(response.read())
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(packed) as archive, archive.open(target.name) as content, target.open("wb") as written:
            shutil.copyfileobj(content, written)


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """PyG sets no time limit on its connections, and a firewall that drops packets would hold the user for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MarioError(f"{path.name} cannot be read: {error}") from None
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def _compacted(data: Data) -> Data:
    data.x = compact(data.x)
    return data


_TU_NAMES = {"proteins-25": "PROTEINS", "dd-200": "DD", "dd-300": "DD"}
_LINQS_CLASSES = ("course", "faculty", "project", "staff", "student")
_MATRICES = (*_CSR_MEMBERS, "labels")
_PYG_SOURCES = {
    "good-webkb": PygSource(datasets.WebKB, "WebKB", ("cornell", "texas", "wisconsin")),
    "good-twitch": PygSource(
        datasets.Twitch, "Twitch", ("DE", "EN", "ES", "FR", "PT", "RU"), ("features", "target", "edges")
    ),
    "good-cora": PygSource(datasets.CitationFull, "CitationFull", ("Cora",), _MATRICES),
    "coauthor-cs": PygSource(datasets.Coauthor, "Coauthor", ("CS",), _MATRICES),
    "amazon-photo": PygSource(datasets.Amazon, "Amazon", ("Photo",), _MATRICES),
}
