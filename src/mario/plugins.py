"""Finds what modules register: those of a package of ours, and those that other packages name as entry points."""

import sys
import warnings
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules


def discover(package: str, path: Iterable[str], group: str) -> None:
    """Import every module directly in ``package``, then load the entry points of ``group``.

    Subpackages are not imported. A plug-in that raises is left out with a warning.
    """
    for module in iter_modules(path):
        if not module.ispkg:
            import_module(f"{package}.{module.name}")
    for point in entry_points(group=group):
        try:
            point.load()
        except (Exception, SystemExit) as error:  # one broken plug-in must not disable the others
            what = group.rpartition(".")[2]
            said = f"it called sys.exit({error})" if isinstance(error, SystemExit) else error
            warnings.warn(f"{what} of {point.value} are left out: {said}", UserWarning, stacklevel=3)


def same_source(one: type, other: type) -> bool:
    """Whether two classes are one class of one file, which was run and imported, or collected by a test runner."""
    return _source(one) == _source(other)


def _source(cls: type) -> tuple[str | None, str]:
    return getattr(sys.modules.get(cls.__module__), "__file__", None), cls.__qualname__
