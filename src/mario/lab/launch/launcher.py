"""What a launcher is, and which there are."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar

from mario.errors import MarioError
from mario.lab.launch.progress import LaunchProgress
from mario.lab.runs.job import Job
from mario.plugins import discover

_REGISTERED: dict[str, "type[Launcher]"] = {}


class Launcher(ABC):
    """Starts the processes that carry out runs, on this machine or on others.

    A launcher is one file in this folder with a class that has ``@register_launcher("name")``, or a module of another
    package that is an entry point of ``mario.launchers``. It is then a choice of ``mario reproduce --launcher``.
    """

    name: ClassVar[str]

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check ``options``, the values of ``--launcher-option``. Most launchers have none."""
        if options:
            raise MarioError(f"the launcher {self.name} has no options, got {', '.join(options)}")

    @abstractmethod
    def launch(
        self, jobs: Sequence[Job], folder: Path, *, workers: int, root: Path | None, retry_failed: bool
    ) -> Iterator[LaunchProgress]:
        """Complete ``jobs`` and report progress: see :func:`mario.lab.launch.launch`."""


def register_launcher(name: str) -> Callable[[type[Launcher]], type[Launcher]]:
    """Make a subclass of :class:`Launcher` known by ``name``."""

    def register(cls: type[Launcher]) -> type[Launcher]:
        cls.name = name
        _REGISTERED[name] = cls
        return cls

    return register


def launchers() -> Mapping[str, type[Launcher]]:
    """Every registered launcher by name.

    Example:
        >>> sorted(launchers())
        ['local', 'slurm']
    """
    _import_all()
    return _REGISTERED


@cache
def _import_all() -> None:
    import mario.lab.launch as package

    discover(package.__name__, package.__path__, "mario.launchers")


def make_launcher(name: str, options: Mapping[str, str] | None = None) -> Launcher:
    """The launcher called ``name`` with ``options``; an unknown name or option raises a `MarioError`."""
    if name not in launchers():
        raise MarioError(f"there is no launcher '{name}'; choose {', '.join(sorted(launchers()))}")
    return launchers()[name](options or {})
