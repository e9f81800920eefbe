"""What others wrote: files that are read with limits, and names that become paths.

A model, a graph, a plan or a run folder may come from anybody. Everything here raises `MarioError` and nothing else,
whatever the bytes are, reads only regular files, and runs no code from them.
"""

import hashlib
import json
import math
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mario.errors import MarioError

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

TEXT_BYTES = 64 * 2**20
"""The largest JSON or text file, and the longest line of a file of JSON lines."""
TOML_BYTES = 2**20
DEPTH = 50
"""How deep lists and objects may be nested."""
ITEMS = 5_000_000
"""How many values a JSON or TOML file may hold."""
NAME_BYTES = 150
"""The longest name of a file or folder; file systems allow 255, and we add endings."""

CHECKSUM = "mario-checksum"
"""Where the header of a safetensors file that mario wrote holds the checksum of its content."""

_SHOWN = 500  # characters of a path in a message
_NPY_DIMENSIONS = 32
_KEY_PARTS = 64  # tomllib takes quadratic time for a.b.c.d...
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f/\\<>:"|?*]')


def safe_name(name: object, what: str) -> str:
    """``name`` if it can be the name of a file in a folder, on any system; `MarioError` otherwise.

    Example:
        >>> safe_name("table-concept", "the name of a study")
        'table-concept'
        >>> safe_name("../x", "the name of a study")
        Traceback (most recent call last):
            ...
        mario.errors.MarioError: the name of a study becomes the name of a file and cannot be '../x': it has '/'
    """
    if not isinstance(name, str):
        raise MarioError(f"{what} must be a text, got {_short(name)}")
    odd = _NOT_IN_NAMES.search(name)
    reason = ""
    if not name.strip():
        reason = "it is empty"
    elif odd:
        reason = f"it has {odd.group()!r}"
    elif name.startswith((".", " ")) or name.endswith((".", " ")):
        reason = "it begins or ends with a dot or a space"
    elif _RESERVED.fullmatch(name):
        reason = "Windows reserves it"
    elif not _is_unicode(name):
        reason = "it is not valid Unicode"
    elif len(name.encode()) > NAME_BYTES:
        reason = f"it is longer than {NAME_BYTES} bytes"
    if reason:
        raise MarioError(f"{what} becomes the name of a file and cannot be {_short(name)}: {reason}")
    return name


def file_name(text: str) -> str:
    """``text``, such as the title of a table, as the name of a file. Other characters become hyphens.

    Example:
        >>> file_name("Table 2: all/methods")
        'Table-2-all-methods'
    """
    made = re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")[:NAME_BYTES].strip("-.") or "report"
    return f"file-{made}" if _RESERVED.fullmatch(made) else made


