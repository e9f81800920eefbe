"""Named rules that choose the checkpoint to report."""

from collections.abc import Mapping, Sequence

from mario.arguments import check_number
from mario.errors import MarioError

RULES: dict[str, str | None] = {"id_val": "id_val", "ood_val": "ood_val", "last": None, "oracle": "ood_test"}
"""The score that each rule maximizes. ``oracle`` uses the test set: a bound to compare with, not allowed for claims."""

ALLOWED_FOR_CLAIMS = ("id_val", "ood_val", "last")


def select_checkpoint(rule: str, scores: Sequence[Mapping[str, float]]) -> int:
    """The position of the checkpoint that ``rule`` chooses; the earliest one if several are best.

    Args:
        rule: ``id_val``, ``ood_val``, ``last`` or ``oracle``.
        scores: For each checkpoint the scores that the rule may use. Pass no others: only ``oracle`` gets test scores.

    Example:
        >>> select_checkpoint("ood_val", [{"ood_val": 0.5}, {"ood_val": 0.7}, {"ood_val": 0.7}])
        1
    """
    if not isinstance(rule, str) or rule not in RULES:
        raise MarioError(f"selection rule must be one of {', '.join(RULES)}, got '{rule}'")
    if not scores or not all(isinstance(score, Mapping) for score in scores):
        raise MarioError("there is no checkpoint to select from")
    key = RULES[rule]
    if key is None:
        return len(scores) - 1
    if any(key not in score for score in scores):
        raise MarioError(f"selection rule '{rule}' needs the score '{key}' of every checkpoint")
    for score in scores:
        check_number(f"the score '{key}' of a checkpoint", score[key])
    return max(range(len(scores)), key=lambda i: (scores[i][key], -i))
