"""The laboratory: many runs of the library, from presets and studies to results and statistics.

Names are loaded on first use, so that importing this package imports neither torch nor pandas.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Case": "mario.lab.case",
    "RunResult": "mario.lab.result",
    "RunSpec": "mario.lab.spec",
    "load_runs": "mario.lab.frame",
}

__all__ = ["Case", "RunResult", "RunSpec", "load_runs"]

if TYPE_CHECKING:
    from mario.lab.case import Case
    from mario.lab.frame import load_runs
    from mario.lab.result import RunResult
    from mario.lab.spec import RunSpec


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mario.lab' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
