"""What a registered study came to, in three sentences."""

from mario.report.numbers import interval, p_equals, points
from mario.report.registered import Registered


def outcome(found: Registered) -> list[str]:
    """The claim, the goal and the cost, in the same words whichever way they fall.

    Before all columns are done it says how many are, and no number.
    """
    protocol, over, cost = found.protocol, found.primary.over, found.cost.over
    label, against = protocol.primary
    if over is None or found.goal_met is None or cost is None:
        waiting = next(one for one in (found.primary, found.published, found.cost) if one.over is None)
        return [
            f"{waiting.state[0].upper()}{waiting.state[1:]} of the registered comparison of {label} with "
            f"{waiting.against}: there is no verdict before all are."
        ]
    side = "below" if over.mean_difference < 0 else "above"
    claim = "so the registered claim holds" if found.claim_holds else "so the registered claim is refuted"
    return [
        f"{protocol.subject} are {_size(over.mean_difference)} {side} {protocol.against} on domains without labels "
        f"({label} minus {against}, mean over {over.n} columns, 95 % interval {interval(over)}, Wilcoxon "
        f"{p_equals(over.p_wilcoxon)}), {claim}.",
        _goal(found),
        f"On the domains of the training set (ID) the difference is {_size(cost.mean_difference, signed=True)} (95 % "
        f"interval {interval(cost)}), and the method reads {protocol.uses}: where these are unknown, the result does "
        "not apply.",
    ]


def _goal(found: Registered) -> str:
    if found.goal_met:
        reached = "; ".join(f"{condition.wanted} ({condition.found})" for condition in found.goal)
        return f"The goal is met: {reached}."
    missed = [condition for condition in found.goal if not condition.met]
    lacking = "; ".join(f"{condition.wanted} (it is {condition.found})" for condition in missed)
    return f"The goal is missed in {len(missed)} of its {len(found.goal)} conditions: {lacking}."


def _size(difference: float, *, signed: bool = False) -> str:
    text = points(difference)
    return f"{text if signed else text.lstrip('+−')} points"
