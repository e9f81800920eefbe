"""An audit in at most three sentences."""

from typing import TYPE_CHECKING

from mario.audit.scores import Promise, Scored, Scores
from mario.audit.shifts import Comparison, Shift

if TYPE_CHECKING:
    from mario.audit.auditing import Audit

USELESS = 0.25
"""Half of an interval above which it says nothing."""
_SHOWN = 2
_WHERE = {"features": "the features", "structure": "the edges", "neighbors": "the features of neighbors"}


def verdict_of(found: "Audit") -> list[str]:
    """What follows, in at most three sentences: what to use and expect, and what shifts."""
    said = []
    if found.scores is not None:
        said.append(_advice(found.scores, _unit(found)))
    said += [shift_sentence(one) for one in (found.against, found.between) if one is not None]
    if not said or (found.against is None and found.between is None):
        said.append(
            "No two domains are known, so nothing can be compared: name a column with --domain, or add a graph."
        )
    return said[:3]


def advice(scores: Scores) -> str:
    """What to use, in a few words."""
    chosen = scores.candidate()
    if chosen.name.startswith("raw-features"):
        return f"Use the features alone{_centered(chosen)}"
    if chosen.name.startswith("hops"):
        return f"Use the features and the means over neighbors{_centered(chosen)}, without any training"
    if chosen.kind == "control":
        return "Use an encoder that was never trained"
    return f"Use {'steady ' if chosen.kind == 'steady' else ''}embeddings ({chosen.name})"


def expectation(promise: Promise, metric: str, unit: str = "domain") -> str:
    """What to expect, in a few words."""
    if promise.kind == "none" or promise.score is None or promise.half is None:
        return "there are no labels, so no score can be promised"
    if promise.kind == "same":
        return (
            f"labels of one {unit} only, so no promise about another can be made "
            f"({points(promise.score)} % {title(metric)} on nodes like these)"
        )
    if promise.half > USELESS:
        return (
            f"{promise.domains} {unit}s with labels differ too much for a useful promise: expect "
            f"{points(promise.score)} % {title(metric)}, between {points(promise.low)} and {points(promise.high)}"
        )
    return f"expect {plus_minus(promise)} % {title(metric)} on a new {unit}"


def plus_minus(promise: Promise) -> str:
    """The expected score and half of its interval, or the interval where it ends at 0 or 100 %."""
    if promise.score is None or promise.low is None or promise.high is None:
        return ""
    up, down = promise.high - promise.score, promise.score - promise.low
    if abs(up - down) < 0.005:
        return f"{points(promise.score)} ± {points(up)}"
    return f"{points(promise.score)} ({points(promise.low)} to {points(promise.high)})"


def gain(scores: Scores) -> str:
    """How the best of the trained candidates compares with the best that is not trained, by the same domains."""
    trained, control = scores.best("trained", "steady"), scores.best("control")
    if trained is None or control is None or trained.score is None or control.score is None:
        return ""
    difference = 100 * (trained.score - control.score)
    how = "above" if difference >= 0 else "below"
    won, total = _won(trained, control)
    domains = f" (ahead on {won} of {total} domains)" if total else ""
    return (
        f"The best that is trained, {trained.name}, is {abs(difference):.1f} points {how} the best that is not, "
        f"{control.name}{domains}."
    )


def shift_sentence(found: Comparison) -> str:
    """Whether anything shifts, and what most."""
    names = [domain.name for domain in found.domains]
    between = "between the graph and the new one" if found.what == "new graph" else f"between {listed(names)}"
    if not found.found:
        what = "the new one differs" if found.what == "new graph" else "they differ"
        return f"No shift found {between}: {what} no more than parts of the graph differ from each other."
    if found.shifts:
        shown = [column_words(one, found) for one in found.shifts[:_SHOWN]]
        many = f"{len(found.shifts):,} of {len(found.columns):,} columns shift {between}"
        return f"{many}{', most of all' if len(found.shifts) > _SHOWN else ':'} {' and '.join(shown)}."
    where = listed([_WHERE.get(one.what, one.what) for one in found.readings if one.found])
    return f"The domain can be read from {where} {between}, though no single column shows it."


def column_words(one: Shift, found: Comparison) -> str:
    """A shift in a few words."""
    rest = "before" if found.what == "new graph" else "elsewhere"
    known = one.mean is not None and one.rest_mean is not None and one.deviations is not None
    if known and "≤" in one.event and abs(one.deviations or 0.0) >= 0.2:
        return f"{one.column} ({_number(one.mean)} on average in {one.domain}, {_number(one.rest_mean)} {rest})"
    return f"{one.event} ({percent(one.share)} in {one.domain}, {percent(one.rest)} {rest})"


def percent(share: float) -> str:
    """A fraction as a percentage without decimals.

    Example:
        >>> percent(0.914), percent(0.004)
        ('91 %', '0.4 %')
    """
    value = 100 * share
    return f"{value:.1f} %" if 0 < value < 1 else f"{value:.0f} %"


def points(value: float | None) -> str:
    """A fraction in percent, without the sign."""
    return "" if value is None else f"{100 * value:.0f}"


def title(metric: str) -> str:
    """How a metric is called in a sentence."""
    return {"roc_auc": "ROC-AUC", "f1": "F1"}.get(metric, metric.replace("_", " "))


def listed(names: list[str], most: int = 6) -> str:
    """Names with commas and an "and".

    Example:
        >>> listed(["a", "b", "c"]), listed(["a", "b"]), listed(list("abcdefgh"))
        ('a, b and c', 'a and b', 'a, b, c, d, e, f and 2 more')
    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _advice(scores: Scores, unit: str) -> str:
    return f"{advice(scores)}: {expectation(scores.promise, scores.metric, unit)}."


def _unit(found: "Audit") -> str:
    name = found.graph.domain
    return name if name.isalpha() and name not in ("given", "domain") else "domain"


def _centered(chosen: Scored) -> str:
    return ", centered by domain" if chosen.name.endswith(("centered", "gated")) else ""


def _won(one: Scored, other: Scored) -> tuple[int, int]:
    scores = {part.domain: part.score for part in other.parts}
    return sum(part.score > scores[part.domain] for part in one.parts), len(one.parts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
