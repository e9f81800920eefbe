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
LARGEST = 1e30
"""The largest size of a number; beyond, products in float32 overflow."""
MOST_STEPS = 1000
"""For settings that say how often a part of one training step is repeated."""
MOST_CHANNELS = 10**6
"""For settings that say how wide a layer is, or how large a batch."""
MOST_PROTOTYPES = 10**5


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
    for part in value if isinstance(value, tuple) else (value,):
        if facts.get("choices") and part not in facts["choices"]:
            raise MarioError(f"{field.name} must be {_allowed(field)}, got {shown(part)}")
    if any(abs(number) > (MOST if isinstance(number, int) else LARGEST) for number in _numbers(value)):
        raise MarioError(f"{field.name} must be at most {MOST if _kind(field) is not float else LARGEST} in size")
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
            part = _part(field)
            return tuple(part(word.strip()) for word in text.strip("[]()").split(",") if word.strip())
        return kind(text)
    except (KeyError, ValueError):
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        raise MarioError(f"{field.name}={shown}: that is not {_KINDS[kind]}") from None


def _numbers(value: Any) -> list[int | float]:
    parts = value if isinstance(value, tuple) else (value,)
    return [part for part in parts if isinstance(part, int | float)]


def _is_module_or_none(field: "dataclasses.Field[Any]", value: Any) -> bool:
    kinds = get_args(field.type) if isinstance(field.type, UnionType) else ()
    return (nn.Module in kinds and isinstance(value, nn.Module)) or (NoneType in kinds and value is None)


def _as_declared(field: "dataclasses.Field[Any]", value: Any) -> Any:
    kind = _kind(field)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) <= LARGEST else value
    if kind is tuple and isinstance(value, list):
        value = tuple(value)
    wrong = MarioError(f"{field.name} must be {_allowed(field)}, got {shown(value)}")
    if kind is not Any and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise wrong
    if kind is float and not math.isfinite(value):
        raise MarioError(f"{field.name} must be a finite number, got {value}")
    if kind is tuple and not all(isinstance(part, _part(field)) and not isinstance(part, bool) for part in value):
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


def _part(field: "dataclasses.Field[Any]") -> Any:
    """The type of the entries of a tuple."""
    return get_args(field.type)[0]


def _allowed(field: "dataclasses.Field[Any]") -> str:
    choices, kinds = field.metadata.get("choices"), get_args(field.type) if isinstance(field.type, UnionType) else ()
    several = "some of" if _kind(field) is tuple else "one of"
    among = f"{several} {', '.join(choices)}" if choices else _KINDS[_kind(field)]
    return among + (" or a torch.nn.Module" if nn.Module in kinds else "") + (" or None" if NoneType in kinds else "")


def shown(value: Any) -> str:
    """``value`` in an error."""
    if isinstance(value, type):
        return f"the class {value.__name__}; pass an instance"
    try:
        text = repr(value)
    except ValueError:  # Python writes no integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 120 else f"{text[:117]}..."
