"""What a graph of 10⁸ nodes and 10⁹ edges would cost on k ranks, from rates that were measured here.

    python -m benchmarks.cost_model [--from benchmarks/out]

Memory, bytes over the network and hours follow from the figures of `benchmarks.batches` and `benchmarks.ranks`. The
same model, with this machine's two cores in place of a cluster, predicts what 1, 2 and 4 ranks do here, and is held
against what they did.
"""

import argparse
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.measuring import OUT, load


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What was measured; nothing here is assumed."""

    step_seconds: tuple[float, ...]
    """Wall seconds of single steps of one rank that has a core to itself."""
    contention: float
    """How much longer a step takes when the machine's other core is busy with something unrelated."""
    batch_nodes: float
    """Nodes in a rank's batch."""
    messages: float
    """Messages (sums over ranks) in a step."""
    message_bytes: float
    """Bytes in all messages of a step together."""
    latency: float
    """Seconds of the smallest message between two ranks of one machine."""
    bandwidth: float
    """Bytes per second of large messages between two ranks of one machine."""
    waiting: float
    """Seconds that a message costs two ranks in training beyond a bare one: neither comes to it when the other does."""
    base_bytes: float
    """Peak memory of a rank whose graph had no nodes, batch and all."""
    node_bytes: float
    """What each further node of the graph adds to the peak."""

    @classmethod
    def read(cls, where: Path) -> "Rates | None":
        """From the JSON in ``where``; ``None`` where a part is missing."""
        batches, ranked = load(where, "batches"), load(where, "ranks")
        if batches is None or ranked is None:
            return None
        kinds = ranked["kinds"]
        alone, apart = (statistics.median(kinds[kind]["walls"]) for kind in ("1", "2 apart"))
        latency, bandwidth = fit_message(ranked["sums"]["2"])
        calls, sent = kinds["2"]["messages"]["calls"], kinds["2"]["messages"]["bytes"]
        bare = latency + sent / max(1.0, calls) / bandwidth
        base, per_node = line([(row["nodes"], row["peak"]) for row in batches["rows"]])
        return cls(
            step_seconds=tuple(kinds["1"]["walls"]),
            contention=max(1.0, apart / alone),
            batch_nodes=ranked["batch_nodes"],
            messages=calls,
            message_bytes=sent,
            waiting=max(0.0, kinds["2"]["messages"]["seconds"] / max(1.0, calls) - bare),
            latency=latency,
            bandwidth=bandwidth,
            base_bytes=base,
            node_bytes=max(0.0, per_node),
        )


@dataclass(frozen=True, kw_only=True)
class Network:
    """Between ranks: seconds of an empty message, and bytes per second."""

    latency: float
    bandwidth: float

    def seconds(self, ranks: int, messages: float, payload: float) -> float:
        """Of ``messages`` sums over ``ranks`` whose contents are ``payload`` bytes in all, by a ring.

        A ring sends 2(k − 1)/k of the contents from each rank. A short message is its turns: log₂ k times those between
        two ranks, which the latency is of (gloo halves and doubles).
        """
        if ranks == 1:
            return 0.0
        turns = max(1, (ranks - 1).bit_length())
        return messages * self.latency * turns + ring_bytes(ranks, payload) / self.bandwidth


def ring_bytes(ranks: int, payload: float) -> float:
    """Bytes that each rank sends for sums of ``payload`` bytes."""
    return 2 * (ranks - 1) / ranks * payload


@dataclass(frozen=True, kw_only=True)
class Job:
    """A graph, and how many ranks train on it."""

    nodes: float
    edges: float
    features: int
    ranks: int
    cores: int | None = None
    """Cores that the ranks share; ``None``: one for each."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    memory: float
    """Bytes per rank."""
    disk: float
    """Bytes of the graph on disk, once a machine or on a file system that all see."""
    sent: float
    """Bytes that each rank sends in a step."""
    step: float
    """Seconds of a step of all ranks."""
    hours: float
    """Of an epoch: every rank's batches together hold as many nodes as the graph."""


def cost(job: Job, rates: Rates, network: Network) -> Cost:
    cores = job.cores or job.ranks
    step = simulate(
        rates.step_seconds,
        ranks=job.ranks,
        cores=cores,
        messages=round(rates.messages) if job.ranks > 1 else 0,
        message_seconds=rates.waiting + network.seconds(job.ranks, 1, rates.message_bytes / max(1.0, rates.messages)),
    )
    steps = job.nodes / (job.ranks * rates.batch_nodes)
    return Cost(
        memory=rates.base_bytes + rates.node_bytes * job.nodes,
        disk=4.0 * job.features * job.nodes + 16.0 * job.edges + 8.0 * job.nodes,
        sent=ring_bytes(job.ranks, rates.message_bytes),
        step=step,
        hours=steps * step / 3600,
    )


