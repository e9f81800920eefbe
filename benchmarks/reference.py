"""MARIO the textbook way, from the formulas: what ours is measured against.

Plain torch and PyG. PyG's GCNConv gathers and scatters along an ``edge_index``; the similarities of all pairs of
nodes are full matrices that autograd keeps; every one of the M ascent steps passes both views through the network
with a dense X + δ; each of the l prototype steps evaluates its loss anew, network and all; the linear head runs the
frozen encoder again in every step. Nothing of `mario` is imported. ``python -m benchmarks.check`` shows that one
step gives the loss and the next weights of ours.

The released code of MARIO encodes once before the l prototype steps and runs the projector again in each; ``again``
says which part is run again here: ``projector`` as released, ``encoder`` the whole network, ``nothing`` Z once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

Start = Callable[[Tensor, float, torch.Generator], Tensor]


def info_nce(u: Tensor, v: Tensor, tau: float) -> Tensor:
    """GRACE's loss, both directions, with four N × N matrices."""

    def similarity(a: Tensor, b: Tensor) -> Tensor:
        return torch.exp(F.normalize(a) @ F.normalize(b).t() / tau)

    def one_way(a: Tensor, b: Tensor) -> Tensor:
        within, between = similarity(a, a), similarity(a, b)
        return -torch.log(between.diag() / (within.sum(1) + between.sum(1) - within.diag()))

    return ((one_way(u, v) + one_way(v, u)) / 2).mean()


def conditional_mi(u: Tensor, v: Tensor, clusters_u: Tensor, clusters_v: Tensor, tau: float) -> Tensor:
    """Eq. 16 with masks over N × N: negatives of i are the nodes whose second view is in the cluster of i's first."""
    similarity = torch.exp(F.normalize(u) @ F.normalize(v).t() / tau)
    same = clusters_u.unsqueeze(1) == clusters_v.unsqueeze(0)
    same = same | torch.eye(len(u), dtype=torch.bool)
    loss = -torch.log(similarity.diag() / (similarity * same).sum(1))
    return (loss * (clusters_u == clusters_v)).mean()


