"""Parts of a table as batches of rows: CSV, Parquet, JSON lines, JSON, and memory. Errors name file and row."""

import codecs
import csv
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from mario.errors import MarioError, nearest
from mario.graphs.tables.sources import Meter, TableFile, checksum, open_table
from mario.untrusted import TEXT_BYTES, parse_json

BLOCK = 1 << 22
"""Bytes of a text file that are parsed at a time, and the longest row."""
SAMPLE_ROWS = 20_000
MOST_COLUMNS = 20_000
_HEAD = 1 << 21
_NEW_LINE = b"\n"
_BATCH = 1 << 16
_SHOWN = 60
_ENDS = ("source", "target", "weight")


class WrongTypeError(MarioError):
    """A value that is not of the type of its column: the column, which can be read as text instead."""

    def __init__(self, what: str, column: str) -> None:
        super().__init__(what)
        self.column = column


class Part(ABC):
    """A part of a table: a file, or a table in memory.

    Attributes:
        name: what to call it in errors.
        graph: the name of the graph it is of, or empty.
        first: the number of its first row: 2 where there is a header.
        schema: of its columns, as far as the first rows tell.
        sample: its first rows.
        file: where it comes from, if it is a file.
        typed: whether the file itself says what types its columns have.
    """

    name: str
    graph: str = ""
    first: int = 1
    schema: pa.Schema
    sample: pa.Table
    file: TableFile | None = None
    typed: bool = True

    @abstractmethod
    def read(self, columns: Mapping[str, pa.DataType], meter: Meter) -> Iterator[pa.RecordBatch]:
        """The rows, with these columns in this order and of these types."""

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the columns."""
        return frozenset(self.schema.names)

    def where(self, row: int, column: str | None = None) -> str:
        """What to call a row, counted from 0, in an error.

        In a file with a header the first row of data is row 2, as in a spreadsheet.
        """
        return f"{self.name}, row {row + self.first:,}" + ("" if column is None else f", column {column}")


def open_part(file: TableFile, what: str = "nodes") -> Part:
    """The table in a file, of which the first rows are read."""
    if file.form == "csv":
        return CsvPart(file, what)
    if file.form == "parquet":
        return ParquetPart(file)
    if file.form == "jsonl":
        return JsonLinesPart(file)
    if file.form == "json":
        return read_json_part(file)
    raise MarioError(f"{file} is a whole graph; give it alone, as --graph")


class MemoryPart(Part):
    """A table in memory."""

    def __init__(self, table: pa.Table, name: str, graph: str = "", file: TableFile | None = None) -> None:
        self.name, self.graph, self.file = name, graph, file
        self.schema, self._table = table.schema, table
        self.sample = table.slice(0, SAMPLE_ROWS)
        _check_names(self.schema.names, self.name)

    def read(self, columns: Mapping[str, pa.DataType], meter: Meter) -> Iterator[pa.RecordBatch]:
        _check_there(self, columns)
        done = 0
        for batch in self._table.select(list(columns)).to_batches(max_chunksize=_BATCH):
            yield _cast(self, batch, columns, done)
            done += batch.num_rows
        if self.file is not None:
            meter.digests[self.file.path] = checksum(self.file.path)
            meter.add(self.file.path.stat().st_size)


class ListsPart(MemoryPart):
    """A JSON file with a list for each id."""

    typed = False


class CsvPart(Part):
    """A CSV or TSV file, or a list of edges without a header; compressed or not; UTF-8, or UTF-16 with its mark."""

    typed = False

    def __init__(self, file: TableFile, what: str = "nodes") -> None:
        self.name, self.graph, self.file = str(file), file.graph, file
        with closing(open_table(file)) as opened:
            head = _read(opened, _HEAD)
        _check_head(head, self.name)
        self._encoding, head = _encoding(head, self.name)
        text = head.decode("utf-8", errors="replace")
        skipped = _leading(text)
        lines = text.split("\n", skipped + 2)[skipped:]
        rows = [line.rstrip("\r") for line in lines[:2]]
        if not rows or not rows[0].strip():
            raise MarioError(f"{self.name} has no rows; write a header and the rows below it")
        if "\n" not in text and "\r" in text:
            rows = text.split("\r")[skipped : skipped + 2]
        self._delimiter = _delimiter(rows, ".tsv" in file.path.suffixes)
        names = [name.strip() for name in next(csv.reader([rows[0]], delimiter=self._delimiter))]
        if all(_is_number(name) for name in names):
            if what == "nodes" or not 2 <= len(names) <= len(_ENDS):
                raise MarioError(
                    f"{self.name}, row {skipped + 1}: there is no header, as the first row has numbers only; write a "
                    "row with the names of the columns above it"
                )
            names = list(_ENDS[: len(names)])
            self._skip, self.first = skipped, skipped + 1
        else:
            self._skip, self.first = skipped + 1, skipped + 2
        _check_names(names, self.name)
        if what == "edges" and len(names) < 2:
            raise MarioError(
                f"{self.name} has one column, {_short(names[0])}; edges need two, separated by a comma, a semicolon, a "
                "tab or a space"
            )
        self._names = names
        reader = self._reader(None, Meter())
        with reader as batches:
            found = [batch for batch, _ in zip(batches, range(1), strict=False)]
        if not found or not found[0].num_rows:
            raise MarioError(f"{self.name} has a header and no rows below it")
        sample = pa.Table.from_batches(found).slice(0, SAMPLE_ROWS)
        self.schema = pa.schema(
            [
                pa.field(field.name, pa.string() if pa.types.is_binary(field.type) else field.type)
                for field in sample.schema
            ]
        )
        self.sample = pa.table(
            [_as_text(self, sample.column(name), name) for name in sample.schema.names], schema=self.schema
        )

    def read(self, columns: Mapping[str, pa.DataType], meter: Meter) -> Iterator[pa.RecordBatch]:
        _check_there(self, columns)
        rows, last = 0, None
        reader = self._reader(columns, meter)
        with reader as batches:
            for batch in batches:
                rows += batch.num_rows
                last = batch if batch.num_rows else last
                yield batch
        if reader.quotes % 2 and last is not None:
            values = [str(column[-1].as_py()) for column in last.columns]
            if len(columns) < len(self._names) or any("\n" in value for value in values):
                self._check_open_quote(rows)

    def _reader(self, columns: "Mapping[str, pa.DataType] | None", meter: Meter) -> "_CsvReader":
        assert self.file is not None
        convert = pa.csv.ConvertOptions(
            column_types=dict(columns or {}), include_columns=list(columns or ()), strings_can_be_null=False
        )
        read = pa.csv.ReadOptions(block_size=BLOCK, use_threads=False, column_names=self._names, skip_rows=self._skip)
        parse = pa.csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True)
        return _CsvReader(self, open_table(self.file, meter), self._encoding, (read, parse, convert))

    def _check_open_quote(self, rows: int) -> None:
        """Raise an error if the last row has a quote that does not end; read as Python reads it."""
        assert self.file is not None
        with closing(open_table(self.file)) as opened:
            stream = io.TextIOWrapper(opened, encoding=self._encoding or "utf-8", errors="replace", newline="")
            number = 0
            inside = False
            for line in stream:
                number += 0 if inside else 1
                begun = number
                inside = inside ^ bool(line.count('"') % 2)
                if inside:
                    start = begun
        if inside:
            raise MarioError(
                f"{self.name}, row {start:,}: a quote is opened and never closed; close it, or double it if it is a "
                "part of the text"
            )

    def explain(self, error: Exception, seen: int) -> MarioError:
        """An error of pyarrow as one of ours, which names the row and the column."""
        text = str(error).strip()
        row = re.search(r"Row #(\d+)", text)
        where = f"{self.name}, row {int(row.group(1)):,}" if row else self.name
        if fields := re.search(r"Expected (\d+) columns?, got (\d+)", text):
            due, got = fields.groups()
            hint = "" if text.count('"') % 2 == 0 else "; a quote is opened in it and not closed"
            return MarioError(
                f"{where}: it has {got} value{'s' * (got != '1')}, but the header has {due} columns{hint}; put values "
                f"that have a {_named(self._delimiter)} in quotes, or correct the row"
            )
        if found := re.search(r"In CSV column #(\d+)", text):
            column = self._names[int(found.group(1))] if int(found.group(1)) < len(self._names) else found.group(1)
            if "UTF8" in text or "utf8" in text.lower():
                return MarioError(f"{where}, column {column}: {_NOT_UTF8}")
            value = re.search(r"invalid value '(.*?)'?$", text, re.DOTALL)
            kind = re.search(r"conversion error to ([a-z0-9]+)", text)
            due = _TYPE_WORDS.get(kind.group(1) if kind else "", "what the other rows have")
            given = _short(value.group(1)) if value else "a value"
            return WrongTypeError(
                f"{where}, column {column}: {given} is not {due}, as the rows before it are; correct it, or leave it "
                "empty",
                column,
            )
        if "straddl" in text or "out of sync" in text:
            number = f"{seen + self.first:,}"
            return MarioError(
                f"{self.name}, after row {number}: a row is longer than {BLOCK:,} bytes, or a quote is opened and "
                "never closed; close it, or double it if it is a part of the text"
            )
        if "Empty CSV" in text:
            return MarioError(f"{self.name} has a header and no rows below it")
        return MarioError(f"{where}: it cannot be read ({_short(text.splitlines()[0])})")


_NOT_UTF8 = "it is not text in UTF-8; convert the file, for example with `iconv -f latin1 -t utf8`"
_TYPE_WORDS = {
    "int64": "a whole number",
    "uint64": "a whole number",
    "double": "a number",
    "bool": "true or false",
    "boolean": "true or false",
    "timestamp": "a date",
    "date32": "a date",
    "time32": "a time",
}


class _CsvReader:
    """A context with the batches of a CSV file, which turns errors into ours and closes the file."""

    def __init__(self, part: CsvPart, opened: BinaryIO, encoding: str, options: tuple[Any, Any, Any]) -> None:
        self._part, self._opened, self._encoding, self._options = part, opened, encoding, options
        self._stream = _Text(opened, encoding)

    @property
    def quotes(self) -> int:
        return self._stream.quotes

    def __enter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches()

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        seen = 0
        try:
            read, parse, convert = self._options
            reader = pa.csv.open_csv(
                pa.PythonFile(self._stream, mode="r"), read_options=read, parse_options=parse, convert_options=convert
            )
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
                seen += batch.num_rows
                yield batch
        except (pa.ArrowException, UnicodeError) as error:
            if isinstance(error, UnicodeError):
                raise MarioError(f"{self._part.name}: it is not text in {self._encoding} ({error})") from None
            raise self._part.explain(error, seen) from None


class _Text(io.RawIOBase):
    """The bytes of a text file in UTF-8, with its quotes counted."""

    def __init__(self, opened: BinaryIO, encoding: str) -> None:
        self.quotes = 0
        self._opened = opened
        self._decoder = codecs.getincrementaldecoder(encoding)() if encoding else None
        self._left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._decoder is None:
            content = self._opened.read(size)
        else:
            while len(self._left) < size:
                block = self._opened.read(size)
                self._left += self._decoder.decode(block, final=not block).encode()
                if not block:
                    break
            content, self._left = self._left[:size], self._left[size:]
        self.quotes += content.count(b'"')
        return content


class _Checked(io.RawIOBase):
    """The bytes of a file that has to be text in UTF-8."""

    def __init__(self, opened: BinaryIO, name: str) -> None:
        self._opened, self._name, self._rows = opened, name, 1
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self._opened.read(size)
        try:
            self._decoder.decode(content, final=not content)
        except UnicodeError as error:
            at = error.start if isinstance(error, UnicodeDecodeError) else 0
            raise MarioError(f"{self._name}, row {self._rows + content[:at].count(_NEW_LINE):,}: {_NOT_UTF8}") from None
        self._rows += content.count(_NEW_LINE)
        return content


class ParquetPart(Part):
    """A Parquet file."""

    def __init__(self, file: TableFile) -> None:
        self.name, self.graph, self.file = str(file), file.graph, file
        with closing(open_table(file)) as opened:
            head = _read(opened, 4)
        if head != b"PAR1":
            raise MarioError(f"{self.name} is not a Parquet file; it does not begin with PAR1")
        with self._reading(), pa.parquet.ParquetFile(file.path) as opened_file:
            self._rows = opened_file.metadata.num_rows
            if self._rows < 0 or opened_file.metadata.num_row_groups < 0:
                raise MarioError(f"{self.name} says that it has {self._rows} rows; write it again")
            self.schema = opened_file.schema_arrow.remove_metadata()
            _check_names(self.schema.names, self.name)
            if not self._rows:
                raise MarioError(f"{self.name} has no rows")
            batches = opened_file.iter_batches(batch_size=SAMPLE_ROWS, use_threads=False)
            first = next(batches, None)
            if first is None:
                raise MarioError(f"{self.name} says that it has {self._rows:,} rows and has none; write it again")
            first.validate(full=True)
            self.sample = pa.Table.from_batches([first])

    def read(self, columns: Mapping[str, pa.DataType], meter: Meter) -> Iterator[pa.RecordBatch]:
        assert self.file is not None
        _check_there(self, columns)
        size = self.file.path.stat().st_size
        meter.digests[self.file.path] = checksum(self.file.path)
        done = 0
        with self._reading(), pa.parquet.ParquetFile(self.file.path, pre_buffer=False, buffer_size=_HEAD) as opened:
            for batch in opened.iter_batches(batch_size=_BATCH, columns=list(columns), use_threads=False):
                batch.validate(full=True)
                yield _cast(self, batch.select(list(columns)), columns, done)
                done += batch.num_rows
                meter.add(size * batch.num_rows // max(self._rows, 1))
        if done != self._rows:
            raise MarioError(f"{self.name} says that it has {self._rows:,} rows and has {done:,}; write it again")

    def _reading(self) -> "_Reading":
        return _Reading(self.name, "Parquet")


class JsonLinesPart(Part):
    """A file with a JSON object per line."""

    def __init__(self, file: TableFile) -> None:
        self.name, self.graph, self.file = str(file), file.graph, file
        with closing(open_table(file)) as opened:
            head = _read(opened, _HEAD)
        _check_head(head, self.name)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise MarioError(
                f"{self.name} is in UTF-16; JSON lines are in UTF-8, so convert it with `iconv -f utf16 -t utf8`"
            )
        found = next(iter(self._batches(None, Meter())), None)
        if found is None or not found.num_rows:
            raise MarioError(f"{self.name} has no rows; write one JSON object per line")
        self.schema = found.schema
        _check_names(self.schema.names, self.name)
        self.sample = pa.Table.from_batches([found]).slice(0, SAMPLE_ROWS)

    def read(self, columns: Mapping[str, pa.DataType], meter: Meter) -> Iterator[pa.RecordBatch]:
        _check_there(self, columns)
        for batch in self._batches(pa.schema(list(columns.items())), meter):
            yield pa.RecordBatch.from_arrays(
                [batch.column(name) for name in columns], schema=pa.schema(list(columns.items()))
            )

    def _batches(self, schema: pa.Schema | None, meter: Meter) -> Iterator[pa.RecordBatch]:
        assert self.file is not None
        seen = 0
        with closing(open_table(self.file, meter)) as opened:
            try:
                reader = pa.json.open_json(
                    pa.PythonFile(_Checked(opened, self.name), mode="r"),
                    read_options=pa.json.ReadOptions(block_size=BLOCK, use_threads=False),
                    parse_options=pa.json.ParseOptions(
                        explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
                    ),
                )
                for batch in reader:
                    yield batch
                    seen += batch.num_rows
            except pa.ArrowException as error:
                raise self._explain(error, schema) from None

    def _explain(self, error: Exception, schema: pa.Schema | None) -> MarioError:
        """The first line that has a value of another type than the rows before it, or that is not JSON."""
        assert self.file is not None
        kinds: dict[str, str] = {}
        with closing(open_table(self.file)) as opened:
            for number, line in enumerate(opened, 1):
                where = f"{self.name}, row {number:,}"
                if len(line) > BLOCK:
                    return MarioError(f"{where}: the line is longer than {BLOCK:,} bytes; write one object per line")
                if not line.strip():
                    continue
                try:
                    value = parse_json(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line, where)
                except MarioError as wrong:
                    return MarioError(f"{wrong}; correct that line")
                if not isinstance(value, dict):
                    return MarioError(
                        f"{where}: it is {_json_kind(value)}; each line must be an object with the columns"
                    )
                for column, one in value.items():
                    kind = _json_kind(one)
                    if one is not None and kinds.setdefault(column, kind) != kind:
                        return WrongTypeError(
                            f"{where}, column {column}: {_short(one)} is {kind}, and the rows before it have "
                            f"{kinds[column]}; write all values in one way",
                            column,
                        )
                    due = None if schema is None or schema.get_field_index(column) < 0 else schema.field(column).type
                    if isinstance(one, float) and due is not None and pa.types.is_integer(due):
                        return WrongTypeError(
                            f"{where}, column {column}: {one!r} is not a whole number, as the rows before it are",
                            column,
                        )
        return MarioError(f"{self.name}: it cannot be read ({_short(str(error).splitlines()[0])})")


def read_json_part(file: TableFile) -> Part:
    """The table in a JSON file: a list of objects, or one object with a list for each id."""
    with closing(open_table(file)) as opened:
        content = _read(opened, TEXT_BYTES + 1)
    if len(content) > TEXT_BYTES:
        raise MarioError(f"{file} is larger than {TEXT_BYTES:,} bytes, the most that is read as JSON; use JSON lines")
    if not content.strip():
        raise MarioError(f"{file} is empty")
    value = parse_json(content.removeprefix(codecs.BOM_UTF8), str(file), "use JSON lines if it has one object per line")
    if isinstance(value, dict) and value and all(isinstance(part, list) for part in value.values()):
        bad = next(((key, one) for key, part in value.items() for one in part if isinstance(one, list | dict)), None)
        if bad is not None:
            raise MarioError(
                f"{file}, id {_short(bad[0])}: the list has {_json_kind(bad[1])}; it must hold names or numbers"
            )
        lists = [[str(one) for one in part] for part in value.values()]
        table = pa.table({"id": pa.array(list(value), pa.string()), "features": pa.array(lists, pa.list_(pa.string()))})
        return ListsPart(table, str(file), file.graph, file)
    if not isinstance(value, list) or not value:
        raise MarioError(
            f"{file} must hold a list of objects, or an object with a list for each id, got {_json_kind(value)}"
        )
    for number, row in enumerate(value, 1):
        if not isinstance(row, dict):
            raise MarioError(
                f"{file}, row {number}: it is {_json_kind(row)}; each row must be an object with the columns"
            )
    names = list(dict.fromkeys(name for row in value for name in row))
    columns = {}
    for name in names:
        try:
            columns[name] = pa.array([row.get(name) for row in value])
        except (pa.ArrowException, OverflowError):
            raise MarioError(f"{file}, column {name}: {_first_odd(value, name)}") from None
    return MemoryPart(pa.table(columns), str(file), file.graph, file)


def _first_odd(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    first = next(row[name] for row in rows if row.get(name) is not None)
    for number, row in enumerate(rows, 1):
        one = row.get(name)
        if one is not None and _json_kind(one) != _json_kind(first):
            return f"row {number} has {_json_kind(one)}, and the rows before it {_json_kind(first)}; write one kind"
    return "its values are of several types; write all in one way"


class _Reading:
    """A context in which errors of pyarrow become ours."""

    def __init__(self, name: str, what: str) -> None:
        self.name, self.what = name, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, MarioError) or error is None:
            return
        if isinstance(
            error, pa.ArrowException | OSError | ValueError | MemoryError | OverflowError | UnicodeError | KeyError
        ):
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise MarioError(
                f"{self.name} is not a sound {self.what} file ({_short(said)}); write it again or convert it to CSV"
            ) from None


def _cast(part: Part, batch: pa.RecordBatch, columns: Mapping[str, pa.DataType], done: int) -> pa.RecordBatch:
    """The columns of a batch in these types."""
    made = []
    for name, kind in columns.items():
        array = batch.column(name)
        if array.type != kind:
            try:
                array = array.cast(kind)
            except pa.ArrowException as error:
                said = _short(str(error).splitlines()[0])
                raise WrongTypeError(
                    f"{part.where(done, name)} or below: {array.type} cannot be read as {kind} ({said}); write the "
                    "column in one type in all files",
                    name,
                ) from None
        made.append(array)
    return pa.RecordBatch.from_arrays(made, names=list(columns))


def _check_there(part: Part, columns: Mapping[str, Any]) -> None:
    for name in columns:
        if name not in part.names:
            names = part.schema.names
            shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            meant = nearest(name, names)
            raise MarioError(f"{part.name} has no column {name!r}; it has {shown}{meant and f'; {meant}'}")


def _check_names(names: Sequence[str], where: str) -> None:
    if len(names) > MOST_COLUMNS:
        raise MarioError(f"{where} has {len(names):,} columns; at most {MOST_COLUMNS:,} are read: drop some")
    seen: set[str] = set()
    for number, name in enumerate(names, 1):
        if not name:
            raise MarioError(f"{where}, row 1: column {number} has no name; write one into the header")
        if any(ord(letter) < 32 or letter == "\x7f" for letter in name):
            raise MarioError(f"{where}, row 1: column {number} has the name {_short(name)}, with a control character")
        if name in seen:
            raise MarioError(f"{where}, row 1: two columns have the name {_short(name)}; rename one of them")
        seen.add(name)
    if not names:
        raise MarioError(f"{where} has no columns")


def _check_head(head: bytes, name: str) -> None:
    """Raise an error if the first bytes are not those of a text."""
    if not head.strip():
        raise MarioError(f"{name} is empty" if not head else f"{name} has only blank lines")
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            raise MarioError(f"{name} is {kind}, whatever its name says; give it its right ending, or unpack it first")
    if b"\0" in head[:4096] and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        row = head[: head.index(b"\0")].count(b"\n") + 1
        raise MarioError(
            f"{name}, row {row}: it has null characters, so it is no text in UTF-8; save it as UTF-8 (it may be UTF-16 "
            "without its mark)"
        )


_MAGIC = {
    b"PK\x03\x04": "a zip file",
    b"\x1f\x8b": "a gzip file",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"PAR1": "a Parquet file",
    b"\x80\x02": "a pickle, which is not read as it can run code",
    b"\x80\x04": "a pickle, which is not read as it can run code",
    b"\x80\x05": "a pickle, which is not read as it can run code",
    b"\x89HDF": "an HDF5 file",
    b"\xd0\xcf\x11\xe0": "an Excel file",
    b"%PDF": "a PDF",
}


def _encoding(head: bytes, name: str) -> tuple[str, bytes]:
    """The encoding unless it is UTF-8, and the first bytes in UTF-8 without the mark."""
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if head.startswith(mark):
            try:
                decoder = codecs.getincrementaldecoder("utf-16")()
                return "utf-16", decoder.decode(head).encode()
            except UnicodeError as error:
                raise MarioError(f"{name} is marked as UTF-16 and is not ({error}); save it as UTF-8") from None
    return "", head.removeprefix(codecs.BOM_UTF8)


def _leading(text: str) -> int:
    """The number of blank lines and comments at the beginning."""
    count = 0
    for line in io.StringIO(text):
        if line.strip() and not line.lstrip().startswith(("#", "%")):
            break
        count += 1
    return count


def _delimiter(rows: Sequence[str], tabs: bool) -> str:
    if tabs or "\t" in rows[0]:
        return "\t"
    counts = {mark: _outside(rows[0], mark) for mark in (",", ";", "|")}
    best = max(counts, key=lambda mark: counts[mark])
    if counts[best]:
        return best
    spaces = [_outside(row.strip(), " ") for row in rows if row.strip()]
    return " " if spaces and spaces[0] and len(set(spaces)) == 1 else ","


def _outside(row: str, mark: str) -> int:
    return re.sub(r'"[^"]*"', "", row).count(mark)


def _as_text(part: Part, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """A column of bytes as text; `MarioError` if it is not UTF-8."""
    if not pa.types.is_binary(column.type):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        for row, value in enumerate(column.to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeError:
                raise MarioError(f"{part.where(row, name)}: {_NOT_UTF8}") from None
        raise


def empty_to_null(array: pa.Array) -> pa.Array:
    """Texts without the empty ones, which are missing values of a CSV file."""
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return array
    return pc.if_else(pc.equal(pc.binary_length(array), 0), pa.scalar(None, array.type), array)


def _read(opened: BinaryIO, size: int) -> bytes:
    """Up to ``size`` bytes."""
    parts, count = [], 0
    while count < size and (part := opened.read(min(size - count, 1 << 20))):
        parts.append(part)
        count += len(part)
    return b"".join(parts)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _json_kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    kinds: dict[type, str] = {int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    return next(word for kind, word in kinds.items() if isinstance(value, kind))


def _named(delimiter: str) -> str:
    return {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}[delimiter]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
