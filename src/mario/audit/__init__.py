"""What shifts in a graph and what holds, in numbers: before any training, and after.

Names are loaded on first use.
"""

from typing import TYPE_CHECKING

from mario.lazy import lazy

_HOME = {
    "Comparison": "mario.audit.shifts",
    "against_new": "mario.audit.shifts",
    "between_domains": "mario.audit.shifts",
}

__all__ = ["Comparison", "against_new", "between_domains"]

if TYPE_CHECKING:
    from mario.audit.shifts import Comparison, against_new, between_domains

__getattr__, __dir__ = lazy(__name__, _HOME)
