"""Methods compared over many cases at once by their ranks (Demšar, 2006, "Statistical Comparisons of Classifiers over
Multiple Data Sets").

Scores of different datasets have different scales and cannot be averaged; ranks can. Friedman's test decides whether
the methods differ at all, and Nemenyi's critical difference is the difference of average ranks that is significant.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from mario.errors import MarioError

# 0.8 and 0.1 + 0.7 are the same score and share a rank.
_DECIMALS = 12


@dataclass(frozen=True)
class Ranking:
    """Average ranks of methods over blocks (cases, or pairs of split and seed), the best first.

    ``average[i]`` is the average rank of ``methods[i]``, 1 for one that is best everywhere. Two methods differ at level
    ``alpha`` if their average ranks differ by more than ``critical_difference``; ``groups`` are the largest sets of
    neighbors that do not, best first. ``blocks`` were counted; ``left_out`` maps the others to what they lack.
    ``chi2`` and ``p_friedman`` are Friedman's, corrected for ties (p is 1 if all methods tie in every block).
    """

    methods: tuple[str, ...]
    average: tuple[float, ...]
    blocks: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]]
    chi2: float
    p_friedman: float
    alpha: float
    critical_difference: float
    groups: tuple[tuple[str, ...], ...]


def average_ranks(
    scores: Mapping[str, Mapping[str, float]], *, methods: Sequence[str] = (), alpha: float = 0.05
) -> Ranking:
    """Rank methods within each block, 1 for the highest score and the mean rank for ties, and average over blocks.

    ``scores`` maps a block to the score of each method in it. ``methods`` are those to compare, by default all; only
    blocks with a score of every one of them count.

    Example:
        >>> cbas, webkb = {"mario": 0.92, "grace": 0.90, "erm": 0.83}, {"mario": 0.37, "grace": 0.35, "erm": 0.26}
        >>> ranking = average_ranks({"cbas": cbas, "webkb": webkb, "twitch": {"mario": 0.6}})
        >>> ranking.methods, ranking.average, ranking.blocks, ranking.left_out
        (('mario', 'grace', 'erm'), (1.0, 2.0, 3.0), ('cbas', 'webkb'), {'twitch': ('grace', 'erm')})
        >>> round(ranking.critical_difference, 2), ranking.groups
        (2.34, (('mario', 'grace', 'erm'),))
    """
    compared = list(dict.fromkeys(methods)) or list(dict.fromkeys(m for block in scores.values() for m in block))
    if len(compared) < 2:
        raise MarioError(f"methods must be at least two to be ranked, got {', '.join(compared) or 'none'}")
    left_out = {
        block: lacking for block, found in scores.items() if (lacking := tuple(m for m in compared if m not in found))
    }
    blocks = tuple(block for block in scores if block not in left_out)
    if not blocks:
        why = "; ".join(f"{block} has no {', '.join(names)}" for block, names in left_out.items())
        raise MarioError(f"scores must hold a block with all of {', '.join(compared)}: {why or 'got no block'}")
    values = np.array([[scores[block][method] for method in compared] for block in blocks], dtype=np.float64)
    if not np.isfinite(values).all():
        raise MarioError("scores must be finite numbers")
    ranks = stats.rankdata(-np.round(values, _DECIMALS), axis=1)
    average = ranks.mean(axis=0)
    order = sorted(range(len(compared)), key=lambda i: (average[i], i))
    named = [(compared[i], float(average[i])) for i in order]
    difference = critical_difference(len(compared), len(blocks), alpha=alpha)
    chi2, p = friedman(ranks.tolist())
    return Ranking(
        methods=tuple(method for method, _ in named),
        average=tuple(rank for _, rank in named),
        blocks=blocks,
        left_out=left_out,
        chi2=chi2,
        p_friedman=p,
        alpha=alpha,
        critical_difference=difference,
        groups=_groups(named, difference),
    )


def friedman(ranks: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Friedman's χ² and its p from the ranks of k methods (columns) in n blocks (rows), corrected for ties.

    Example:
        >>> chi2, p = friedman([[1, 2, 3], [1, 2, 3], [1, 3, 2], [2, 1, 3]])
        >>> round(chi2, 2), round(p, 4)
        (4.5, 0.1054)
    """
    table = np.asarray(ranks, dtype=np.float64)
    n, k = table.shape
    # Var of the ranks within a block is k(k + 1)/12 without ties; ties make it smaller.
    within = float(((table - (k + 1) / 2) ** 2).sum()) / (n * (k - 1))
    if within == 0.0:
        return 0.0, 1.0
    chi2 = n * float(((table.mean(axis=0) - (k + 1) / 2) ** 2).sum()) / within
    return chi2, float(stats.chi2.sf(chi2, k - 1))


def critical_difference(methods: int, blocks: int, *, alpha: float = 0.05) -> float:
    """Nemenyi's critical difference q_α √(k(k + 1) / 6n) of k methods' average ranks over n blocks.

    q_α is the studentized range statistic for infinitely many degrees of freedom, divided by √2.

    Example:
        >>> round(critical_difference(4, 14, alpha=0.10), 2)  # the example of Demšar, section 3.2.2
        1.12
    """
    if methods < 2 or blocks < 1:
        raise MarioError(f"a critical difference needs two methods and one block, got {methods} and {blocks}")
    if not 0.0 < alpha < 1.0:
        raise MarioError(f"alpha must lie between 0 and 1, got {alpha}")
    q = float(stats.studentized_range.ppf(1.0 - alpha, methods, math.inf)) / math.sqrt(2.0)
    return q * math.sqrt(methods * (methods + 1) / (6.0 * blocks))


def _groups(named: Sequence[tuple[str, float]], difference: float) -> tuple[tuple[str, ...], ...]:
    """The longest runs of two or more neighbors whose ends differ by at most ``difference``."""
    groups: list[tuple[str, ...]] = []
    reached = 0
    for first, (_, rank) in enumerate(named):
        end = first
        while end < len(named) and named[end][1] - rank <= difference:
            end += 1
        if end - first > 1 and end > reached:
            groups.append(tuple(method for method, _ in named[first:end]))
        reached = max(reached, end)
    return tuple(groups)
