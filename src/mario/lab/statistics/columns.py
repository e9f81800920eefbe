"""Two methods compared over the columns of a table, with one value per column.

Pairs within a column share a dataset, a domain and a shift, so they do not say how a method does on another dataset.
The test over columns takes the mean difference of each column as one observation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from mario.errors import MarioError
from mario.lab.statistics.paired import Paired, Pairs, paired

_DECIMALS = 12
"""0.58 − 0.5 is at least 0.08, though not to the last bit."""


@dataclass(frozen=True)
class OverColumns:
    """Scores of two methods, a and b, in several columns; ``pairs`` has those of each column.

    Example:
        >>> keys, splits = ((0,), (1,)), (0, 1)
        >>> cbas, webkb = Pairs(keys, (0.9, 0.8), (0.8, 0.8), splits), Pairs(keys, (0.5, 0.6), (0.4, 0.4), splits)
        >>> found = OverColumns({"cbas": cbas, "webkb": webkb})
        >>> {name: round(mean, 3) for name, mean in found.means.items()}
        {'cbas': 0.05, 'webkb': 0.15}
        >>> round(found.over.mean_difference, 3), found.over.n, found.at_least(0.1)
        (0.1, 2, ('webkb',))
    """

    pairs: Mapping[str, Pairs]

    def __post_init__(self) -> None:
        if not self.pairs:
            raise MarioError("pairs must hold those of at least one column, got none")

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean of a − b in each column."""
        return {name: fmean(found.a) - fmean(found.b) for name, found in self.pairs.items()}

    @cached_property
    def columns(self) -> dict[str, Paired]:
        """The pairs of each column compared: the interval is over pairs."""
        return {name: paired(found.a, found.b, splits=found.splits) for name, found in self.pairs.items()}

    @cached_property
    def over(self) -> Paired:
        """The means of the columns compared: ``n`` counts columns, and interval and test are over columns."""
        found = self.pairs.values()
        return paired([fmean(pairs.a) for pairs in found], [fmean(pairs.b) for pairs in found])

    def at_least(self, least: float) -> tuple[str, ...]:
        """The columns in which the mean of a − b is at least ``least``, a fraction."""
        return tuple(name for name, mean in self.means.items() if round(mean - least, _DECIMALS) >= 0)

    def below(self, least: float) -> tuple[str, ...]:
        """The columns in which it is below ``least``."""
        return tuple(name for name in self.means if name not in self.at_least(least))
