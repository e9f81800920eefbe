"""A tiny graph that shifts, for tests of methods: two classes, a spurious color that flips out of distribution."""

import torch
from torch_geometric.data import Data


def tiny_graph(seed: int = 0, nodes: int = 80) -> Data:
    """Two communities (the class) and four features, one of which follows the class in training and flips outside."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(nodes) % 2
    same = y.unsqueeze(0) == y.unsqueeze(1)
    linked = torch.rand(nodes, nodes, generator=generator) < torch.where(same, 0.2, 0.02)
    linked = linked.triu(1)
    edge_index = (linked | linked.t()).nonzero().t().contiguous()
    part = torch.randperm(nodes, generator=generator) * 5 // nodes
    ood = part >= 3
    color = torch.where(ood, 1 - y, y).float()
    x = torch.stack([color, y.float(), *torch.rand(2, nodes, generator=generator)], dim=1)
    x[:, 1] += torch.randn(nodes, generator=generator)
    masks = {name: part == i for i, name in enumerate(("train", "id_val", "id_test", "ood_val", "ood_test"))}
    return Data(
        x=x,
        edge_index=edge_index,
        y=y,
        **{f"{name}_mask": mask for name, mask in masks.items()},
        domain_id=ood.long(),
        env_id=torch.where(part == 0, 0, -1),
        name="tiny",
        domain="color",
        shift="concept",
        setting="transductive",
        split_seed=seed,
        metric="accuracy",
        num_classes=2,
        faults=[],
    )
