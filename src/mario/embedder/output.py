"""Files of embeddings and of predictions: Parquet, NumPy and text, written batch by batch and whole or not at all."""

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import torch

import mario
from mario.embedder.embedding import Embeddings, Predictions
from mario.embedder.ids import COLUMN, Ids, needed
from mario.errors import MarioError, RunFailedError
from mario.files import check_path, write_whole

if TYPE_CHECKING:
    import pyarrow

EMBEDDINGS = (".parquet", ".npy", ".tsv", ".vec")
PREDICTIONS = (".parquet", ".csv", ".tsv")
VECTOR = "embedding"
"""The column of the vectors."""
_GROUP_BYTES, _GROUP_ROWS = 2**27, 2**17
_SPARE = 2**24
_MOST_COLUMNS = 10_000

Watch = Callable[[int, int], object]
"""Called with the rows written and all rows."""


def check_out(out: Path, kinds: tuple[str, ...]) -> Path:
    """``out`` if a file can be there in one of the formats ``kinds``; `MarioError` otherwise."""
    out = check_path("-o", out).expanduser()
    if out.suffix.lower() not in kinds:
        raise MarioError(f"-o must end with {', '.join(kinds[:-1])} or {kinds[-1]}, got {str(out)!r}")
    if out.is_dir():
        raise MarioError(f"{out} is a folder: name a file for -o")
    for home in out.absolute().parents:
        if home.exists():
            if not home.is_dir():
                raise MarioError(f"{home} is a file, so {out} cannot be written: choose another file for -o")
            break
    if out.suffix.lower() == ".parquet":
        needed("Parquet files")
    return out


def write_embeddings(
    z: Embeddings, out: Path, *, columns: bool = False, narrow: bool = False, watch: Watch | None = None
) -> list[Path]:
    """Write vectors with their ids to ``out``, in the format of its suffix; the files that were written.

    - ``.parquet``: ``id`` in its own type and ``embedding``, a list of fixed size of float32, or with ``columns`` one
      column per number, such as ``graph_0``. The metadata has the digest of the model, the fingerprint of the graph and
      the columns of each block.
    - ``.npy``: a matrix of float32; ids are beside it in ``NAME.ids.npy``.
    - ``.tsv``: a header, then one row per line, with tabs.
    - ``.vec``: the text format of word2vec: counts, then one row per line, with spaces.

    With ``narrow``, blocks of more than 1,024 columns are projected to 256.
    """
    out = check_out(out, EMBEDDINGS)
    suffix = out.suffix.lower()
    if columns and suffix != ".parquet":
        raise MarioError(f"columns is for .parquet: {suffix} has one column per number anyway")
    if columns and z.width(narrow=narrow) > _MOST_COLUMNS:
        raise MarioError(f"{z.width(narrow=narrow):,} columns are too many for a table: write one column of vectors")
    _check_room(out, len(z) * z.width(narrow=narrow) * 4 if suffix == ".npy" else 0)
    watch = watch or (lambda done, total: None)
    if suffix == ".parquet":
        write_whole(out, lambda name: _parquet(z, name, columns, narrow, watch))
        return [out]
    if suffix == ".npy":
        beside = out.with_suffix(".ids.npy")

        def both(name: str) -> None:
            write_ids(z.ids, name)
            write_whole(out, lambda target: _npy(z, target, narrow, watch))

        write_whole(beside, both)
        return [out, beside]
    write_whole(out, lambda name: (_tsv if suffix == ".tsv" else _vec)(z, name, narrow, watch))
    return [out]


def write_predictions(
    found: Predictions, out: Path, *, at_least: float = 0.0, watch: Watch | None = None
) -> tuple[Path, int]:
    """Write ids, labels and probabilities; the file, and the number of rows whose label is left empty.

    Args:
        found: What :func:`mario.embedder.predict` returned.
        out: A ``.parquet``, ``.csv`` or ``.tsv`` file.
        at_least: Leave the label empty where its probability is lower than this.
        watch: Called with the rows written and all rows.
    """
    out = check_out(out, PREDICTIONS)
    if not 0 <= at_least <= 1:
        raise MarioError(f"at_least must be a probability from 0 to 1, got {at_least}")
    left = _Counted()
    watch = watch or (lambda done, total: None)
    write = _labels_parquet if out.suffix.lower() == ".parquet" else _labels_text
    write_whole(out, lambda name: write(found, name, out.suffix.lower(), at_least, left, watch))
    return out, left.count


