"""Label rates and positive label rates split by split, after the paper's Figure 10 (Elliptic)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mario.errors import MarioError
from mario.report.pictures.palette import BLUE, HATCHES, VERMILLION
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.pictures.registry import Sketch, register_picture
from mario.report.svg import INK

if TYPE_CHECKING:
    from mario.lab.case import Case
    from mario.lab.studies.collect import Collected


@dataclass(frozen=True)
class Counts:
    """Nodes of one split: how many there are, how many have a label, and how many of those are of class 1."""

    name: str
    nodes: int
    labeled: int
    positive: int


def label_counts(data: Any) -> list[Counts]:
    """The counts of training (Tr), validation (Val) and every test group of a graph that is split by snapshots.

    A node without a label is in no mask; it counts for the split of the other nodes of its snapshot (``domain_id``).

    Example:
        >>> import torch
        >>> from mario.datasets.elliptic import elliptic_graph
        >>> from torch_geometric.data import Data
        >>> step = torch.arange(1, 50).repeat(2)
        >>> y = torch.cat([torch.ones(49), -torch.ones(49)]).long()
        >>> graph = Data(x=torch.ones(98, 1), edge_index=torch.zeros(2, 0).long(), y=y, time_step=step)
        >>> counts = label_counts(elliptic_graph(graph))
        >>> counts[0], counts[-1].name
        (Counts(name='Tr', nodes=10, labeled=5, positive=5), 'T9')
    """
    if "groups" not in data:
        raise MarioError("data must have test groups, as elliptic does, for label rates; it has none")
    found = [_counts("Tr", data, data.train_mask), _counts("Val", data, data.ood_val_mask)]
    for place, name in enumerate(data.groups):
        found.append(_counts(name, data, data.ood_test_mask & (data.group_id == place)))
    return found


def label_rates(counts: Sequence[Counts], *, title: str = "") -> Drawing:
    """Two bars per split: the share of nodes that have a label, and the share of those that are positive.

    Example:
        >>> label_rates([Counts("Tr", 100, 20, 5), Counts("T1", 50, 10, 1)]).description
        'Percent of nodes with a label, and of those the positive ones. Tr: 20.0 and 25.0. T1: 20.0 and 10.0.'
    """
    if not counts or any(split.nodes < 1 or split.labeled < 1 for split in counts):
        raise MarioError(f"counts must be of splits with labeled nodes, got {list(counts)}")
    rates = [(100 * split.labeled / split.nodes, 100 * split.positive / split.labeled) for split in counts]
    kinds = (("label rate", BLUE, HATCHES[1]), ("positive label rate", VERMILLION, HATCHES[0]))
    with sheet(PAGE, 2.5) as figure:
        axis = figure.subplots()
        for place, (name, color, hatch) in enumerate(kinds):
            drawn = axis.bar(
                [at + 0.4 * (place - 0.5) for at in range(len(counts))],
                [rate[place] for rate in rates],
                width=0.38,
                label=name,
                color=color,
                hatch=hatch,
                edgecolor=INK,
                linewidth=0.6,
            )
            axis.bar_label(drawn, [f"{rate[place]:.0f}" for rate in rates], padding=2, fontsize=8)
        axis.set_xticks(range(len(counts)), [split.name for split in counts])
        axis.tick_params(axis="x", length=0)
        axis.set_xlim(-0.6, len(counts) - 0.4)
        axis.set_ylabel("rate, %")
        axis.grid(axis="y")
        figure.legend(loc="outside lower center", ncols=2, handlelength=1.6)
    each = " ".join(
        f"{split.name}: {labeled:.1f} and {positive:.1f}."
        for split, (labeled, positive) in zip(counts, rates, strict=True)
    )
    return Drawing(
        figure,
        title or "Label rates and positive label rates",
        f"Percent of nodes with a label, and of those the positive ones. {each}",
    )


def _counts(name: str, data: Any, mask: Any) -> Counts:
    snapshots = data.domain_id[mask].unique()
    within = (data.domain_id[:, None] == snapshots).any(1)
    return Counts(name, int(within.sum()), int(mask.sum()), int((data.y[mask] == 1).sum()))


@register_picture("label-rates")
def sketches(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    for case in study.cases:
        if not case.missing:
            yield Sketch(partial(_of_case, case.case, root), case.name)


def _of_case(case: "Case", root: Path | None) -> Drawing:
    data = case.load(root=root, download=False)
    return label_rates(label_counts(data), title=f"Label rates of {case.dataset}")
