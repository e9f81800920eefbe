"""The numbers of GOOD's split procedures (Gui et al., NeurIPS 2022), one row a dataset. No torch here.

`splits.py` is the engine that follows these rules and `cbas.py` the one for colored graphs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from mario.errors import MarioError

PARTS = ("train", "id_val", "id_test", "ood_val", "ood_test")
SHIFTS = ("covariate", "concept", "no_shift")
SETTINGS = ("transductive", "inductive")


@dataclass(frozen=True)
class SplitRule:
    """How a graph with a given domain is cut; the defaults are GOOD-Cora's.

    Attributes:
        descending: under covariate shift the training part holds the largest domain values rather than the smallest.
        held_out: under covariate shift, hold this one domain out and halve it into ood_val and ood_test, rather than
            cut the sorted list of domains; every other domain is a training environment.
        cuts: where the list is cut into train | ood_val | ood_test, as fractions of all nodes.
        environments: the number of training environments under covariate shift.
        covariate_id: id_val and id_test each, as a fraction of all nodes.
        pick: the fraction of the nodes still left that each of the five picks of concept shift may take.
        bias: how strongly each pick prefers the labels on its side of the mean.
        concept_id: id_val and id_test each, as a fraction of the training part.
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
        chances = (*self.cuts, *self.pick, *self.bias, *self.control, self.covariate_id, self.concept_id)
        if any(not 0 <= chance <= 1 for chance in chances) or len(self.pick) != 5 or len(self.bias) != 5:
            raise MarioError(f"a SplitRule takes fractions from 0 to 1, five each for pick and bias, got {self}")
        if self.environments < 1 or self.cuts[0] >= self.cuts[1]:
            raise MarioError(f"a SplitRule takes one environment at least and cuts that grow, got {self}")


@dataclass(frozen=True)
class ColorRule:
    """How GOOD-CBAS is cut and colored under one kind of shift.

    Attributes:
        cuts: where the shuffled nodes are cut into train | ood_val | ood_test, as fractions of all nodes.
        id_fraction: id_val and id_test each, as a fraction of all nodes, taken from the training part.
        colors: the feature rows.
        agreement: the probability that a node has its class's color, for each environment, then ood_val, then
            ood_test; ``None`` gives each of these groups one color of its own instead.
        environments: the number of equal training environments.
    """

    cuts: tuple[float, float]
    id_fraction: float
    colors: tuple[tuple[float, float, float, float], ...]
    agreement: tuple[float, ...] | None
    environments: int = 5


@dataclass(frozen=True)
class SizeRule:
    """How a set of graphs is cut by size.

    Attributes:
        nodes: the fewest and the most nodes of a training graph.
        train: how many of the graphs within are for training; ``None`` is all of them.
    """

    nodes: tuple[int, int]
    train: int | None = None


_WEBKB_BIAS = (0.85, 0.75, 0.85, 0.8, 0.5)

RULES: dict[str, SplitRule] = {
    "good-cora": SplitRule(),
    "coauthor-cs": SplitRule(),
    "good-twitch": SplitRule(descending=False, bias=(0.8, 0.7, 0.8, 0.7, 0.5), control=(0.4, 0.3, 0.3)),
    "good-webkb": SplitRule(descending=False, held_out="wisconsin", environments=2, bias=_WEBKB_BIAS),
    "webkb": SplitRule(descending=False, held_out="wisconsin", environments=3, bias=_WEBKB_BIAS),
}

SIZE_RULES: dict[str, SizeRule] = {
    "proteins-25": SizeRule((4, 25), 500),
    "dd-200": SizeRule((30, 200)),
    "dd-300": SizeRule((30, 300), 500),
}

CBAS_RULES: dict[str, ColorRule] = {
    "covariate": ColorRule(
        cuts=(0.8, 0.9),
        id_fraction=0.1,
        colors=(
            (1, 0, 0, 0.5),
            (0, 1, 0, 0.7),
            (0, 0, 1, 0.3),
            (1, 1, 0, 0.4),
            (0, 1, 1, 0.6),
            (1, 0, 1, 1.0),
            (0, 0, 0, 0.1),
        ),
        agreement=None,
    ),
    "concept": ColorRule(
        cuts=(0.6, 0.8),
        id_fraction=0.2,
        colors=((1, 0, 0, 0.5), (0, 1, 0, 0.7), (0, 0, 1, 0.3), (1, 1, 0, 0.2)),
        agreement=(0.95, 0.9, 0.85, 0.8, 0.75, 0.3, 0.0),
    ),
}


def choose(argument: str, given: object, known: Sequence[str]) -> str:
    """``given`` if it is known, else an error that lists what is, the nearest first."""
    if isinstance(given, str) and given in known:
        return given
    near = get_close_matches(given.lower(), known, n=1) if isinstance(given, str) else []
    meant = f"; did you mean {near[0]!r}?" if near else ""
    raise MarioError(f"unknown {argument} {given!r}; one of {', '.join(known)} would do{meant}")
