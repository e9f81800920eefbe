"""The numbers of GOOD's split procedure (Gui et al., NeurIPS 2022). No torch here; `splits.py` is the engine."""

from collections.abc import Sequence
from dataclasses import dataclass

from mario.arguments import check_count, check_number
from mario.errors import MarioError, nearest

PARTS = ("train", "id_val", "id_test", "ood_val", "ood_test")
SHIFTS = ("covariate", "concept", "no_shift")
SETTINGS = ("transductive", "inductive")
SEES = ("all", "training domains")
"""Which nodes training sees in the transductive setting."""
EDGE_DATA = ("edge_weight", "edge_attr")
"""What a graph may know of its edges besides their ends."""


@dataclass(frozen=True)
class SplitRule:
    """How a graph with a given domain is split; the defaults are GOOD-Cora's.

    Attributes:
        descending: under covariate shift, train on the largest domain values rather than the smallest.
        held_out: under covariate shift, hold out this domain and halve it into ood_val and ood_test, instead of
            cutting the sorted list of domains; every other domain is a training environment.
        cuts: where the list is cut into train | ood_val | ood_test, as fractions of all nodes.
        environments: the number of training environments under covariate shift.
        covariate_id: size of id_val and of id_test, as a fraction of all nodes.
        pick: the fraction of the remaining nodes that each of the five picks of concept shift may take.
        bias: how strongly each pick prefers the labels on its side of the mean.
        concept_id: size of id_val and of id_test, as a fraction of the training part.
        control: train | validation | test of the control without shift, as fractions of all nodes.
    """

    descending: bool = True
    held_out: str | None = None
    cuts: tuple[float, float] = (0.6, 0.8)
    environments: int = 10
    covariate_id: float = 0.1
    pick: tuple[float, ...] = (0.4, 0.6, 0.5, 1.0, 1.0)
    bias: tuple[float, ...] = (0.95, 0.95, 0.9, 0.85, 0.5)
    concept_id: float = 0.15
    control: tuple[float, float, float] = (0.6, 0.2, 0.2)

    def __post_init__(self) -> None:
        for name, length in (("cuts", 2), ("pick", 5), ("bias", 5), ("control", 3)):
            given = getattr(self, name)
            if not isinstance(given, list | tuple) or len(given) != length:
                raise MarioError(f"{name} of a SplitRule must hold {length} fractions, got {given!r}")
            for part in given:
                check_number(f"a fraction in {name} of a SplitRule", part)
        for name in ("covariate_id", "concept_id"):
            check_number(f"{name} of a SplitRule", getattr(self, name))
        check_count("environments of a SplitRule", self.environments)
        if not isinstance(self.descending, bool) or not isinstance(self.held_out, str | None):
            raise MarioError(f"SplitRule takes descending=True or False and held_out=NAME or None, got {self}")
        if sum(self.control) > 1 + 1e-6:
            raise MarioError(f"control of a SplitRule must sum to at most 1, got {self.control}")
        chances = (*self.cuts, *self.pick, *self.bias, *self.control, self.covariate_id, self.concept_id)
        if any(not 0 <= chance <= 1 for chance in chances) or len(self.pick) != 5 or len(self.bias) != 5:
            raise MarioError(f"SplitRule takes fractions from 0 to 1, five each for pick and bias, got {self}")
        if self.environments < 1 or self.cuts[0] >= self.cuts[1]:
            raise MarioError(f"SplitRule takes at least one environment and increasing cuts, got {self}")


def choose(argument: str, given: object, known: Sequence[str]) -> str:
    """Return ``given`` if it is one of ``known``, else raise an error that lists these and suggests the nearest."""
    if isinstance(given, str) and given in known:
        return given
    meant = nearest(given, known) if isinstance(given, str) else ""
    raise MarioError(f"unknown {argument} {given!r}; use one of {', '.join(known)}{meant and f'; {meant}'}")
