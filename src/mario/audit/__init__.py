"""What shifts in a graph and what holds, in numbers: before any training, and after.

Names are loaded on first use.
"""

from typing import TYPE_CHECKING

from mario.lazy import lazy

_HOME = {
    "Audit": "mario.audit.auditing",
    "Comparison": "mario.audit.shifts",
    "against_new": "mario.audit.shifts",
    "audit_graph": "mario.audit.auditing",
    "between_domains": "mario.audit.shifts",
    "read_audited": "mario.audit.coming",
    "read_coming": "mario.audit.coming",
    "verdict_of": "mario.audit.verdict",
}

__all__ = [
    "Audit",
    "Comparison",
    "against_new",
    "audit_graph",
    "between_domains",
    "read_audited",
    "read_coming",
    "verdict_of",
]

if TYPE_CHECKING:
    from mario.audit.auditing import Audit, audit_graph
    from mario.audit.coming import read_audited, read_coming
    from mario.audit.shifts import Comparison, against_new, between_domains
    from mario.audit.verdict import verdict_of

__getattr__, __dir__ = lazy(__name__, _HOME)
