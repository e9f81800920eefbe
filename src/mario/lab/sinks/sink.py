"""What takes in the figures of a run."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Sink(Protocol):
    """A place for what a run has to show. It keeps each thing once: what it has already it passes over.

    So a run that was stopped and goes on may hand over everything again from the first step.
    """

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """All scalars of an optimizer step; steps come in order."""

    def figure(self, name: str, figure: "Figure") -> None: ...

    def embedding(self, name: str, z: Tensor, metadata: Mapping[str, Sequence[Any]]) -> None:
        """One row of ``z`` a node, and for each column of ``metadata`` one entry a node."""

    def close(self) -> None: ...
