"""The files that a table is read from: found by name, opened as bytes, decompressed within limits, and counted."""

import bz2
import glob
import gzip
import hashlib
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from mario.errors import MarioError, RunFailedError
from mario.untrusted import open_file

COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd", ".xz": "xz"}
TABLE_FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".edges": "csv",
    ".edgelist": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
}
"""Formats of tables by the end of a file's name, which may be followed by one of `COMPRESSIONS`."""
GRAPH_FORMATS = {".npz": "npz", ".mat": "mat", ".graphml": "graphml", ".gml": "gml", ".gexf": "gexf", ".pt": "pt"}
"""Formats of whole graphs: see `mario.graphs.tables.formats`."""
MOST_FILES = 10_000

BOMB_RATIO = 200
BOMB_BYTES = 2**26
"""A file that grows by more than this ratio when it is decompressed, and beyond this size, is refused."""
_BLOCK = 2**20
_PART_OF_NAME = re.compile(r"[A-Za-z0-9][^=/\\]*=")


@dataclass(frozen=True)
class TableFile:
    """A file of a table.

    Attributes:
        path: where it is.
        graph: the name of the graph it belongs to; empty if the table is of one graph.
        form: one of the values of `TABLE_FORMATS` and `GRAPH_FORMATS`.
        compression: one of the values of `COMPRESSIONS`, or empty.
    """

    path: Path
    graph: str
    form: str
    compression: str

    def __str__(self) -> str:
        return str(self.path)


@dataclass
class Meter:
    """How much of the files was read, and what they were.

    Attributes:
        total: bytes of all files.
        done: bytes that were read.
        watch: called with the meter after each block.
        digests: the checksum of each file that was read to its end.
    """

    total: int = 0
    done: int = 0
    watch: "Callable[[Meter], None]" = lambda meter: None
    digests: dict[Path, str] = field(default_factory=dict)

    def add(self, count: int) -> None:
        """Count bytes that were read."""
        self.done += count
        self.watch(self)


def table_files(given: Sequence[str | os.PathLike[str]], option: str) -> list[TableFile]:
    """The files that texts such as ``nodes.csv``, ``parts/*.parquet`` and ``de=german.csv`` name, in order.

    Args:
        given: paths or patterns, each with the name of its graph before ``=`` if there are several.
        option: what to call them in errors.

    Example:
        >>> table_files(["no/such.csv"], "--nodes")
        Traceback (most recent call last):
            ...
        mario.errors.MarioError: --nodes: there is no file no/such.csv
    """
    found: list[TableFile] = []
    for text in given:
        whole = os.fspath(text)
        if not whole or "\0" in whole:
            raise MarioError(f"{option} must name a file, got {whole!r}")
        named = _PART_OF_NAME.match(whole) if isinstance(text, str) and not os.path.exists(whole) else None
        graph, pattern = (whole[: named.end() - 1], whole[named.end() :]) if named else ("", whole)
        pattern = os.path.expanduser(pattern)
        if not pattern:
            raise MarioError(f"{option}: {whole!r} names no file; write {graph}=FILE")
        paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
        if not paths:
            what = "no file matches" if glob.has_magic(pattern) else "there is no file"
            raise MarioError(f"{option}: {what} {pattern[:500]}")
        if len(found) + len(paths) > MOST_FILES:
            raise MarioError(f"{option}: {pattern} matches {len(paths):,} files; at most {MOST_FILES:,} are read")
        found += [_described(Path(path), graph, option) for path in paths]
    seen: set[Path] = set()
    for file in found:
        place = file.path.resolve()
        if place in seen:
            raise MarioError(f"{option}: {file} is given twice; name each file once")
        seen.add(place)
    if any(file.graph for file in found) and not all(file.graph for file in found):
        bare = next(file for file in found if not file.graph)
        raise MarioError(f"{option}: {bare} has no name, but other files do; write NAME={bare} for it too")
    return found


def by_file(files: Sequence[TableFile]) -> list[TableFile]:
    """The same files, each a graph of its own, named by what differs in the names of the files.

    Example:
        >>> files = [_described(Path(f"{lang}/musae_{lang}_edges.csv"), "", "") for lang in ("DE", "ES")]
        >>> [file.graph for file in by_file(files)]
        ['DE', 'ES']
    """
    stems = [_stem(file.path) for file in files]
    if len(stems) > 1:
        parts = [re.split(r"([._\- ])", stem) for stem in stems]
        while len({part[0] for part in parts}) == 1 and all(len(part) > 2 for part in parts):
            parts = [part[2:] for part in parts]
        while len({part[-1] for part in parts}) == 1 and all(len(part) > 2 for part in parts):
            parts = [part[:-2] for part in parts]
        stems = ["".join(part) for part in parts]
    return [TableFile(file.path, stem, file.form, file.compression) for file, stem in zip(files, stems, strict=True)]


