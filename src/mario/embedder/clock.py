"""Wall-clock budgets: how long a command may take, and how much of that is spent."""

import re
import time

from mario.errors import MarioError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_budget(text: str) -> float:
    """Seconds from a text such as ``90s``, ``5m``, ``1h30m`` or ``300``.

    Example:
        >>> parse_budget("5m"), parse_budget("1h30m"), parse_budget("45")
        (300.0, 5400.0, 45.0)
        >>> parse_budget("soon")
        Traceback (most recent call last):
            ...
        mario.errors.MarioError: a budget is a time such as 90s, 5m or 1h30m, got 'soon'
    """
    given = str(text).strip().lower()
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)([smhd])", given)
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", given):
        seconds = float(given)
    elif parts and "".join(number + unit for number, unit in parts) == given and len(given) < 40:
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    else:
        raise MarioError(f"a budget is a time such as 90s, 5m or 1h30m, got {str(text)[:40]!r}")
    if not 1 <= seconds <= 365 * _UNITS["d"]:
        raise MarioError(f"a budget must be from 1s to 365d, got {str(text)[:40]!r}")
    return seconds


class Clock:
    """How much of a budget is left.

    Args:
        budget: Seconds for everything since the clock began; ``None`` for no limit.
        spent: Seconds that count as spent already, such as those before a resume.
    """

    def __init__(self, budget: float | None = None, spent: float = 0.0) -> None:
        self.budget = budget
        self._began = time.monotonic() - spent

    def spent(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def left(self) -> float:
        """Seconds left; infinite without a budget."""
        return float("inf") if self.budget is None else self.budget - self.spent()

    def spend(self, seconds: float) -> None:
        """Count ``seconds`` more as spent."""
        self._began -= seconds