# Embeddings -----------------------------------------------------------------------------------------------------------


def metadata(z: Embeddings) -> dict[str, str]:
    """What the metadata of a Parquet file says."""
    return {
        "mario.model": z.digest,
        "mario.graph": z.graph.fingerprint,
        "mario.version": mario.__version__,
        "mario.blocks": json.dumps({name: [part.start, part.stop] for name, part in z.blocks.columns.items()}),
    }


def _parquet(z: Embeddings, name: str, columns: bool, narrow: bool, watch: Watch) -> None:
    arrow = needed("Parquet files")
    width = z.width(narrow=narrow)
    names = _column_names(z, narrow) if columns else []
    kind = z.ids.arrow(0, 1).type
    number = arrow.float32()
    fields = [arrow.field(COLUMN, kind)]
    fields += [arrow.field(one, number) for one in names] or [arrow.field(VECTOR, arrow.list_(number, width))]
    about = metadata(z)
    if narrow:
        del about["mario.blocks"]

    def batches() -> Iterator["pyarrow.Table"]:
        for start, stop, part in z.batches(_group(width), narrow=narrow):
            ids = z.ids.arrow(start, stop)
            if columns:
                vectors = [arrow.array(column) for column in part.T.contiguous().numpy()]
            else:
                flat = arrow.array(part.contiguous().numpy().reshape(-1))
                vectors = [arrow.FixedSizeListArray.from_arrays(flat, width)]
            yield arrow.Table.from_arrays([ids, *vectors], schema=arrow.schema(fields))
            watch(stop, len(z))

    _write_parquet(name, arrow.schema(fields, metadata=about), batches())


def _write_parquet(name: str, schema: "pyarrow.Schema", tables: Iterator["pyarrow.Table"]) -> None:
    import pyarrow.parquet as parquet

    with parquet.ParquetWriter(name, schema) as writer:
        for table in tables:
            writer.write_table(table.cast(schema), row_group_size=max(1, table.num_rows))


