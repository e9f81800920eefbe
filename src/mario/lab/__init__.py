"""The laboratory: many runs of the library, from presets and studies to results and statistics.

Names are loaded on first use, so that importing this package imports neither torch nor pandas.
"""

from typing import TYPE_CHECKING

from mario.lazy import lazy

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

__getattr__, __dir__ = lazy(__name__, _HOME)
