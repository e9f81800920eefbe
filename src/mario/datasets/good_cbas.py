"""GOOD-CBAS: the BA-Shapes graph, whose features are colors that depend on the split (Gui et al., NeurIPS 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mario.datasets.card import DatasetCard
from mario.datasets.dataset import Dataset
from mario.datasets.registry import register
from mario.graphs.rules import SplitRule

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch_geometric.data import Data

    from mario.graphs.splits import Split

# BA-Shapes drops duplicates among its random edges, so the number of edges depends on the draw (3,943 ± 18). GOOD
# published one draw with 3,962 edges; this seed gives the same number. NumPy guarantees the stream of RandomState.
_GRAPH_SEED = 0


@dataclass(frozen=True)
class ColorRule:
    """How the graph is split and colored under one kind of shift.

    Attributes:
        cuts: where the shuffled nodes are cut into train | ood_val | ood_test, as fractions of all nodes.
        id_fraction: size of id_val and of id_test, as a fraction of all nodes, taken from the training part.
        colors: the feature rows.
        agreement: the probability that a node has its class's color, for each environment, then ood_val, then
            ood_test; ``None`` gives each of these groups its own color instead.
        environments: the number of equal training environments.
    """

    cuts: tuple[float, float]
    id_fraction: float
    colors: tuple[tuple[float, float, float, float], ...]
    agreement: tuple[float, ...] | None
    environments: int = 5


RULES = {
    "covariate": ColorRule(
        cuts=(0.8, 0.9),
        id_fraction=0.1,
        colors=(
            (1, 0, 0, 0.5),
            (0, 1, 0, 0.7),
            (0, 0, 1, 0.3),
            (1, 1, 0, 0.4),
            (0, 1, 1, 0.6),
            (1, 0, 1, 1.0),
            (0, 0, 0, 0.1),
        ),
        agreement=None,
    ),
    "concept": ColorRule(
        cuts=(0.6, 0.8),
        id_fraction=0.2,
        colors=((1, 0, 0, 0.5), (0, 1, 0, 0.7), (0, 0, 1, 0.3), (1, 1, 0, 0.2)),
        agreement=(0.95, 0.9, 0.85, 0.8, 0.75, 0.3, 0.0),
    ),
}


@register
class GOODCBAS(Dataset):
    """The graph is fixed; ``split_seed`` draws the split and the colors."""

    card = DatasetCard(
        name="good-cbas",
        what="BA-Shapes, colored: a random graph with 80 five-node houses attached; a node's role in its house",
        nodes=700,
        edges=3962,
        features=4,
        classes=4,
        domains=("color",),
        source="generated (Ying et al., NeurIPS 2019; Gui et al., NeurIPS 2022)",
        license="none needed",
        class_names=("random graph", "middle", "bottom", "roof"),
        notes=("The graph is fixed; split_seed draws the split and the colors.",),
    )

    def read(self, files: Sequence[Path]) -> Data:
        from mario.datasets.generators.ba_shapes import ba_shapes

        return ba_shapes(_GRAPH_SEED)

    def split(self, data: Data, *, domain: str, shift: str, split_seed: int) -> Data:
        import torch

        from mario.graphs.splits import no_shift_split, seeded, with_split

        generator = seeded(split_seed)
        if shift == "no_shift":
            split = no_shift_split(data.y.numel(), SplitRule(environments=5), generator)
            color = torch.zeros_like(data.y)
        else:
            split, color = colored_split(data.y, RULES[shift], generator)
            data.x = torch.tensor(RULES[shift].colors, dtype=torch.float32)[color]
        return with_split(data, split, color, domain=domain, shift=shift, split_seed=split_seed)


def colored_split(y: Tensor, rule: ColorRule, generator: torch.Generator | None = None) -> tuple[Split, Tensor]:
    """The five parts, and the color of every node as an index into the rule's colors."""
    import torch

    from mario.graphs.splits import OOD_TEST, OOD_VAL, TRAIN, Split, floor, take_id_parts

    num_nodes = y.numel()
    train_end, val_end = (floor(num_nodes * cut) for cut in rule.cuts)
    shuffled = torch.randperm(num_nodes, generator=generator)
    group = torch.empty(num_nodes, dtype=torch.int64)  # training environments, then ood_val, then ood_test
    group[shuffled[:train_end]] = torch.arange(train_end) * rule.environments // train_end
    group[shuffled[train_end:val_end]] = rule.environments
    group[shuffled[val_end:]] = rule.environments + 1

    if rule.agreement is None:
        color = group.clone()
    else:
        anything = torch.randint(len(rule.colors), (num_nodes,), generator=generator)
        agrees = torch.rand(num_nodes, generator=generator) < torch.tensor(rule.agreement)[group]
        color = torch.where(agrees, y, anything)

    part = torch.full((num_nodes,), TRAIN)
    part[group == rule.environments] = OOD_VAL
    part[group == rule.environments + 1] = OOD_TEST
    take_id_parts(part, shuffled[:train_end], floor(num_nodes * rule.id_fraction), generator)
    return Split(part, group.masked_fill(part != TRAIN, -1)), color
