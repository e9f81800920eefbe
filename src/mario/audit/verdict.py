"""An audit in at most three sentences."""

from typing import TYPE_CHECKING

from mario.audit.shifts import Comparison, Shift

if TYPE_CHECKING:
    from mario.audit.auditing import Audit

_SHOWN = 3
_WHERE = {"features": "the features", "structure": "the edges", "neighbors": "the features of neighbors"}


def verdict_of(found: "Audit") -> list[str]:
    """What follows, in plain sentences."""
    said = []
    if found.against is not None:
        said.append(shift_sentence(found.against))
    if found.between is not None:
        said.append(shift_sentence(found.between))
    if not said:
        said.append(
            "No domains are known, so nothing can be compared: name a column with --domain, or add a new graph."
        )
    return said


def shift_sentence(found: Comparison) -> str:
    """Whether anything shifts, and what most."""
    names = [domain.name for domain in found.domains]
    between = "between the graph and the new one" if found.what == "new graph" else f"between {listed(names)}"
    if not found.found:
        return f"No shift found {between}: nothing differs by more than chance explains."
    if found.shifts:
        shown = [column_words(one, found) for one in found.shifts[:_SHOWN]]
        more = len(found.shifts) - len(shown)
        return f"{len(found.shifts)} of {len(found.columns)} columns shift {between}: {'; '.join(shown)}" + (
            f"; and {more} more." if more else "."
        )
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


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def listed(names: list[str], most: int = 6) -> str:
    """Names with commas and an "and".

    Example:
        >>> listed(["a", "b", "c"]), listed(["a", "b"]), listed(list("abcdefgh"))
        ('a, b and c', 'a and b', 'a, b, c, d, e, f and 2 more')
    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
