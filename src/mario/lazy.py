"""Names of a package that are imported on first use, so that importing the package stays fast."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose public names live in other modules (PEP 562).

    Args:
        package: The package's ``__name__``.
        home: The module of each name.

    Example:
        >>> get, names = lazy("example", {"OrderedDict": "collections"})
        >>> names(), get("OrderedDict").__name__
        (['OrderedDict'], 'OrderedDict')
    """

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(home[name]), name)

    return get, lambda: sorted(home)
