"""One row against another over all cases: with five pairs per case, only all cases together can show a difference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mario.lab.statistics.paired import NothingToPairError, Paired, Pairs, holm, least_p, pair, paired

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """A score of ``label`` minus that of ``against``, over all pairs of all cases that have both.

    ``pairs`` counts those of each case, ``above`` the cases with a positive mean difference. ``p_holm`` is the p of the
    test, corrected for those that it is shown beside. A case in which scores
    vary more weighs more in the mean; the test uses ranks.
    """

    label: str
    against: str
    pairs: Mapping[str, int]
    above: int
    test: Paired
    p_holm: float | None = None

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(self.pairs)


def once(runs: "DataFrame") -> "DataFrame":
    """The runs of several studies, with those of a row and case that an earlier study has left out."""
    first = runs.groupby(["case", "label"], sort=False)["study"].transform("first")
    return runs[runs["study"] == first]


def pool(runs: "DataFrame", label: str, against: str, *, score: str = "ood_test") -> Pooled | None:
    """Compare two rows over every case of a study's frame, or of several frames joined.

    ``score`` is a column of the frame. Returns None if no case has a run of both on the same split and seed.

    Example:
        >>> from mario.lab.studies.collect import labeled_frame
        >>> pool(labeled_frame([]), "mario", "grace") is None
        True
    """
    found: dict[str, Pairs] = {}
    runs = once(runs)
    for case, here in runs[runs["label"].isin([label, against])].groupby("case", sort=False):
        try:
            found[str(case)] = pair(here[here["label"] == label], here[here["label"] == against], score)
        except NothingToPairError:
            continue
    if not found:
        return None
    return Pooled(
        label=label,
        against=against,
        pairs={name: len(pairs.keys) for name, pairs in found.items()},
        above=sum(sum(pairs.a) > sum(pairs.b) for pairs in found.values()),
        test=paired(
            [value for pairs in found.values() for value in pairs.a],
            [value for pairs in found.values() for value in pairs.b],
            splits=[split for pairs in found.values() for split in pairs.splits],
        ),
    )


def reachable(tests: Sequence[Paired | None], level: float = 0.05) -> int:
    """How many of ``tests`` could fall below ``level`` after Holm's correction if all their pairs had one sign.

    Example:
        >>> five, nine = paired([0.9] * 5, [0.8] * 5), paired([0.9] * 9, [0.8] * 9)
        >>> reachable([five, five]), reachable([nine, five]), reachable([nine] * 12), reachable([nine] * 13)
        (0, 1, 12, 0)
    """
    best = holm([None if test is None or test.p_wilcoxon is None else least_p(test.n) for test in tests])
    return sum(p is not None and p < level for p in best)
