"""Raw files through PyG's dataset classes.

Raw files may be read-only, damaged or hostile. They are copied into a private folder, checked there, and handed to PyG,
which writes its ``processed`` files next to them. A ``processed`` file of the user is never read: it is a pickle.
"""

import contextlib
import io
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric import datasets
from torch_geometric.data import Data, InMemoryDataset

from mario.errors import MarioError
from mario.graphs.sparse import csr
from mario.graphs.validation import check_graph

_WIDE, _DENSE_ENOUGH = 2000, 0.1


def read_pyg(
    pyg_class: str, names: Sequence[str], files: Mapping[str, Path], npz_members: Sequence[str] = ()
) -> list[Data]:
    """The graph of each name, as ``torch_geometric.datasets.<pyg_class>`` reads it.

    Args:
        pyg_class: the name of the class.
        names: the names that it is called with.
        files: for each path at which the class expects a file, in a folder named like the class, the file to copy.
        npz_members: the arrays that the class reads from an ``.npz`` file; see :func:`check_npz`.
    """
    with tempfile.TemporaryDirectory(prefix="mario-") as private:
        for path, file in files.items():
            copied = Path(private) / path
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copied)
            if npz_members:
                check_npz(copied, npz_members)
            if "attr_shape" in npz_members:
                _check_csr_members(copied)
        with contextlib.redirect_stderr(io.StringIO()):  # PyG prints "Processing..."
            home = str(Path(private) / pyg_class)
            return [_dataset(pyg_class)(home, name, pre_transform=_compacted)[0] for name in names]


def combine(parts: Sequence[Data]) -> Data:
    """Put graphs into one disconnected graph; ``part_id`` is the index of the graph that a node is from.

    Each graph is checked first: in the combined graph, an id that is out of range would be a node of the next part.
    """
    for part in parts:
        check_graph(Data(x=part.x, edge_index=part.edge_index, y=part.y))
    sizes = [part.x.size(0) for part in parts]
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    return Data(
        x=parts[0].x if len(parts) == 1 else torch.cat([part.x for part in parts]),
        edge_index=torch.cat([part.edge_index + start for part, start in zip(parts, starts, strict=True)], dim=1),
        y=torch.cat([part.y for part in parts]),
        part_id=torch.repeat_interleave(torch.arange(len(parts)), torch.tensor(sizes)),
    )


def compact(x: Tensor) -> Tensor:
    """Wide features that are mostly zero as sparse CSR; other features unchanged."""
    if x.size(1) < _WIDE or int(torch.count_nonzero(x)) > _DENSE_ENOUGH * x.numel():
        return x
    row, col = x.nonzero(as_tuple=True)
    crow = torch.zeros(x.size(0) + 1, dtype=torch.int64)
    torch.cumsum(torch.bincount(row, minlength=x.size(0)), 0, out=crow[1:])
    return csr(crow, col, x[row, col], (x.size(0), x.size(1)))


def check_npz(path: Path, members: Sequence[str]) -> None:
    """Raise `MarioError` unless every array that PyG will read is there once, is complete and holds plain numbers.

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
    except Exception as error:  # zipfile, zlib and numpy each have their own errors for damaged files
        raise MarioError(f"{path.name} is damaged or holds pickled objects, which are never read: {error}") from None


def _dataset(pyg_class: str) -> type[InMemoryDataset]:
    found: type[InMemoryDataset] = getattr(datasets, pyg_class)
    return found


def _check_csr_members(path: Path) -> None:
    """SciPy trusts indices when it makes a matrix dense; wrong ones would write outside the matrix."""
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
                    f"{path.name} is damaged: {matrix}_indices and {matrix}_indptr are not a {rows} x {columns} matrix"
                )


def _compacted(data: Data) -> Data:
    data.x = compact(data.x)
    return data