def simulate(
    step_seconds: Sequence[float],
    *,
    ranks: int,
    cores: int,
    messages: int,
    message_seconds: float,
    steps: int = 40,
    seed: int = 0,
) -> float:
    """Seconds of a step of ``ranks`` ranks on ``cores`` cores, by following them from message to message.

    Rank r has core r modulo ``cores`` and shares it evenly with the ranks there that are not waiting. The work of its
    step is drawn from ``step_seconds``, in equal pieces before, between and after the messages. A message is complete
    ``message_seconds`` after the last rank has come to it; those that wait use no core.

    Example:
        >>> simulate([1.0], ranks=1, cores=1, messages=0, message_seconds=0.0)
        1.0
        >>> simulate([1.0], ranks=4, cores=2, messages=0, message_seconds=0.0)
        2.0
        >>> round(simulate([1.0], ranks=2, cores=2, messages=10, message_seconds=0.01), 6)
        1.1
    """
    draw = random.Random(seed)
    clock = 0.0
    for _ in range(steps):
        work = [draw.choice(step_seconds) / (messages + 1) for _ in range(ranks)]
        # A message is a barrier and the pieces are equal, so what happens between two of them happens between all.
        clock += (messages + 1) * _to_the_barrier(work, cores) + messages * message_seconds
    return clock / steps


def _to_the_barrier(work: Sequence[float], cores: int) -> float:
    """Seconds until every rank has done its ``work``, those on one core sharing it evenly."""
    slowest = 0.0
    for core in range(cores):
        mine = sorted(work[core::cores])
        # Even sharing: the rank with the least work left finishes first, then the others run faster.
        clock = done = 0.0
        for left, amount in zip(range(len(mine), 0, -1), mine, strict=True):
            clock += (amount - done) * left
            done = amount
        slowest = max(slowest, clock)
    return slowest


def fit_message(sums: dict[str, float]) -> tuple[float, float]:
    """Latency and bytes per second from seconds of sums between two ranks by size: of the quickest and the largest."""
    points = sorted((int(size), seconds) for size, seconds in sums.items())
    short, small = min((seconds, size) for size, seconds in points)
    large, long = points[-1]
    return short, (large - small) / max(long - short, 1e-12)


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope of the least-squares line."""
    fitted = statistics.linear_regression(*zip(*points, strict=True))
    return fitted.intercept, fitted.slope


def check(where: Path) -> list[dict[str, Any]]:
    """Batches per second of 1, 2 and 4 ranks here: predicted from one rank, bare messages and waiting, and measured."""
    rates, ranked = Rates.read(where), load(where, "ranks")
    if rates is None or ranked is None:
        return []
    rows = []
    cores = int(ranked["cores"])
    for ranks_ in (1, 2, 4):
        # Messages between ranks that share a core were measured as such.
        latency, bandwidth = fit_message(ranked["sums"][str(max(2, ranks_))])
        factor = rates.contention if ranks_ > 1 else 1.0
        busy = replace(rates, step_seconds=tuple(factor * wall for wall in rates.step_seconds))
        each = rates.waiting + latency + rates.message_bytes / max(1.0, rates.messages) / bandwidth
        step = simulate(
            busy.step_seconds,
            ranks=ranks_,
            cores=cores,
            messages=round(rates.messages) if ranks_ > 1 else 0,
            message_seconds=each,
        )
        measured = ranked["kinds"][str(ranks_)]["batches_per_second"]
        rows.append({"ranks": ranks_, "predicted": ranks_ / step, "measured": measured})
    return rows


def table(rates: Rates, network: Network, counts: Sequence[int] = (1, 8, 64, 512)) -> list[tuple[int, Cost]]:
    big = Job(nodes=1e8, edges=1e9, features=128, ranks=1)
    return [(count, cost(replace(big, ranks=count), rates, network)) for count in counts]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--from", dest="where", type=Path, default=OUT)
    where = options.parse_args().where
    rates = Rates.read(where)
    if rates is None:
        raise SystemExit(f"{where} has no figures of batches and ranks: run python -m benchmarks first")
    print(replace(rates, step_seconds=(statistics.median(rates.step_seconds),)))
    for count, one in table(rates, Network(latency=50e-6, bandwidth=1.25e9)):
        print(count, one)
    for row in check(where):
        print(row)


if __name__ == "__main__":
    main()
