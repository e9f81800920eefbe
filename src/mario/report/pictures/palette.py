"""Colors that color-blind readers can distinguish; a method looks the same in every picture.

Markers, dashes and hatches differ as well, so that a gray print can be read.
"""

from collections.abc import Iterable
from dataclasses import dataclass

# Okabe & Ito's palette without black, which is the page's ink, and yellow, which is hard to see on white. Gray and
# violet differ from the others and from both backgrounds under every kind of dichromacy (a test simulates them).
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, GRAY, VIOLET = "#CC79A7", "#56B4E9", "#6A6A6A", "#8877FF"

COLORS = (VERMILLION, BLUE, GREEN, PURPLE, SKY, ORANGE, GRAY, VIOLET)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[tuple[float, ...], ...] = (
    *((), (5.0, 1.5), (1.2, 1.2), (6.0, 1.5, 1.2, 1.5)),
    *((3.0, 1.2), (8.0, 2.0), (4.0, 1.0, 1.0, 1.0, 1.0, 1.0), (2.0, 3.0)),
)
HATCHES = ("", "////", "..", "\\\\\\\\", "xxxx", "----", "++++", "||||")

# Ordered values, such as the cells of a grid; made for dichromats (Nuñez, Anderton & Renslow, 2018).
SEQUENTIAL = "cividis"

# Ordered values as dots on the page, where a scale from dark to light would vanish on one background or the other.
ORDERED = (BLUE, "#8C8C8C", VERMILLION)


@dataclass(frozen=True)
class Look:
    """How one row is drawn, as a line, a dot, a bar or a box."""

    color: str
    marker: str
    dash: tuple[float, ...]
    hatch: str


def _look(color: int, pattern: int) -> Look:
    return Look(COLORS[color], MARKERS[pattern], DASHES[pattern], HATCHES[pattern])


# The methods of the paper's figures, then the controls.
_FIXED = ("mario", "grace", "erm", "eerm", "irm", "graphmae", "random-init", "raw-features")
LOOKS = {method: _look(place, place) for place, method in enumerate(_FIXED)}

# Once all eight are taken, the same colors come with other patterns.
_SPARE = tuple(_look(i, (i + turn) % len(MARKERS)) for turn in range(1, len(MARKERS)) for i in range(len(COLORS)))


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """The look of each row of one picture: its own if it has one, otherwise the next free one.

    Example:
        >>> found = looks(["costa", "costa+mario", "mario"])
        >>> found["mario"].color == VERMILLION, len({look.color for look in found.values()})
        (True, 3)
    """
    asked = list(dict.fromkeys(labels))
    found = {label: LOOKS[label] for label in asked if label in LOOKS}
    free = iter([look for look in (*LOOKS.values(), *_SPARE) if look not in found.values()])
    # If there are more rows than looks, looks repeat.
    rest = [label for label in asked if label not in LOOKS]
    for place, label in enumerate(rest):
        found[label] = next(free, None) or _SPARE[place % len(_SPARE)]
    return {label: found[label] for label in asked}
