"""The interface of a tracking service."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Sink(Protocol):
    """A place for the scalars, figures and embeddings of a run. It ignores what it already has.

    A run that was stopped and continues may pass everything again from the first step.
    """

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """All scalars of an optimizer step; steps come in order."""

    def figure(self, name: str, figure: "Figure") -> None: ...

    def embedding(self, name: str, z: Tensor, metadata: Mapping[str, Sequence[Any]]) -> None:
        """``z`` has one row per node, and each column of ``metadata`` one entry per node."""

    def close(self) -> None: ...
