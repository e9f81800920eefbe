"""The sections of docs/scaling.md that are written from figures."""

from pathlib import Path

from benchmarks import cost_model
from benchmarks.wording import Figures, Section, rate, seconds, size, table

ETHERNET = cost_model.Network(latency=50e-6, bandwidth=1.25e9)


def measured_rates(figures: Figures, where: Path) -> str:
    rates = cost_model.Rates.read(where)
    if rates is None:
        return "Not measured yet: batches, ranks."
    middle = sorted(rates.step_seconds)[len(rates.step_seconds) // 2]
    rows = [
        ["t, a step of one rank on one core", seconds(middle)],
        ["n, nodes in its batch", f"{rates.batch_nodes:,.0f}"],
        ["c, longer while the other core works", f"{rates.contention:.2f}×"],
        ["m, messages in a step", f"{rates.messages:.0f}"],
        ["B, bytes in them", size(rates.message_bytes)],
        ["a short message between two ranks here", seconds(rates.latency)],
        ["large messages between two ranks here", rate(rates.bandwidth, "B")],
        ["w, what a message costs two training ranks beyond that", seconds(rates.waiting)],
        ["M₀, memory of a rank without the graph", size(rates.base_bytes)],
        ["μ, bytes for each node of the graph", f"{rates.node_bytes:.1f}"],
    ]
    return table(["measured", ""], rows)


def predictions(figures: Figures, where: Path) -> str:
    rates = cost_model.Rates.read(where)
    if rates is None:
        return "Not measured yet: batches, ranks."
    rows = [
        [
            f"{count:,}",
            size(cost.memory),
            size(cost.sent),
            seconds(cost.step),
            f"{cost.hours:,.1f} h" if cost.hours >= 1 else f"{60 * cost.hours:,.1f} min",
        ]
        for count, cost in cost_model.table(rates, ETHERNET)
    ]
    disk = cost_model.table(rates, ETHERNET, [1])[0][1].disk
    head = ["ranks", "memory per rank", "sent per rank and step", "a step", "an epoch"]
    return f"{table(head, rows, left=0)}\n\nThe graph takes {size(disk)} on disk."


def held_against(figures: Figures, where: Path) -> str:
    rows = cost_model.check(where)
    if not rows:
        return "Not measured yet: batches, ranks."
    shown = [
        [
            str(row["ranks"]),
            f"{row['predicted']:.2f}",
            f"{row['measured']:.2f}",
            f"{100 * (row['predicted'] / row['measured'] - 1):+.0f} %",
        ]
        for row in rows
    ]
    text = table(["ranks on 2 cores", "predicted, batches per second", "measured", "off by"], shown, left=0)
    two, four = (next(row for row in rows if row["ranks"] == count) for count in (2, 4))
    said = " and ".join(f"{name} {four[name] / two[name]:.2f}×" for name in ("predicted", "measured"))
    off = [row for row in rows if abs(row["predicted"] / row["measured"] - 1) > 0.2]
    doubt = (
        f" More than 20 % off for {' and '.join(str(row['ranks']) for row in off)} ranks: the model misses something."
    )
    return f"{text}\n\nFour ranks on two cores against two: {said} the throughput.{doubt if off else ''}"


SCALING: dict[str, Section] = {"rates": measured_rates, "predictions": predictions, "check": held_against}
