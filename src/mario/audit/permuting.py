"""A permutation test of many columns and classifiers at once: the largest of all decides (Westfall & Young, 1993)."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from mario.audit.measures import Measures
from mario.audit.reading import Reader

Array = np.ndarray[Any, Any]

DRAWS = 999
"""Ways to deal domains to units that are compared with the one that is."""
_RARE = 0.05  # events are weighted as if they were at least as common
_CHUNK = 2**24  # numbers of a chunk of permutations


@dataclasses.dataclass(frozen=True, eq=False)
class Tested:
    """What a test of many columns found.

    Attributes:
        p: [domains, columns] how often chance alone has a column and a domain that stand out as much; corrected for
            the number of columns, domains and classifiers.
        z: [domains, columns] by how many standard deviations it stands out.
        difference: [domains, events] the share of the domain's nodes to which it happened, minus that of the others.
        share: [domains, events] the share of the domain's nodes.
        readers_p: The same p of each classifier.
        accuracy: Of each classifier, over domains that weigh the same.
        threshold: The z that 5 % of chance results exceed somewhere.
    """

    p: Array
    z: Array
    difference: Array
    share: Array
    readers_p: Array
    accuracy: Array
    threshold: float


def run_tests(
    measures: Measures, readers: Sequence[Reader], unit: Array, domain: Array, *, draws: int = DRAWS, seed: int = 0
) -> Tested:
    """Compare each domain with the others in every column, and let classifiers read the domain.

    Under the null hypothesis units are exchangeable between domains, so dealing the domains to units again gives data
    as likely as these. Every statistic is standardized by its mean and deviation over all dealings; p is the
    share of dealings whose largest one is as large. That keeps the chance of any false alarm at p, whatever depends on
    what.

    Args:
        measures: Columns of the nodes.
        readers: Classifiers of the domain.
        unit: The unit of each node, from 0 without gaps.
        domain: The domain of each node, from 0 without gaps; a unit has one domain.
        draws: Number of dealings.
        seed: Of the dealings.
    """
    count = int(unit.max()) + 1
    of = np.zeros(count, dtype=np.int64)
    of[unit] = domain
    order = np.random.default_rng([seed, 13])
    dealt = np.stack([of, *(order.permutation(of) for _ in range(draws))])
    domains = int(domain.max()) + 1
    compared = np.arange(1, 2) if domains == 2 else np.arange(domains)
    columns = _Columns(measures, unit, count)
    width = len(compared) * len(measures.names)
    found = np.empty((draws + 1, width + len(readers)), dtype=np.float32)
    step = max(1, _CHUNK // max(1, domains * max(len(measures.owner), 4 * count, 1)))
    for start in range(0, draws + 1, step):
        part = dealt[start : start + step]
        members = (part[:, None, :] == np.arange(domains)[:, None]).astype(np.float32)
        found[start : start + step, :width] = columns.statistics(members[:, compared]).reshape(len(part), -1)
        for place, reader in enumerate(readers):
            found[start : start + step, width + place] = reader.accuracy(members)
    mean, deviation = found.mean(0, dtype=np.float64), found.std(0, dtype=np.float64)
    z = np.where(deviation > 1e-9, (found - mean) / np.maximum(deviation, 1e-9), 0.0)
    largest = np.sort(z.max(1)) if z.shape[1] else np.zeros(draws + 1)
    p = (draws + 1 - np.searchsorted(largest, z[0] - 1e-6)) / (draws + 1)
    members = (of == np.arange(domains)[:, None]).astype(np.float32)[None, compared]
    share, difference = columns.shares(members)
    shape = len(compared), len(measures.names)
    return Tested(
        p=p[:width].reshape(shape),
        z=z[0, :width].reshape(shape),
        difference=difference[0],
        share=share[0],
        readers_p=p[width:],
        accuracy=found[0, width:].astype(np.float64),
        threshold=float(largest[int(np.ceil(0.95 * (draws + 1))) - 1]),
    )


class _Columns:
    """The shares of events, from sums over units."""

    def __init__(self, measures: Measures, unit: Array, count: int) -> None:
        from scipy import sparse

        onto = sparse.csr_matrix(
            (np.ones(len(unit), dtype=np.float32), (unit, np.arange(len(unit)))), (count, len(unit))
        )
        self.happened = np.asarray((onto @ measures.happened).todense(), dtype=np.float32)
        self.known = np.asarray(onto @ measures.known, dtype=np.float32)
        self.of = measures.known_of[measures.owner]
        self.starts = np.searchsorted(measures.owner, np.arange(len(measures.names)))
        self.all, self.nodes = self.happened.sum(0), self.known.sum(0)
        share = self.all / np.maximum(self.nodes[self.of], 1)
        self.scale = 1 / np.sqrt(np.maximum(share * (1 - share), _RARE * (1 - _RARE)))

    def shares(self, members: Array) -> tuple[Array, Array]:
        """Of members [dealings, domains, units]: the shares [dealings, domains, events] and those minus the rest's."""
        flat = members.reshape(-1, members.shape[-1])
        inside, nodes = flat @ self.happened, (flat @ self.known)[:, self.of]
        share = inside / np.maximum(nodes, 1)
        rest = (self.all - inside) / np.maximum(self.nodes[self.of] - nodes, 1)
        # Nothing is compared where a side has no known value.
        difference = np.where((nodes > 0) & (nodes < self.nodes[self.of]), share - rest, 0)
        shape = (*members.shape[:2], -1)
        return share.reshape(shape), difference.reshape(shape)

    def statistics(self, members: Array) -> Array:
        """The largest standardized difference of shares of each column [dealings, domains, columns]."""
        if not len(self.starts):
            return np.zeros((*members.shape[:2], 0), dtype=np.float32)
        difference = self.shares(members)[1]
        found: Array = np.maximum.reduceat(np.abs(difference) * self.scale, self.starts, axis=2)
        return found
