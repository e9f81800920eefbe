"""What all encoders of a column share."""

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from mario.graphs.tables.values import Read

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_EXAMPLES = 5
_EXAMPLE_LENGTH = 60


@dataclass
class ColumnReport:
    """What was met in a column.

    Attributes:
        rows: read.
        missing: rows without a value.
        unparsable: rows with a value that could not be read as what the column is; they count as missing.
        infinite: rows with an infinite number; it became the largest value.
        unseen: rows with a category, or items of lists, that the training rows do not have.
        examples: a few texts that are unparsable or unseen.
    """

    rows: int = 0
    missing: int = 0
    unparsable: int = 0
    infinite: int = 0
    unseen: int = 0
    examples: list[str] = field(default_factory=list)

    def show(self, found: Sequence[Any]) -> None:
        """Keep a few values as examples."""
        for value in found:
            if len(self.examples) >= _EXAMPLES:
                return
            text = str(value)
            text = text if len(text) <= _EXAMPLE_LENGTH else f"{text[: _EXAMPLE_LENGTH - 3]}..."
            if text not in self.examples:
                self.examples.append(text)


class Encoder(ABC):
    """The fitted form of a column. `encode` treats each row by itself, so batches and their order do not matter."""

    form: ClassVar[str]
    """Its name in the file of a plan."""
    sparse = False
    """Whether `encode` returns a sparse block."""

    @abstractmethod
    def names(self, column: str) -> list[str]:
        """The names of the features, one per column of the block."""

    @abstractmethod
    def encode(self, array: "pa.Array", name: str, report: ColumnReport) -> "NDArray[np.float32] | sp.csr_matrix":
        """The features of some rows; what was odd is added to ``report``."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """All of its state."""

    @classmethod
    @abstractmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        """The encoder of `as_json`; ``KeyError``, ``TypeError`` or ``ValueError`` if it is damaged."""


class Learner(ABC):
    """Sees the training rows of a column once, in batches, in bounded memory."""

    @abstractmethod
    def see(self, array: "pa.Array", name: str) -> "pa.Array":
        """Count some rows, and return them in the form in which the sample keeps them."""

    @abstractmethod
    def finish(self, sample: "pa.Array", name: str) -> "Encoder | str":
        """The encoder, or why the column has no features, given what the sample kept."""


def pack(array: "NDArray[Any]") -> dict[str, Any]:
    """An array as JSON, bit for bit."""
    array = np.ascontiguousarray(array)
    small = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return {
        "type": array.dtype.name,
        "shape": list(array.shape),
        "base64": base64.b64encode(small.tobytes()).decode("ascii"),
    }


def unpack(written: Any, kind: str, dimensions: int) -> "NDArray[Any]":
    """The array of `pack`; ``ValueError`` if it is another one than is expected."""
    if not isinstance(written, dict) or written.get("type") != kind:
        raise ValueError(f"an array of {kind} is missing")
    shape, text = written.get("shape"), written.get("base64")
    if not isinstance(shape, list) or not all(isinstance(one, int) and one >= 0 for one in shape):
        raise ValueError("an array has no shape")
    if len(shape) != dimensions or not isinstance(text, str):
        raise ValueError("an array has another shape")
    try:
        content = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"an array is damaged ({error})") from None
    array = np.frombuffer(content, np.dtype(kind).newbyteorder("<")).astype(kind)
    found = array.reshape(shape)
    if array.dtype.kind == "f" and not np.isfinite(found).all():
        raise ValueError("an array has numbers that are not finite")
    return found


def number(written: Mapping[str, Any], key: str) -> float:
    """A finite number in JSON."""
    value = written[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError(f"{key} is no number")
    return float(value)


def flag(written: Mapping[str, Any], key: str) -> bool:
    """True or false in JSON."""
    if not isinstance(written[key], bool):
        raise ValueError(f"{key} is neither true nor false")
    return bool(written[key])


def words(written: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of different texts in JSON."""
    value = written[key]
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{key} is no list of texts")
    if len(set(value)) != len(value):
        raise ValueError(f"{key} has a text twice")
    return tuple(value)


def count(read: Read, array: "pa.Array", report: ColumnReport) -> None:
    """Add rows, missing and unparsable ones to a report."""
    report.rows += len(read.missing)
    report.missing += int(read.missing.sum())
    broken = np.flatnonzero(read.unparsable)
    report.unparsable += len(broken)
    report.show([_shown(array[int(row)]) for row in broken[:_EXAMPLES]])


def _shown(value: "pa.Scalar") -> str:
    try:
        return str(value.as_py())
    except (OverflowError, ValueError):  # a date beyond the calendar of Python, or text that is not UTF-8
        return f"a {value.type} that cannot be shown"
