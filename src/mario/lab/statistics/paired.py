"""Mean and spread of scores, and the difference of two methods that were run on the same splits and seeds.

The split changes a score more than the method does, so two methods are compared pair by pair: same dataset, split and
seed. Runs with different seeds on one split share that split and are not independent. The bootstrap interval and the
Wilcoxon test below treat every pair as independent, so they are overconfident if there are several seeds per split;
`BySplit` has the difference with one value per split, which is the number of independent draws. Report both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mario.errors import MarioError

if TYPE_CHECKING:
    from pandas import DataFrame

PAIR_KEY = ("dataset", "domain", "shift", "setting", "split_seed", "seed")

# Scores are ratios of small counts: 0.9 − 0.8 and 0.7 − 0.6 are the same difference, but not to the last bit. Rounding
# makes them tie in the Wilcoxon ranks.
_DECIMALS = 12


class NothingToPairError(MarioError):
    """Two sets of runs have none in common."""


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (n − 1 in the denominator; None for a single value) of n values."""

    mean: float
    sd: float | None
    n: int


@dataclass(frozen=True)
class BySplit:
    """Values averaged within each split first: mean and sd (None for one split) over ``n_splits`` values."""

    n_splits: int
    mean: float
    sd: float | None


@dataclass(frozen=True)
class Paired:
    """Differences a − b of n matched pairs.

    Attributes:
        ci_low, ci_high: bootstrap interval of the mean difference; None for too few pairs (at 95 %, below five).
        p_wilcoxon: two-sided; None for n = 1, where no test exists; 1 if all pairs are tied.
        side: direction of the Wilcoxon test: 1 if the ranks of pairs with a above outweigh the others, −1 if they are
            outweighed, 0 if neither. It may differ from the sign of the mean.
        wins, ties, losses: numbers of pairs with a above, equal to and below b.
    """

    n: int
    mean_difference: float
    ci_low: float | None
    ci_high: float | None
    p_wilcoxon: float | None
    side: int
    wins: int
    ties: int
    losses: int
    by_split: BySplit | None

    def shown(self, p: float | None, level: float) -> int:
        """1 or −1 if a is significantly above or below b at ``level``; ``p`` is that of the test, or a corrected one.

        It is 0 if ranks and mean have different signs, which can happen over cases of different scale.
        """
        agreed = self.side * self.mean_difference > 0
        return self.side if agreed and p is not None and p < level else 0


@dataclass(frozen=True)
class Pairs:
    """Scores of two methods in the same order; ``keys[i]`` identifies the i-th pair of runs."""

    keys: tuple[tuple[Any, ...], ...]
    a: tuple[float, ...]
    b: tuple[float, ...]
    splits: tuple[tuple[Any, ...], ...]


def summarize(values: Iterable[float]) -> Summary:
    """Mean, sample standard deviation and count.

    Example:
        >>> summarize([0.25, 0.5, 0.75])
        Summary(mean=0.5, sd=0.25, n=3)
    """
    array = _finite("values", list(values))
    return Summary(mean=float(array.mean()), sd=float(array.std(ddof=1)) if len(array) > 1 else None, n=len(array))


def over_splits(values: Sequence[float], splits: Sequence[Any]) -> BySplit:
    """Mean and spread with one value per split, where ``splits[i]`` names the split of ``values[i]``.

    The spread over splits describes another draw of the split with many seeds; the spread over runs mixes both.

    Example:
        >>> over_splits([0.25, 0.75, 0.5, 1.0], splits=[0, 0, 1, 1])
        BySplit(n_splits=2, mean=0.625, sd=0.1767766952966369)
    """
    if len(values) != len(splits):
        raise MarioError(f"splits must name the split of each of the {len(values)} values, got {len(splits)} names")
    groups: dict[Any, list[float]] = {}
    for split, value in zip(splits, values, strict=True):
        groups.setdefault(split, []).append(float(value))
    over = summarize(float(np.mean(group)) for group in groups.values())
    return BySplit(n_splits=over.n, mean=over.mean, sd=over.sd)