def open_table(file: TableFile, meter: Meter | None = None) -> BinaryIO:
    """The decompressed bytes of a file, forward only. Its end puts the file's checksum into ``meter``.

    Errors of the decompression are `MarioError`, and so is a file that grows beyond `BOMB_RATIO`.
    """
    raw = _Raw(file, meter)
    if not file.compression:
        return io.BufferedReader(raw, _BLOCK)
    return io.BufferedReader(_Unpacked(file, raw), _BLOCK)


def total_bytes(files: Iterable[TableFile]) -> int:
    """The bytes of all files; `MarioError` if one cannot be read."""
    total = 0
    for file in files:
        with open_file(file.path) as opened:
            total += os.fstat(opened.fileno()).st_size
    return total


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    with open_file(path) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()  # type: ignore[arg-type]


class _Raw(io.RawIOBase):
    """The bytes of a file as they are, counted and added to a checksum."""

    def __init__(self, file: TableFile, meter: Meter | None) -> None:
        self.file, self.meter = file, meter
        self.count = 0
        self._opened = open_file(file.path)
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            got = self._opened.readinto(buffer)  # type: ignore[attr-defined]
        except OSError as error:
            raise RunFailedError(f"cannot read {self.file}: {error.strerror or error}") from error
        self.count += got
        if self.meter is not None:
            self._hash.update(memoryview(buffer)[:got])
            if got:
                self.meter.add(got)
            else:
                self.meter.digests[self.file.path] = self._hash.hexdigest()
        return int(got)

    def close(self) -> None:
        self._opened.close()
        super().close()


class _Unpacked(io.RawIOBase):
    """The decompressed bytes of a file, with a limit on how much larger they are."""

    def __init__(self, file: TableFile, raw: _Raw) -> None:
        self.file, self._raw = file, raw
        self._count = 0
        self._opened = _decompress(file.compression, raw)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            content = self._opened.read(len(buffer))
        except MarioError:
            raise
        except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
            kind = self.file.compression
            raise MarioError(
                f"{self.file} is not a sound {kind} file ({error}) after {self._count:,} bytes; copy or make it again"
            ) from None
        self._count += len(content)
        if self._count > max(BOMB_BYTES, BOMB_RATIO * self._raw.count):
            raise MarioError(
                f"{self.file} grows to more than {BOMB_RATIO} times its size when it is decompressed, which no table "
                f"does; if it is one, decompress it first"
            )
        if not content and self._raw.meter is not None:
            while self._raw.read(_BLOCK):  # to its end, for the checksum
                pass
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._opened.close()
        self._raw.close()
        super().close()


def _decompress(compression: str, raw: _Raw) -> Any:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=raw, mode="rb")
    if compression == "bzip2":
        return bz2.BZ2File(raw, "rb")
    if compression == "xz":
        return lzma.LZMAFile(raw, "rb")  # type: ignore[arg-type]
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")


def _described(path: Path, graph: str, option: str) -> TableFile:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = COMPRESSIONS.get(suffixes[-1], "") if suffixes else ""
    ending = (suffixes[-2] if len(suffixes) > 1 else "") if compression else (suffixes[-1] if suffixes else "")
    form = TABLE_FORMATS.get(ending) or GRAPH_FORMATS.get(ending)
    if form is None:
        known = ", ".join((*TABLE_FORMATS, *GRAPH_FORMATS))
        hint = "unpack it first" if ending in (".zip", ".tar", ".7z", ".rar", ".tgz") else "rename or convert it"
        raise MarioError(
            f"{option}: {path} is of an unknown kind; {hint}. Names end with {known}, and then perhaps with "
            f"{', '.join(COMPRESSIONS)}"
        )
    if compression and form not in ("csv", "jsonl", "json"):
        raise MarioError(f"{option}: {path} is compressed as a whole, which {ending} files are not; decompress it")
    return TableFile(path, graph, form, compression)


def _stem(path: Path) -> str:
    name = path.name
    for suffix in reversed(path.suffixes[-2:]):
        if suffix.lower() in (*COMPRESSIONS, *TABLE_FORMATS, *GRAPH_FORMATS):
            name = name[: -len(suffix)]
    return name