def open_file(path: Path | str) -> BinaryIO:
    """Open a regular file for reading. A pipe or a device in its place is an error and does not block."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise MarioError(f"there is no file {path}") from None
    except OSError as error:
        raise MarioError(f"cannot read {str(path)[:_SHOWN]}: {error.strerror}") from error
    except ValueError as error:  # a null character
        raise MarioError(f"cannot read {str(path)!r}: {error}") from None
    mode = os.fstat(number).st_mode
    if not stat.S_ISREG(mode):
        os.close(number)
        reason = "Is a directory" if stat.S_ISDIR(mode) else "it is not a regular file"
        raise MarioError(f"cannot read {path}: {reason}")
    return open(number, "rb")


def read_bytes(path: Path | str, limit: int = TEXT_BYTES) -> bytes:
    """The content of a file of at most ``limit`` bytes."""
    with open_file(path) as file:
        try:
            content = file.read(limit + 1)
        except OSError as error:
            raise MarioError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > limit:
        raise MarioError(f"{path} is larger than {limit:,} bytes, the most that is read")
    return content


def read_text(path: Path | str, limit: int = TEXT_BYTES) -> str:
    """The text of a file in UTF-8."""
    return _decoded(read_bytes(path, limit), str(path))


def read_json(path: Path | str, advice: str = "") -> Any:
    """The value in a JSON file; ``advice`` says what to do if it is damaged: see :func:`parse_json`."""
    return parse_json(read_bytes(path), str(path), advice)


def read_json_lines(path: Path | str) -> Iterator[tuple[str, Any]]:
    """The value of each line of a file, and where it is, such as ``line 3 of runs.jsonl``."""
    with open_file(path) as file:
        number = 0
        while True:
            try:
                line = file.readline(TEXT_BYTES + 1)
            except OSError as error:
                raise MarioError(f"cannot read {path}: {error.strerror}") from error
            if not line:
                return
            number += 1
            where = f"line {number} of {path}"
            if len(line) > TEXT_BYTES:
                raise MarioError(f"{where} is longer than {TEXT_BYTES:,} bytes, the most that is read")
            yield where, parse_json(line, where, "remove that line")


def read_toml(path: Path | str) -> dict[str, Any]:
    """The tables of a TOML file: see :func:`parse_toml`."""
    return parse_toml(read_text(path, TOML_BYTES), str(path))


def parse_json(text: str | bytes, where: str, advice: str = "", *, finite: bool = True) -> Any:
    """The value of a JSON text; ``where`` names it in errors, ``advice`` says what to do.

    Integers beyond 64 bits, keys that occur twice, and what is nested deeper than ``DEPTH`` are errors; so are NaN and
    infinity if it has to be ``finite``.

    Example:
        >>> parse_json('{"a": [1, 2.5, null]}', "the file")
        {'a': [1, 2.5, None]}
        >>> parse_json('{"a": NaN}', "the file")
        Traceback (most recent call last):
            ...
        mario.errors.MarioError: the file is not valid JSON (it has the number nan)
    """
    then = advice and f"; {advice}"
    try:
        value = json.loads(_decoded(text, where) if isinstance(text, bytes) else text, object_pairs_hook=_once)
        _check(value, finite)
    except RecursionError:
        raise MarioError(f"{where} is not valid JSON (it is nested deeper than {DEPTH}){then}") from None
    except ValueError as error:  # of json, of integers with thousands of digits, and of the checks
        raise MarioError(f"{where} is not valid JSON ({_line(error)}){then}") from None
    return value


def parse_toml(text: str, where: str, *, dates: bool = False) -> dict[str, Any]:
    """The tables of a TOML text, with the limits of :func:`parse_json`. Dates and times are errors unless wanted."""
    try:
        if max(part.count(".") for part in re.split(r"[=,\n]", text)) > _KEY_PARTS:
            raise ValueError(f"a key has more than {_KEY_PARTS} parts")
        tables = tomllib.loads(text)
        _check(tables, finite=True, dates=dates)
    except RecursionError:
        raise MarioError(f"{where} is not valid TOML: it is nested deeper than {DEPTH}") from None
    except ValueError as error:
        raise MarioError(f"{where} is not valid TOML: {_line(error)}") from None
    return tables


def npy_header(path: Path) -> "tuple[np.dtype[Any], tuple[int, ...], int]":
    """The type and the shape of the array in an ``.npy`` file of plain numbers, and the offset of its first byte.

    The array is in row-major order, and the file holds all of it.
    """
    import numpy as np

    with open_file(path) as file:
        try:
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"it has version {version} of the format")
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, column_major, dtype = read(file)
            offset, size = file.tell(), os.fstat(file.fileno()).st_size
        except Exception as error:  # numpy evaluates the header as a literal, which can fail in many ways
            raise MarioError(f"{path.name} is not an .npy file of plain numbers ({_line(error)})") from None
    if dtype.kind not in "biuf" or not dtype.isnative:
        raise MarioError(f"{path.name} holds {dtype}; it must hold plain numbers of this machine's byte order")
    if column_major and len(shape) > 1:
        raise MarioError(f"{path.name} is in column-major order; write it in row-major order")
    if len(shape) > _NPY_DIMENSIONS or any(length < 0 for length in shape):
        raise MarioError(f"{path.name} has the shape {_short(shape)}")
    if math.prod(shape) * dtype.itemsize + offset > size:
        raise MarioError(f"{path.name} is cut short: {_short(shape)} of {dtype} do not fit in its {size:,} bytes")
    return dtype, tuple(int(length) for length in shape), offset


def read_safetensors(path: Path | str, key: str) -> tuple[Any, "dict[str, Tensor]"]:
    """The JSON under ``key`` in the header of a safetensors file, which may hold infinity, and its tensors by name."""
    with _safetensors(path, "pt") as opened:
        about, found = _header(opened, key), {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        metadata = opened.metadata()
        if unknown := sorted(metadata.keys() - {key, CHECKSUM, "format"}):
            raise MarioError(f"its header has {_short(unknown[0])}, which mario does not write")
        if CHECKSUM in metadata and metadata.pop(CHECKSUM) != tensor_checksum(metadata, found):
            raise MarioError("its checksum is not that of its content")
        return about, found


def tensor_checksum(header: Mapping[str, str], tensors: "Mapping[str, Tensor]") -> str:
    """A checksum of tensors, their names, types and shapes, and of the texts of a header."""
    import torch

    found = hashlib.blake2b(json.dumps(sorted(header.items())).encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def safetensors_header(path: Path | str, key: str) -> Any:
    """The JSON alone that :func:`read_safetensors` returns. This does not import torch."""
    with _safetensors(path, "np") as opened:
        return _header(opened, key)


@contextmanager
def _safetensors(path: Path | str, framework: str) -> Iterator[Any]:
    from safetensors import safe_open

    open_file(path).close()  # safetensors would wait for a pipe
    try:
        with safe_open(os.fspath(path), framework=framework) as opened:
            yield opened
    except MemoryError:
        raise MarioError(f"the tensors of {path} do not fit in memory") from None
    except Exception as error:  # safetensors and torch have errors of their own
        raise MarioError(f"{path} is damaged or of another kind ({_line(error)})") from None


def _header(opened: Any, key: str) -> Any:
    about = (opened.metadata() or {}).get(key)
    if about is None:
        raise MarioError(f"its header has no '{key}'")
    return parse_json(about, f"'{key}' in its header", finite=False)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {_short(twice)} occurs twice")
    return made


def _check(value: Any, finite: bool, dates: bool = False) -> None:
    """Raise ValueError for what later steps cannot handle. Not recursive: the value may be nested without end."""
    level, depth, count = [value], 0, 0
    while level:
        if depth > DEPTH:
            raise ValueError(f"it is nested deeper than {DEPTH}")
        count += len(level)
        if count > ITEMS:
            raise ValueError(f"it has more than {ITEMS:,} values")
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                for key in item:
                    _check_text(key)
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
            elif isinstance(item, str):
                _check_text(item)
            elif isinstance(item, float):
                if finite and not math.isfinite(item):
                    raise ValueError(f"it has the number {item}")
            elif isinstance(item, int):
                if not -(2**63) <= item < 2**63:
                    raise ValueError("it has a whole number of more than 64 bits")
            elif item is not None and not dates:
                raise ValueError(f"it has the date or time {item}")
        level, depth = inner, depth + 1


def _check_text(text: str) -> None:
    if not text.isascii() and not _is_unicode(text):
        raise ValueError("it has a text that is not valid Unicode")


def _is_unicode(text: str) -> bool:
    """Whether ``text`` can be written: half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MarioError(f"{where} is not text in UTF-8 ({error})") from None


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return _cut(lines[0].strip()) if lines else type(error).__name__


def _short(value: object) -> str:
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:117]}..."
