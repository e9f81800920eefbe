"""Typed reading of JSON objects, with errors that name the file and the key."""

from typing import Any

from mario.errors import MarioError


class Fields:
    """The keys of a JSON object, each read as one type.

    Example:
        >>> Fields({"seed": "3"}, "result.json").whole("seed")
        Traceback (most recent call last):
            ...
        mario.errors.MarioError: result.json: 'seed' must be a whole number, got '3'
    """

    def __init__(self, written: Any, where: str) -> None:
        if not isinstance(written, dict):
            raise MarioError(f"{where} must be an object with the fields of a run, got {_short(written)}")
        self.written, self.where = written, where

    def __contains__(self, key: str) -> bool:
        return key in self.written

    def text(self, key: str) -> str:
        value = self._get(key)
        return value if isinstance(value, str) else self._refuse(key, "a text")

    def whole(self, key: str) -> int:
        value = self._get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else self._refuse(key, "a whole number")

    def number(self, key: str) -> float:
        value = self._get(key)
        return float(value) if _is_number(value) else self._refuse(key, "a number")

    def flag(self, key: str) -> bool:
        value = self._get(key)
        return value if isinstance(value, bool) else self._refuse(key, "true or false")

    def table(self, key: str) -> dict[str, Any]:
        value = self._get(key)
        return value if isinstance(value, dict) else self._refuse(key, "an object")

    def items(self, key: str) -> list[Any]:
        value = self._get(key)
        return value if isinstance(value, list) else self._refuse(key, "a list")

    def numbers(self, key: str) -> dict[str, float]:
        found = self.table(key)
        if not all(map(_is_number, found.values())):
            self._refuse(key, "an object of numbers")
        return {name: float(value) for name, value in found.items()}

    def texts(self, key: str) -> dict[str, str]:
        found = self.table(key)
        if not all(isinstance(value, str) for value in found.values()):
            self._refuse(key, "an object of texts")
        return found

    def _get(self, key: str) -> Any:
        if key not in self.written:
            raise MarioError(f"{self.where} has no '{key}'")
        return self.written[key]

    def _refuse(self, key: str, kind: str) -> Any:
        raise MarioError(f"{self.where}: '{key}' must be {kind}, got {_short(self.written[key])}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
