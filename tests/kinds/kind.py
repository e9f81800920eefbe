"""A kind of broken input, and the ways in which it can end."""

import math
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.cli import main
from mario.errors import MarioError

CLEAR, HANDLED = "clear error", "handled"
RAW, SILENT, NEEDLESS, CRASH, HANG = "raw error", "silently wrong", "needless error", "crash", "hang"
OUTCOMES = (CLEAR, HANDLED, RAW, SILENT, NEEDLESS, CRASH, HANG)

LONGEST = 4000
"""Characters of a message that can still be read: a list of files is the longest."""


@dataclass(frozen=True)
class Kind:
    """One broken input.

    Attributes:
        name: what is broken, and where it is given.
        given: gives it, in an empty folder.
        right: what has to come of it: nothing, as it has to be refused; or whether a result is the right one.
        or_refused: whether a clear error is right too.
    """

    name: str
    given: Callable[[], object]
    right: Callable[[Any], bool] | None = None
    or_refused: bool = False


def refused(name: str, given: Callable[[], object]) -> Kind:
    """A kind that has to be a clear error."""
    return Kind(name, given)


def same(name: str, given: Callable[[], object], reference: Callable[[], object], tolerance: float = 0.0) -> Kind:
    """A kind that has to give what ``reference`` does, from sound input or by a slow way."""
    return Kind(name, given, lambda result: equal(result, reference(), tolerance))


def finite_or_refused(name: str, given: Callable[[], object]) -> Kind:
    """A kind at the end of the range of numbers: all numbers of the result are finite, or there is none."""
    return Kind(name, given, is_finite, or_refused=True)


def not_finite_or_refused(name: str, given: Callable[[], object]) -> Kind:
    """A loss of what is not finite: it is not finite either, which training notices. A number would be made up."""
    return Kind(name, given, lambda result: not is_finite(result), or_refused=True)


class ClearExitError(Exception):
    """The command line ended with exit code 1 or 2 and one message."""


def outcome(kind: Kind) -> tuple[str, str]:
    """How ``kind`` ends in this process, unless it crashes or hangs, and what was said."""
    with _apart() as outside, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = kind.given()
        except (MarioError, ClearExitError) as error:
            said = str(error)
            if left := outside():
                return SILENT, f"wrote {left} outside of its folder, then: {said}"
            if not said.strip() or len(said) > LONGEST or "Traceback" in said:
                return RAW, f"a message of {len(said)} characters: {said[:200]}"
            return (CLEAR if kind.right is None or kind.or_refused else NEEDLESS), said
        except BaseException as error:
            return RAW, f"{type(error).__name__}: {error}"
        if left := outside():
            return SILENT, f"wrote {left} outside of its folder"
        if kind.right is None:
            return SILENT, f"accepted: {_short(result)}"
        try:
            return (HANDLED, "") if kind.right(result) else (SILENT, f"not right: {_short(result)}")
        except Exception as error:
            return SILENT, f"not right: {_short(result)} ({type(error).__name__}: {error})"


@contextmanager
def _apart() -> Iterator[Callable[[], str]]:
    """Work in an empty folder; the function names what was written beside it."""
    before = os.getcwd()
    home = Path(tempfile.mkdtemp(prefix="kind-"))
    (home / "work").mkdir()
    os.chdir(home / "work")
    try:
        yield lambda: ", ".join(sorted(path.name for path in home.iterdir() if path.name != "work"))
    finally:
        os.chdir(before)
        for path in (home, *home.rglob("*")):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        shutil.rmtree(home, ignore_errors=True)


def command(*words: str) -> str:
    """What ``mario WORDS`` prints."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        code = _ended(words, out.fileno(), err.fileno())
        said, complaint = (file.seek(0) or file.read() for file in (out, err))
    if code == 0:
        return said
    lines = [line for line in complaint.splitlines() if line.startswith("mario: error:") or "Error" in line]
    if code in (1, 2) and lines and "Traceback" not in complaint and "bug of mario" not in complaint:
        raise ClearExitError(lines[-1])
    raise RuntimeError(f"exit code {code}: {complaint[-300:]}")


def _ended(words: Sequence[str], out: int, err: int) -> int:
    kept = os.dup(1), os.dup(2)
    streams = sys.stdout, sys.stderr
    words_before = sys.argv
    sys.stdout.flush(), sys.stderr.flush()
    os.dup2(out, 1), os.dup2(err, 2)
    sys.argv = ["mario", *words]
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
    try:
        main()
        return 0
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        sys.stdout, sys.stderr = streams
        sys.argv = words_before
        for number, before in zip((1, 2), kept, strict=True):
            os.dup2(before, number)
            os.close(before)


def equal(one: Any, other: Any, tolerance: float = 0.0) -> bool:
    """Whether two results are the same: to the bit, or within ``tolerance``; NaN equals NaN."""
    if isinstance(one, Data):
        return isinstance(other, Data) and equal(one.to_dict(), other.to_dict(), tolerance)
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        one, other = (part.to_dense() if part.layout != torch.strided else part for part in (one, other))
        if one.shape != other.shape:
            return False
        return bool(torch.isclose(one.double(), other.double(), rtol=tolerance, atol=tolerance, equal_nan=True).all())
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(equal(one[key], other[key], tolerance) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(equal(a, b, tolerance) for a, b in zip(one, other, strict=True))
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or abs(one - other) <= tolerance * max(1.0, abs(one))
    return bool(one == other)


def is_finite(result: Any) -> bool:
    """Whether all numbers of ``result`` are finite."""
    if isinstance(result, Tensor):
        return bool(result.isfinite().all())
    if isinstance(result, np.ndarray):
        return bool(np.isfinite(result).all())
    if isinstance(result, Mapping):
        return all(map(is_finite, result.values()))
    if isinstance(result, list | tuple):
        return all(map(is_finite, result))
    return not isinstance(result, float) or math.isfinite(result)


def _short(result: object) -> str:
    return repr(result).replace("\n", " ")[:200]
