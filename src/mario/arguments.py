"""Numbers that a caller passes: each is what its argument takes, or a `MarioError` that says what that is."""

import math
from typing import Any

from mario.errors import MarioError

MOST = 2**63 - 1
"""The largest whole number that torch, JSON and TOML can hold."""

MOST_DRAWN = 10**9
"""More nodes, walks or steps than one batch can hold."""


def check_count(name: str, value: Any, low: int = 1, high: int = MOST) -> int:
    """``value``; `MarioError` unless it is an integer from ``low`` to ``high``.

    Example:
        >>> check_count("roots", 0)
        Traceback (most recent call last):
            ...
        mario.errors.MarioError: roots must be an integer of at least 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise MarioError(f"{name} must be an integer of at least {low}, got {_shown(value)}")
    if value > high:
        raise MarioError(f"{name} must be an integer of at most {high}, got {_shown(value)}")
    return value


def check_number(name: str, value: Any, low: float = -math.inf) -> float:
    """``value``; `MarioError` unless it is a finite number of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < low:
        least = "" if low == -math.inf else f" of at least {low:g}"
        raise MarioError(f"{name} must be a finite number{least}, got {_shown(value)}")
    return value


def check_positive(name: str, value: Any) -> float:
    """``value``; `MarioError` unless it is a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _limit(value):
        raise MarioError(f"{name} must be a finite number above 0, got {_shown(value)}")
    return value


def check_probability(name: str, value: Any) -> float:
    """``value`` as a float; `MarioError` unless it is a probability."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise MarioError(f"{name} must be a probability in [0, 1], got {_shown(value)}")
    return float(value)


def check_seed(name: str, value: Any, below: int = 2**32) -> int:
    """``value``; `MarioError` unless it is a whole number that seeds a generator."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below:
        raise MarioError(f"{name} must be a whole number from 0 to {below - 1}, got {_shown(value)}")
    return value


def _limit(value: float) -> float:
    return math.inf if isinstance(value, float) else MOST


def _shown(value: object) -> str:
    text = repr(value) if not isinstance(value, int) or abs(value) <= MOST else "a larger one"
    return text if len(text) <= 120 else f"{text[:117]}..."
