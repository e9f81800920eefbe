"""JSON objects into dataclasses, with errors that name the file and the key."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from mario.errors import MarioError

T = TypeVar("T")
_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", Mapping: "an object"}


def from_json(cls: type[T], written: Any, where: str, **known: Any) -> T:
    """An instance of the dataclass ``cls`` from a JSON object. Other keys of the object are ignored.

    Args:
        cls: a dataclass. A key may be missing if the field can be ``None``.
        written: the object.
        where: the file, for errors.
        known: fields that are not read from the object.

    Example:
        >>> from mario.datasets.card import RawFile
        >>> from_json(RawFile, {"path": 3}, "result.json")
        Traceback (most recent call last):
            ...
        mario.errors.MarioError: result.json: 'path' must be a text, got 3
    """
    if not isinstance(written, dict):
        raise MarioError(f"{where} must be an object, got {_short(written)}")
    found = dict(known)
    for name, kind, optional in _fields(cls):  # type: ignore[arg-type]
        if name in written and name not in known:
            found[name] = _value(kind, written[name], f"{where}: '{name}'")
        elif name not in known and not optional:
            raise MarioError(f"{where} has no '{name}'")
    return cls(**found)


def without_nulls(written: Any) -> Any:
    """An object without its keys that are null; anything else as it is."""
    return {key: value for key, value in written.items() if value is not None} if isinstance(written, dict) else written


@cache
def _fields(cls: Any) -> list[tuple[str, Any, bool]]:
    """Name and type of each field, and whether it can be ``None``."""
    hints = {field.name: get_type_hints(cls)[field.name] for field in dataclasses.fields(cls)}
    unions = {name: isinstance(hint, UnionType) for name, hint in hints.items()}
    return [(name, get_args(hint)[0] if unions[name] else hint, unions[name]) for name, hint in hints.items()]


def _value(kind: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(kind):
        made = getattr(kind, "from_dict", None)
        return made(value, where) if made else from_json(kind, value, where)  # type: ignore[arg-type]
    if kind is Any:
        return value
    origin, items = get_origin(kind), get_args(kind)
    if origin is Mapping and isinstance(value, dict):
        return {key: _value(items[1], item, f"{where}: '{key}'") for key, item in value.items()}
    if origin in (Sequence, tuple):
        if not isinstance(value, list):
            raise MarioError(f"{where} must be a list, got {_short(value)}")
        return tuple(_value(items[0], item, where) for item in value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is float and number:
        return float(value)
    if origin is None and isinstance(value, kind) and (number or kind is not int):
        return value
    raise MarioError(f"{where} must be {_NAMES[origin or kind]}, got {_short(value)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