def sinkhorn(scores: Tensor, iterations: int = 3, temperature: float = 0.1) -> Tensor:
    """SwAV's assignment: rows of the result sum to 1, columns nearly to B/K."""
    q = torch.exp(scores / temperature).t()
    clusters, rows = q.shape
    q = q / q.sum()
    for _ in range(iterations):
        q = q / q.sum(1, keepdim=True) / clusters
        q = q / q.sum(0, keepdim=True) / rows
    return (q * rows).t()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of the paper that a step depends on, by our names."""

    hidden_channels: int = 300
    num_layers: int = 3
    batch_norm: bool = True
    last_activation: bool = False
    lr: float = 1e-2
    weight_decay: float = 0.0
    tau: float = 0.5
    mask_features_1: float = 0.2
    mask_features_2: float = 0.3
    drop_edges_1: float = 0.2
    drop_edges_2: float = 0.3
    epsilon: float = 1e-3
    ascent_steps: int = 3
    gamma: float = 0.1
    cmi_tau: float = 1.0
    clusters: int = 100
    prototype_steps: int = 10
    prototype_lr: float = 1e-3
    prototype_tau: float = 1.0

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Settings":
        """From all the settings of ours; a value that this reference does not know is refused, not ignored."""
        fixed = {
            "encoder": "gcn",
            "dropout": 0.0,
            "schedule": "constant",
            "warmup": 0,
            "patience": 0,
            "estimator": "info_nce",
            "projector_batch_norm": True,
            "adversarial": True,
            "ascent": "frobenius",
            "perturb": "alpha",
            "conditional": True,
            "cmi_estimator": "info_nce",
            "cmi_negatives": "second",
            "pseudo_labels": "argmax",
            "prototype_optimizer": "adam",
            "prototype_weight_decay": 0.0,
            "sinkhorn_iterations": 3,
            "sinkhorn_temperature": 0.1,
            "projector_moves": "outer",
            "anchors": 0,
            "precision": "float32",
            "compiled": False,
            "gather": False,
        }
        for name, value in fixed.items():
            if name in given and given[name] != value:
                raise ValueError(f"the reference has {name}={value!r} only, got {given[name]!r}")
        return cls(**{name: given[name] for name in cls.__dataclass_fields__ if name in given})


class Encoder(nn.Module):
    def __init__(self, features: int, settings: Settings) -> None:
        super().__init__()
        widths = [features] + [settings.hidden_channels] * settings.num_layers
        self.convs = nn.ModuleList(GCNConv(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(settings.hidden_channels) if settings.batch_norm else nn.Identity() for _ in self.convs
        )
        self.last_activation = settings.last_activation

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            x = norm(conv(x, edge_index))
            if i < len(self.convs) - 1 or self.last_activation:
                x = F.relu(x)
        return x


class Projector(nn.Module):
    def __init__(self, hidden_channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(hidden_channels, hidden_channels),
            nn.BatchNorm1d(hidden_channels),
            nn.ReLU(),
            nn.Linear(hidden_channels, hidden_channels),
        )

    def forward(self, h: Tensor) -> Tensor:
        return self.layers(h)


class Prototypes(nn.Module):
    def __init__(self, clusters: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(F.normalize(nn.init.xavier_uniform_(torch.empty(clusters, dim)), dim=1))

    def forward(self, z: Tensor) -> Tensor:
        return F.normalize(z, dim=1) @ F.normalize(self.weight, dim=1).t()


class PlainMARIO(nn.Module):
    """Algorithm 1, line by line; parameters have the names that ours have, so that weights can be copied."""

    def __init__(self, features: int, settings: Settings, again: str = "encoder") -> None:
        super().__init__()
        self.settings, self.again = settings, again
        self.encoder_ = Encoder(features, settings)
        self.projector_ = Projector(settings.hidden_channels)
        self.prototypes_ = Prototypes(settings.clusters, settings.hidden_channels)

    def optimizer(self) -> torch.optim.Optimizer:
        moved = [*self.encoder_.parameters(), *self.projector_.parameters()]
        return torch.optim.Adam(moved, lr=self.settings.lr, weight_decay=self.settings.weight_decay)

    def encode(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.projector_(self.encoder_(x, edge_index))

    def step(self, x: Tensor, edge_index: Tensor, generator: torch.Generator, start: Start | None = None) -> float:
        """Add the gradients of one step; the randomness is drawn in the order in which ours draws it.

        ``start`` draws δ₀, uniform within ε, in another way than at once.
        """
        s = self.settings
        x_a, edges_a = draw_view(x, edge_index, s.mask_features_1, s.drop_edges_1, generator)
        x_b, edges_b = draw_view(x, edge_index, s.mask_features_2, s.drop_edges_2, generator)
        self.move_prototypes(x_a, edges_a, x_b, edges_b)
        delta = (start or uniform)(x, s.epsilon, generator)
        total = 0.0
        for _ in range(s.ascent_steps):
            delta.requires_grad_()
            u, v = self.encode(x_a + delta, edges_a), self.encode(x_b, edges_b)
            with torch.no_grad():
                clusters_u, clusters_v = self.prototypes_(u).argmax(1), self.prototypes_(v).argmax(1)
            loss = info_nce(u, v, s.tau) - s.gamma * conditional_mi(u, v, clusters_u, clusters_v, s.cmi_tau)
            (loss / s.ascent_steps).backward()
            total += loss.item() / s.ascent_steps
            gradient = delta.grad
            assert gradient is not None
            delta = delta.detach() + s.epsilon * gradient / gradient.norm()
        return total

    def move_prototypes(self, x_a: Tensor, edges_a: Tensor, x_b: Tensor, edges_b: Tensor) -> None:
        """Line 4: l steps on the swapped prediction with a fixed encoder."""
        s = self.settings
        optimizer = torch.optim.Adam(self.prototypes_.parameters(), lr=s.prototype_lr)
        again = self._embeddings(x_a, edges_a, x_b, edges_b)
        for _ in range(s.prototype_steps):
            optimizer.zero_grad()
            z_a, z_b = again()
            scores_a, scores_b = self.prototypes_(z_a), self.prototypes_(z_b)
            with torch.no_grad():
                q_a, q_b = sinkhorn(scores_a), sinkhorn(scores_b)
            loss_a = -(q_b * F.log_softmax(scores_a / s.prototype_tau, dim=1)).sum(1)
            loss_b = -(q_a * F.log_softmax(scores_b / s.prototype_tau, dim=1)).sum(1)
            ((loss_a + loss_b) / 2).mean().backward()
            optimizer.step()
            with torch.no_grad():
                self.prototypes_.weight.copy_(F.normalize(self.prototypes_.weight, dim=1))
        # What autograd left in the network on the way is no part of the encoder's step.
        for parameter in self.parameters():
            parameter.grad = None

    def _embeddings(
        self, x_a: Tensor, edges_a: Tensor, x_b: Tensor, edges_b: Tensor
    ) -> Callable[[], tuple[Tensor, Tensor]]:
        if self.again == "encoder":
            return lambda: (self.encode(x_a, edges_a), self.encode(x_b, edges_b))
        with torch.no_grad():
            h_a, h_b = self.encoder_(x_a, edges_a), self.encoder_(x_b, edges_b)
        if self.again == "projector":
            return lambda: (self.projector_(h_a), self.projector_(h_b))
        with torch.no_grad():
            z_a, z_b = self.projector_(h_a), self.projector_(h_b)
        return lambda: (z_a, z_b)


def uniform(x: Tensor, epsilon: float, generator: torch.Generator) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype).uniform_(-epsilon, epsilon, generator=generator)


def draw_view(
    x: Tensor, edge_index: Tensor, mask: float, drop: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Feature columns masked and edges dropped, in copies."""
    if mask:
        x = x.masked_fill(torch.rand(x.size(1), generator=generator) < mask, 0)
    if drop:
        edge_index = edge_index[:, torch.rand(edge_index.size(1), generator=generator) >= drop]
    return x, edge_index


def first_head(width: int, classes: int, seed: int) -> nn.Linear:
    head = nn.Linear(width, classes)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in (head.weight, head.bias):
            first = torch.empty(part.shape, dtype=torch.float32)
            part.copy_(first.uniform_(-(width**-0.5), width**-0.5, generator=generator))
    return head


def linear_head(
    embed: Callable[[], Tensor], y: Tensor, train: Tensor, classes: int, *, epochs: int, lr: float, seed: int = 0
) -> Tensor:
    """Logits of all nodes by a linear layer trained by Adam; ``embed`` is called in every step, as released."""
    head = first_head(embed().size(1), classes, seed)
    optimizer = torch.optim.Adam(head.parameters(), lr=lr)
    for _ in range(epochs):
        with torch.no_grad():
            z = embed()
        optimizer.zero_grad()
        F.cross_entropy(head(z)[train], y[train]).backward()
        optimizer.step()
    with torch.no_grad():
        return head(embed())
