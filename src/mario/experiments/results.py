"""What `docs/results.md` shows: every case on one stated schedule, the same steps and checkpoints for every method."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from mario.experiments.comparison import CONTROLS, Job, matched_settings, side_by_side
from mario.methods import RELEASED

EPOCHS = 20  # of ten optimiser steps; the paper has 100 to 600
CHECKPOINTS = 10
METHODS = ("erm", "grace", "mario", *CONTROLS)
PAIRED = tuple((i, i) for i in range(5))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A dataset under a shift, with its pairs of split seed and seed."""

    dataset: str
    domain: str
    shift: str
    pairs: tuple[tuple[int, int], ...] = PAIRED
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.dataset}-{self.shift}"

    def jobs(self) -> list[Job]:
        return side_by_side(
            self.dataset,
            METHODS,
            domain=self.domain,
            shift=self.shift,
            pairs=self.pairs,
            epochs=EPOCHS,
            checkpoints=CHECKPOINTS,
            given=self.given,
        )


# Subgraphs of a fifth of the paper's size: 2,048 roots make one MARIO step on Twitch take ten seconds here.
_TWITCH = {"roots": 400}

CASES = (
    Case(dataset="good-cbas", domain="color", shift="concept", pairs=tuple((i, j) for i in range(3) for j in range(5))),
    Case(dataset="good-cbas", domain="color", shift="covariate"),
    Case(dataset="good-webkb", domain="university", shift="concept"),
    Case(dataset="good-webkb", domain="university", shift="covariate"),
    Case(dataset="webkb", domain="university", shift="concept"),
    Case(dataset="webkb", domain="university", shift="covariate"),
    Case(dataset="good-twitch", domain="language", shift="concept", pairs=PAIRED[:2], given=_TWITCH),
    Case(dataset="good-twitch", domain="language", shift="covariate", pairs=PAIRED[:2], given=_TWITCH),
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
