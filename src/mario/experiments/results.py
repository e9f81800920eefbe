"""What `docs/results.md` shows: every case on one stated schedule, the same steps and checkpoints for every method."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from mario.experiments.comparison import CONTROLS, Job, matched_settings, side_by_side
from mario.graphs.catalogue import CATALOGUE
from mario.methods import REGISTRY, RELEASED, find

EPOCHS = 20  # of ten optimiser steps; the paper has 100 to 600
CHECKPOINTS = 10
METHODS = ("erm", "grace", "mario", *CONTROLS)
PAIRED = tuple((i, i) for i in range(5))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A dataset under a shift, with its pairs of split seed and seed.

    ``matched`` cases compare ``METHODS`` with the settings of MARIO as far as they have them; the others compare every
    system that is registered, each with the settings of its own file. A ``full`` case also has the number of steps of
    that file, which differs from method to method.
    """

    dataset: str
    domain: str
    shift: str
    pairs: tuple[tuple[int, int], ...] = PAIRED
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    matched: bool = True
    full: bool = False

    @property
    def name(self) -> str:
        kind = "full-" if self.full else "" if self.matched else "systems-"
        return f"{kind}{self.dataset}-{self.shift}"

    @property
    def methods(self) -> tuple[str, ...]:
        return METHODS if self.matched else systems(CATALOGUE[self.dataset].level)

    def jobs(self, methods: Sequence[str] = (), *, quick: bool = False) -> list[Job]:
        """The runs of the case; ``quick`` is one pair and two epochs, to see that all of it works."""
        for method in methods:
            find(method).check_level(CATALOGUE[self.dataset].level)
        return side_by_side(
            self.dataset,
            methods or self.methods,
            domain=self.domain,
            shift=self.shift,
            pairs=self.pairs[:1] if quick else self.pairs,
            epochs=2 if quick else None if self.full else EPOCHS,
            checkpoints=2 if quick else CHECKPOINTS,
            given=self.given,
            matched=self.matched,
        )


def systems(level: str) -> tuple[str, ...]:
    """Every registered method that embeds nodes or graphs, then every host with the recipe over it."""
    plain = [name for name, cls in REGISTRY.items() if level in cls.levels]
    hosts = [name for name in plain if getattr(REGISTRY[name], "host", False) and name != "grace"]  # that is mario
    return (*plain, *(f"{name}+mario" for name in hosts))


# Subgraphs of a fifth of the paper's size: 2,048 roots make one MARIO step on Twitch take ten seconds here.
_TWITCH = {"roots": 400}
# The paper takes all 7,650 nodes at once, and has one draw of labels: another split seed is another problem.
_PHOTO = {"sampling": "random_walk", "steps_per_epoch": 10, "roots": 400, "probe_epochs": 100}
_ONE_DRAW = tuple((0, seed) for seed in range(3))

CASES = (
    Case(dataset="good-cbas", domain="color", shift="concept", pairs=tuple((i, j) for i in range(3) for j in range(5))),
    Case(dataset="good-cbas", domain="color", shift="covariate"),
    Case(dataset="good-webkb", domain="university", shift="concept"),
    Case(dataset="good-webkb", domain="university", shift="covariate"),
    Case(dataset="webkb", domain="university", shift="concept"),
    Case(dataset="webkb", domain="university", shift="covariate"),
    Case(dataset="good-twitch", domain="language", shift="concept", pairs=PAIRED[:2], given=_TWITCH),
    Case(dataset="good-twitch", domain="language", shift="covariate", pairs=PAIRED[:2], given=_TWITCH),
    Case(dataset="good-cbas", domain="color", shift="concept", pairs=PAIRED[:3], matched=False),
    Case(dataset="good-cbas", domain="color", shift="covariate", pairs=PAIRED[:3], matched=False),
    Case(dataset="good-cbas", domain="color", shift="concept", pairs=PAIRED[:1], matched=False, full=True),
    Case(dataset="amazon-photo", domain="environment", shift="concept", pairs=_ONE_DRAW, given=_PHOTO, matched=False),
    Case(dataset="proteins-25", domain="size", shift="covariate", pairs=PAIRED[:3], matched=False),
    Case(dataset="dd-200", domain="size", shift="covariate", pairs=PAIRED[:3], matched=False),
    Case(dataset="dd-300", domain="size", shift="covariate", pairs=PAIRED[:3], matched=False),
)

_ONE_SEED = tuple((split_seed, 0) for split_seed in range(3))

VARIANTS: dict[str, dict[str, Any]] = {
    "mario": {},
    "mario, sign step": {"ascent": "sign"},
    "mario, sinkhorn labels": {"pseudo_labels": "sinkhorn", "cmi_negatives": "first"},
    "mario, inner projector": {"projector_moves": "inner", "prototype_tau": 0.2, "prototype_weight_decay": 1e-5},
    "mario, lr / 10 at 150": {"schedule": "steps", "milestones": (150,)},
    "mario, as released": dict(RELEASED),
    "mario w/o ad": {"adversarial": False},
    "mario w/o cmi": {"conditional": False},
}
"""Where paper and released code differ, by group, then all of it; and the paper's ablations."""


def variant_jobs(pairs: tuple[tuple[int, int], ...] = _ONE_SEED) -> list[Job]:
    """The variants of MARIO on GOOD-CBAS under concept shift; judged by validation scores."""
    base = matched_settings("mario", "good-cbas", "color", "concept")
    return [
        Job(
            dataset="good-cbas",
            domain="color",
            shift="concept",
            method="mario",
            split_seed=split_seed,
            seed=seed,
            given={**base, **settings, "epochs": EPOCHS, "checkpoints": CHECKPOINTS},
            label=label,
        )
        for split_seed, seed in pairs
        for label, settings in VARIANTS.items()
    ]
