"""The learning rate as a function of the step, without state to save."""

import math
from collections.abc import Sequence

from mario.arguments import check_count
from mario.errors import MarioError

SCHEDULES = ("constant", "steps", "cosine")


def learning_rate_factor(
    step: int, total: int, *, schedule: str = "constant", milestones: Sequence[int] = (), warmup: int = 0
) -> float:
    """The factor of the base learning rate at optimizer step ``step`` of ``total``, counted from 0.

    ``steps`` multiplies by 0.1 at every milestone, an optimizer step (the released code of MARIO: after 150);
    ``cosine`` falls to zero; ``warmup`` steps of linear increase precede either.

    Example:
        >>> [round(learning_rate_factor(s, 300, schedule="steps", milestones=[150]), 3) for s in (0, 149, 150, 299)]
        [1.0, 1.0, 0.1, 0.1]
    """
    check_count("step", step, low=0)
    check_count("warmup", warmup, low=0)
    if schedule not in SCHEDULES:
        raise MarioError(f"schedule must be one of {', '.join(SCHEDULES)}, got {schedule!r}")
    if not isinstance(milestones, Sequence) or not all(isinstance(milestone, int) for milestone in milestones):
        raise MarioError(f"milestones must be a list of steps, got {milestones!r}")
    if step < warmup:
        return (step + 1) / warmup
    if schedule == "steps":
        return 0.1 ** sum(step >= milestone for milestone in milestones)
    if schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))
    return 1.0
