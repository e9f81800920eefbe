"""Hyper-parameters as fields of a method: default, allowed values and search range on one line."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from torch import nn

from mario.arguments import MOST
from mario.errors import MarioError

_KINDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    tuple: "a list of whole numbers such as 150,300",
}


def setting(
    default: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] | None = None,
    search: Sequence[Any] | None = None,
    check: Callable[[str, Any], Any] | None = None,
    help: str = "",
) -> Any:
    """A dataclass field that also knows its bounds (both inclusive), its choices and the range to search.

    A field declared as ``str | nn.Module`` takes a name or any module; with ``| None`` also ``None``.

    Args:
        default: The value if none is given.
        low: Smallest value.
        high: Largest value.
        choices: The names allowed.
        search: The values that ``mario tune`` tries.
        check: For values of other types: a function of the field's name and the value, which returns the value to
            keep or raises a :class:`MarioError`. It replaces all other checks.
        help: One line that says what the setting is.

    Example:
        >>> import mario
        >>> @dataclasses.dataclass(eq=False, repr=False, kw_only=True)
        ... class Weighted(mario.GRACE):
        ...     weight: float = setting(1.0, low=0.0, search=(0.5, 1.0), help="weight of a term")
        >>> Weighted(weight=-1)
        Traceback (most recent call last):
        mario.errors.MarioError: weight must be at least 0.0, got -1.0
    """
    facts = {"low": low, "high": high, "choices": choices, "search": search, "check": check, "help": help}
    return dataclasses.field(default=default, metadata=facts)


def check_settings(owner: Any) -> None:
    """Raise a :class:`MarioError` that names the first field of ``owner`` whose value is not allowed."""
    for field in dataclasses.fields(owner):
        setattr(owner, field.name, check_value(field, getattr(owner, field.name)))


def check_value(field: "dataclasses.Field[Any]", value: Any) -> Any:
    """``value`` in the type of ``field``, or a :class:`MarioError` that says what the field allows."""
    facts = field.metadata
    if facts.get("check"):
        return facts["check"](field.name, value)
    if _is_module_or_none(field, value):
        return value
    value = _as_declared(field, value)
    if facts.get("choices") and value not in facts["choices"]:
        raise MarioError(f"{field.name} must be {_allowed(field)}, got '{value}'")
    if facts.get("low") is not None and value < facts["low"]:
        raise MarioError(f"{field.name} must be at least {facts['low']}, got {value}")
    if facts.get("high") is not None and value > facts["high"]:
        raise MarioError(f"{field.name} must be at most {facts['high']}, got {value}")
    return value


def parse_setting(field: "dataclasses.Field[Any]", text: str) -> Any:
    """The value that ``text``, from a command line, means for ``field``."""
    kind = _kind(field)
    if kind not in _KINDS:
        raise MarioError(f"{field.name}={text}: {field.name} can only be set in Python")
    try:
        if kind is bool:
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
        if kind is tuple:
            return tuple(int(part) for part in text.strip("[]()").split(",") if part.strip())
        return kind(text)
    except (KeyError, ValueError):
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        raise MarioError(f"{field.name}={shown}: that is not {_KINDS[kind]}") from None


def _is_module_or_none(field: "dataclasses.Field[Any]", value: Any) -> bool:
    kinds = get_args(field.type) if isinstance(field.type, UnionType) else ()
    return (nn.Module in kinds and isinstance(value, nn.Module)) or (NoneType in kinds and value is None)


def _as_declared(field: "dataclasses.Field[Any]", value: Any) -> Any:
    kind = _kind(field)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is tuple and isinstance(value, list):
        value = tuple(value)
    wrong = MarioError(f"{field.name} must be {_allowed(field)}, got {_shown(value)}")
    if kind is not Any and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise wrong
    if kind is float and not math.isfinite(value):
        raise MarioError(f"{field.name} must be a finite number, got {value}")
    if kind is int and value > MOST:
        raise MarioError(f"{field.name} must be at most {MOST:,}, got a larger number")
    if kind is tuple and not all(isinstance(part, int) and not isinstance(part, bool) for part in value):
        raise wrong
    return value


def _kind(field: "dataclasses.Field[Any]") -> Any:
    """The plain type of a setting: of a union, the first."""
    declared = field.type
    if isinstance(declared, UnionType):
        declared = get_args(declared)[0]
    if get_origin(declared) is tuple:
        return tuple if field.metadata.get("check") is None else Any
    if get_origin(declared) is Literal:
        return type(get_args(declared)[0])
    return declared


def _allowed(field: "dataclasses.Field[Any]") -> str:
    choices, kinds = field.metadata.get("choices"), get_args(field.type) if isinstance(field.type, UnionType) else ()
    among = f"one of {', '.join(choices)}" if choices else _KINDS[_kind(field)]
    return among + (" or a torch.nn.Module" if nn.Module in kinds else "") + (" or None" if NoneType in kinds else "")


def _shown(value: Any) -> str:
    return f"the class {value.__name__}; pass an instance" if isinstance(value, type) else repr(value)