def in_sds(value: float, mean: float, sd: float | None) -> float | None:
    """The distance of ``value`` above ``mean`` in standard deviations; None if there is no spread.

    Example:
        >>> in_sds(92.0, 91.0, 0.5), in_sds(92.0, 91.0, 0.0)
        (2.0, None)
    """
    return (value - mean) / sd if sd else None


def least_p(n: int) -> float:
    """The smallest two-sided p of Wilcoxon's signed-rank test for n pairs, when all differences have one sign.

    Example:
        >>> [least_p(n) for n in (0, 1, 5, 6)]
        [1.0, 1.0, 0.0625, 0.03125]
    """
    return min(1.0, 2.0 ** (1 - n))


def paired(
    a: Sequence[float],
    b: Sequence[float],
    *,
    splits: Sequence[Any] | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Paired:
    """Compare matched scores: ``a[i]`` and ``b[i]`` are of the same split and seed.

    ``splits[i]`` names the split of pair i; without it ``by_split`` is None. The bootstrap resamples pairs with a
    generator seeded with ``seed``, so that the same scores give the same interval.

    Example:
        >>> result = paired([0.92, 0.90, 0.95, 0.91], [0.90, 0.90, 0.91, 0.89], splits=[0, 0, 1, 1])
        >>> result.n, round(result.mean_difference, 4), (result.wins, result.ties, result.losses)
        (4, 0.02, (3, 1, 0))
        >>> result.side
        1
        >>> result.by_split.n_splits, round(result.by_split.mean, 4)
        (2, 0.02)
    """
    if len(a) != len(b):
        raise MarioError(f"a and b must hold one score per pair, got {len(a)} and {len(b)} scores")
    if splits is not None and len(splits) != len(a):
        raise MarioError(f"splits must name the split of each of the {len(a)} pairs, got {len(splits)} names")
    if not 0.0 < confidence < 1.0:
        raise MarioError(f"confidence must lie between 0 and 1, got {confidence}")
    if resamples < 1:
        raise MarioError(f"resamples must be at least 1, got {resamples}")
    difference = np.round(_finite("a", list(a)) - _finite("b", list(b)), _DECIMALS)
    low, high = _bootstrap(difference, confidence, resamples, seed)
    p, side = _wilcoxon(difference)
    return Paired(
        n=len(difference),
        mean_difference=float(difference.mean()),
        ci_low=low,
        ci_high=high,
        p_wilcoxon=p,
        side=side,
        wins=int((difference > 0).sum()),
        ties=int((difference == 0).sum()),
        losses=int((difference < 0).sum()),
        by_split=None if splits is None else over_splits(difference.tolist(), splits),
    )


def pair(a: "DataFrame", b: "DataFrame", score: str) -> Pairs:
    """Match the runs of two methods on dataset, domain, shift, setting, split seed and seed.

    ``a`` and ``b`` are rows of a :func:`~mario.lab.frame.frame`, ``score`` is one of its columns, such as
    ``"ood_test"``. Runs that only one side has are left out.

    Example:
        >>> import pandas as pd
        >>> case = {"dataset": "good-cbas", "domain": "color", "shift": "concept", "setting": "transductive"}
        >>> scores = {"method": ["mario", "mario", "grace"], "seed": [0, 1, 1], "ood_test": [0.91, 0.93, 0.9]}
        >>> runs = pd.DataFrame(scores).assign(**case, split_seed=0)
        >>> pairs = pair(runs[runs.method == "mario"], runs[runs.method == "grace"], "ood_test")
        >>> pairs.a, pairs.b
        ((0.93,), (0.9,))
    """
    scores_a, scores_b = _by_key("a", a, score), _by_key("b", b, score)
    keys = tuple(key for key in scores_a if key in scores_b)
    if not keys:
        raise NothingToPairError(
            f"a and b ({len(scores_a)} and {len(scores_b)} runs with a score {score!r}) have no run in common; "
            f"paired runs must agree in {', '.join(PAIR_KEY)}"
        )
    return Pairs(
        keys=keys,
        a=tuple(scores_a[key] for key in keys),
        b=tuple(scores_b[key] for key in keys),
        splits=tuple(key[:-1] for key in keys),
    )


def holm(pvalues: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment for several tests (Holm, 1979); None stays None and does not count.

    Example:
        >>> holm([0.0625, 0.5, None, 0.125])
        [0.1875, 0.5, None, 0.25]
    """
    known = []
    for index, p in enumerate(pvalues):
        if p is None:
            continue
        if not 0.0 <= p <= 1.0:
            raise MarioError(f"pvalues must lie in [0, 1], got {p}")
        known.append((p, index))
    adjusted: list[float | None] = [None] * len(pvalues)
    largest = 0.0
    for rank, (p, index) in enumerate(sorted(known)):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[index] = largest
    return adjusted


def _finite(argument: str, values: list[float]) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise MarioError(f"{argument} must be a flat sequence of at least one number, got {values!r}")
    if not np.isfinite(array).all():
        raise MarioError(f"{argument} must be finite numbers, got {values!r}")
    return array


def _bootstrap(
    difference: NDArray[np.float64], confidence: float, resamples: int, seed: int
) -> tuple[float, float] | tuple[None, None]:
    """The expanded percentile interval (Hesterberg, The American Statistician 2015).

    The plain percentile interval is too narrow by √((n−1)/n), and by normal instead of t quantiles: a third for n = 5.
    """
    n = len(difference)
    tail = float(stats.norm.cdf(np.sqrt(n / (n - 1)) * stats.t.ppf((1.0 - confidence) / 2.0, n - 1))) if n > 1 else 0.0
    if tail < float(n) ** -n:  # too few resamples: the least and the greatest of n have this probability each
        return None, None
    drawn = np.random.default_rng(seed).integers(len(difference), size=(resamples, len(difference)))
    low, high = np.quantile(difference[drawn].mean(axis=1), [tail, 1.0 - tail])
    return float(low), float(high)


def _wilcoxon(difference: NDArray[np.float64]) -> tuple[float | None, int]:
    """Exact two-sided p of the signed-rank test, and its side; tied pairs are left out, as Wilcoxon does.

    Scores are ratios of small counts and often tie. For ties scipy has an approximation or a slow enumeration.
    """
    known = difference[difference != 0]
    ranks = np.rint(2 * stats.rankdata(np.abs(known))).astype(int)  # twice the ranks: ties have halves
    total = int(ranks.sum())
    chance = np.zeros(total + 1)  # of each sum of the positive ranks, if every sign is a coin
    chance[0] = 1.0
    for rank in ranks:
        heads = np.zeros_like(chance)
        heads[rank:] = chance[: total + 1 - rank]
        chance = (chance + heads) / 2.0
    positive = int(ranks[known > 0].sum())
    p = min(1.0, 2.0 * float(chance[: min(positive, total - positive) + 1].sum()))
    return p if len(difference) > 1 else None, int(np.sign(2 * positive - total))


def _by_key(argument: str, runs: "DataFrame", score: str) -> dict[tuple[Any, ...], float]:
    scored = runs[runs[score].notna()]
    found: dict[tuple[Any, ...], float] = {}
    for *key, value in scored[[*PAIR_KEY, score]].itertuples(index=False, name=None):
        if tuple(key) in found:
            raise MarioError(
                f"{argument} has two runs with {', '.join(f'{n}={v}' for n, v in zip(PAIR_KEY, key, strict=True))}; "
                "pass the runs of one method and one encoder"
            )
        found[tuple(key)] = float(value)
    return found
