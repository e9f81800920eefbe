"""Hyper-parameters as fields of a method: default, allowed values and search range on one line."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin

from mario.errors import MarioError


def setting(
    default: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] | None = None,
    search: Sequence[Any] | None = None,
    help: str = "",
) -> Any:
    """A dataclass field that also knows its bounds (both inclusive), its choices and the range to search."""
    facts = {"low": low, "high": high, "choices": choices, "search": search, "help": help}
    return dataclasses.field(default=default, metadata=facts)


def check_settings(owner: Any) -> None:
    """Raise a :class:`MarioError` that names the first field of ``owner`` whose value is not allowed."""
    for field in dataclasses.fields(owner):
        setattr(owner, field.name, check_value(field, getattr(owner, field.name)))


def check_value(field: "dataclasses.Field[Any]", value: Any) -> Any:
    """``value`` in the type of ``field``, or a :class:`MarioError` that says what the field allows."""
    value = _as_declared(field, value)
    facts = field.metadata
    if facts.get("choices") and value not in facts["choices"]:
        raise MarioError(f"{field.name} must be one of {', '.join(facts['choices'])}, got '{value}'")
    if facts.get("low") is not None and value < facts["low"]:
        raise MarioError(f"{field.name} must be at least {facts['low']}, got {value}")
    if facts.get("high") is not None and value > facts["high"]:
        raise MarioError(f"{field.name} must be at most {facts['high']}, got {value}")
    return value


def parse_setting(field: "dataclasses.Field[Any]", text: str) -> Any:
    """The value that ``text``, from a command line, means for ``field``."""
    kind = _kind(field)
    try:
        if kind is bool:
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
        if kind is tuple:
            return tuple(int(part) for part in text.strip("[]()").split(",") if part.strip())
        return kind(text)
    except (KeyError, ValueError):
        raise MarioError(f"{field.name}={text}: that is not {_article(kind)}") from None


def _as_declared(field: "dataclasses.Field[Any]", value: Any) -> Any:
    kind = _kind(field)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is tuple and isinstance(value, list):
        value = tuple(value)
    if kind is not Any and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise MarioError(f"{field.name} must be {_article(kind)}, got {value!r}")
    if kind is float and not math.isfinite(value):
        raise MarioError(f"{field.name} must be a finite number, got {value}")
    if kind is tuple and not all(isinstance(part, int) and not isinstance(part, bool) for part in value):
        raise MarioError(f"{field.name} must be {_article(kind)}, got {value!r}")
    return value


def _kind(field: "dataclasses.Field[Any]") -> Any:
    declared = field.type
    if get_origin(declared) is tuple:
        return tuple
    if get_origin(declared) is Literal:
        return type(get_args(declared)[0])
    return declared


def _article(kind: Any) -> str:
    return {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a word",
        tuple: "a list of whole numbers such as 150,300",
    }[kind]