def _group(width: int) -> int:
    """Rows that are written at a time."""
    return max(1, min(_GROUP_ROWS, _GROUP_BYTES // (4 * width)))


def _column_names(z: Embeddings, narrow: bool) -> list[str]:
    if not narrow or z.width(narrow=True) == z.width():
        return z.columns
    return [f"z_{i}" for i in range(z.width(narrow=True))]


def _npy(z: Embeddings, name: str, narrow: bool, watch: Watch) -> None:
    shape = (len(z), z.width(narrow=narrow))
    with open(name, "wb") as file:
        _npy_header(file, np.dtype(np.float32), shape)
        for _, stop, part in z.batches(_group(shape[1]), narrow=narrow):
            file.write(np.ascontiguousarray(part.numpy()).data)
            watch(stop, len(z))


def write_ids(ids: Ids, name: str) -> None:
    """Write ids to an ``.npy`` file: whole numbers as they are, everything else as text."""
    step = _GROUP_ROWS
    whole = not ids.named or str(ids.arrow(0, 1).type).startswith(("int", "uint"))
    kind = np.dtype(np.int64)
    if whole and ids.named:
        kind = np.dtype(ids.arrow(0, 1).type.to_pandas_dtype())
    elif not whole:
        parts = (ids.values(start, start + step) for start in range(0, len(ids), step))
        kind = np.dtype(f"<U{max((len(str(value)) for part in parts for value in part), default=1) or 1}")
    with open(name, "wb") as file:
        _npy_header(file, kind, (len(ids),))
        for start in range(0, len(ids), step):
            values = ids.values(start, start + step)
            file.write(np.array(values if whole else [str(value) for value in values], dtype=kind).tobytes())


def _npy_header(file: BinaryIO, kind: "np.dtype[Any]", shape: tuple[int, ...]) -> None:
    about = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)


def _tsv(z: Embeddings, name: str, narrow: bool, watch: Watch) -> None:
    with open(name, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter="\t", lineterminator="\n")
        rows.writerow([COLUMN, *_column_names(z, narrow)])
        for start, stop, part in z.batches(_group(z.width(narrow=narrow)), narrow=narrow):
            rows.writerows(zip(z.ids.values(start, stop), *_texts(part), strict=True))
            watch(stop, len(z))


def _vec(z: Embeddings, name: str, narrow: bool, watch: Watch) -> None:
    with open(name, "w", encoding="utf-8", newline="") as file:
        file.write(f"{len(z)} {z.width(narrow=narrow)}\n")
        for start, stop, part in z.batches(_group(z.width(narrow=narrow)), narrow=narrow):
            for one, row in zip(z.ids.values(start, stop), zip(*_texts(part), strict=True), strict=True):
                if not str(one) or any(mark.isspace() for mark in str(one)):
                    raise MarioError(f"id {one!r} is empty or has white space, which .vec cannot hold: use .tsv")
                file.write(f"{one} {' '.join(row)}\n")
            watch(stop, len(z))


def _texts(part: torch.Tensor) -> list[list[str]]:
    """The columns of a batch as texts that are read as the same float32."""
    return [["%.9g" % number for number in column] for column in part.T.tolist()]  # noqa: UP031 (the fastest)


def _check_room(out: Path, size: int) -> None:
    """Raise an error now if a disk has no room for ``size`` bytes, not after hours."""
    home = next(folder for folder in out.absolute().parents if folder.exists())
    free = shutil.disk_usage(home).free
    if size and size > free - _SPARE:
        raise RunFailedError(
            f"{home} has {free / 2**30:.1f} GiB free, and {out.name} needs {size / 2**30:.1f} GiB: free some space, or "
            "choose another folder for -o"
        )


# Predictions ----------------------------------------------------------------------------------------------------------


class _Counted:
    count = 0


def _names(found: Predictions) -> tuple[str, list[str]]:
    """The column of labels, and that of each class."""
    label = found.label if found.label not in (COLUMN, "probability") else f"predicted_{found.label}"
    return label, [f"p_{name}" for name in found.class_names]


def _labeled(found: Predictions, probabilities: torch.Tensor, at_least: float, left: _Counted) -> tuple[list[Any], Any]:
    """The label of each row, ``None`` where it is left empty, and its probability."""
    best, place = probabilities.max(1)
    classes: list[Any] = list(found.class_names)
    if all(name.isdecimal() and str(int(name)) == name for name in found.class_names):
        classes = [int(name) for name in found.class_names]
    labels = [classes[at] if sure >= at_least else None for at, sure in zip(place.tolist(), best.tolist(), strict=True)]
    left.count += sum(label is None for label in labels)
    return labels, best


def _labels_parquet(found: Predictions, name: str, suffix: str, at_least: float, left: _Counted, watch: Watch) -> None:
    arrow = needed("Parquet files")
    label, columns = _names(found)
    ids = found.embeddings.ids
    texts = not all(one.isdecimal() and str(int(one)) == one for one in found.class_names)
    fields = [arrow.field(COLUMN, ids.arrow(0, 1).type), arrow.field(label, arrow.string() if texts else arrow.int64())]
    fields += [arrow.field(one, arrow.float64()) for one in ("probability", *columns)]

    def tables() -> Iterator["pyarrow.Table"]:
        for start, stop, part in found.batches():
            labels, best = _labeled(found, part, at_least, left)
            values = [best.numpy(), *part.T.contiguous().numpy()]
            arrays = [ids.arrow(start, stop), arrow.array(labels, fields[1].type), *map(arrow.array, values)]
            yield arrow.Table.from_arrays(arrays, schema=arrow.schema(fields))
            watch(stop, len(found))

    about = {key: value for key, value in metadata(found.embeddings).items() if key != "mario.blocks"}
    _write_parquet(name, arrow.schema(fields, metadata=about), tables())


def _labels_text(found: Predictions, name: str, suffix: str, at_least: float, left: _Counted, watch: Watch) -> None:
    label, columns = _names(found)
    with open(name, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
        rows.writerow([COLUMN, label, "probability", *columns])
        for start, stop, part in found.batches():
            labels, best = _labeled(found, part, at_least, left)
            numbers = [[f"{number:.6g}" for number in column.tolist()] for column in (best, *part.T)]
            rows.writerows(zip(found.embeddings.ids.values(start, stop), labels, *numbers, strict=True))
            watch(stop, len(found))
