"""Explore-to-extrapolate risk minimization."""

import copy
import dataclasses
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from mario.encoders.apply import dense, encode
from mario.graphs.features import Features, is_wide
from mario.graphs.subgraph import subgraph
from mario.methods.classifier import Classifier
from mario.methods.registry import register
from mario.methods.settings import MOST_STEPS, setting


@register("eerm")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class EERM(Classifier):
    """Handling Distribution Shifts on Graphs: An Invariance Perspective (Wu et al., ICLR 2022).

    Generators edit the graph until the risks differ, and the model must do equally well on all edited graphs.

    Each of K generators flips ``edits`` edges into every node, with sources drawn from a softmax. REINFORCE moves the
    generators towards a higher variance of the K risks; the model then descends on variance + β · mean (Eq. 6).
    Generators are reset at every optimizer step, as in the authors' code for Amazon-Photo, and so get
    ``inner_steps`` - 1 updates before the model learns from their graphs. With ``outer="first"`` they get none, and
    further inner steps, which would have no effect, are skipped.

    Up to ``exact_nodes`` nodes in a batch, a generator has a logit for each pair of nodes. Above, it has logits for
    ``candidates`` sources per node, drawn uniformly at each step: the objective is the same, and so is the distribution
    of the edits before the first update. Generators that are never updated draw uniformly from all nodes and have no
    logits. No graph is made dense, and the gradient of one risk is computed before the next graph is encoded, so that
    memory does not grow with K.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> EERM(hidden_channels=16, generators=3, epochs=1, steps_per_epoch=1).fit(data).predict(data).shape
        torch.Size([700, 4])
    """

    # fmt: off
    generators: int = setting(10, low=2, high=MOST_STEPS, search=(3, 5, 10), help="K, context generators, each with its own edited graph")
    inner_steps: int = setting(1, low=1, high=MOST_STEPS, search=(1, 5), help="T, draws of the K graphs, with an update of the generators between two draws")
    edits: int = setting(1, low=0, search=(1, 2, 5), help="edges into each node that a generator flips")
    generator_lr: float = setting(1e-2, low=0.0, search=(1e-4, 1e-3, 5e-3, 1e-2), help="learning rate of the generators, which are updated only if inner_steps > 1")
    beta: float = setting(1.0, low=0.0, search=(0.5, 1.0, 3.0), help="weight of the mean risk beside the variance")
    beta_growth: float = setting(1.0, low=0.0, search=(1.0, 10.0), help="factor by which beta has grown, linearly, at the end of training; 10 in GOOD")
    outer: str = setting("last", choices=("last", "first"), help="inner step whose graphs the model learns from; first as in the authors' code")
    edited: str = setting("graph", choices=("graph", "training_nodes"), help="the whole batch, or only the subgraph of its training nodes as in GOOD")
    self_loops: bool = setting(False, search=(False, True), help="flip edges from a node to itself too, as in the authors' code")
    exact_nodes: int = setting(1000, low=0, help="nodes in a batch up to which any edge may be flipped")
    candidates: int = setting(64, low=1, search=(16, 64, 256), help="nodes that a flipped edge may come from in larger batches")
    # fmt: on

    levels: ClassVar[tuple[str, ...]] = ("node",)
    uses_edge_data: ClassVar[bool] = False
    """Edges that a generator puts in have neither weights nor attributes."""

    def build(self, in_channels: int, num_classes: int) -> None:
        super().build(in_channels, num_classes)
        self.register_buffer("progress_", torch.zeros(()))

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        if self.edited == "training_nodes":
            batch = subgraph(batch, batch.train_mask)
        known = self.labeled(batch)
        if not known.any() or known.numel() < 2:  # a sampled subgraph may have no training node
            return {}
        if is_wide(batch.x):  # all graphs have the same features, which are multiplied or made dense once
            batch = copy.copy(batch)
            batch.x = Features(batch.x) if self.takes_features else dense(batch.x)
        return self.descend(batch, known, self.explore(batch, known, generator), generator)

    def explore(self, batch: Data, known: Tensor, generator: torch.Generator) -> Tensor:
        """The sources of flipped edges, [K, nodes, edits], from generators trained on this batch."""
        nodes = known.numel()
        updates = self.inner_steps - 1 if self.outer == "last" else 0
        if not updates:  # logits that were never updated
            return draw_uniformly(self.generators, nodes, self.edits, generator).to(known.device)
        allowed = candidate_nodes(nodes, nodes if nodes <= self.exact_nodes else self.candidates, generator)
        allowed = allowed.to(known.device).expand(self.generators, -1, -1)
        logits = torch.rand(allowed.shape, generator=generator).to(known.device).requires_grad_()
        ascent = torch.optim.AdamW([logits], lr=self.generator_lr)
        for _ in range(updates):
            picks = draw(logits, self.edits, generator)
            with torch.no_grad():
                sources = allowed.gather(2, picks)
                risks = torch.stack([self.risk(batch, known, source, generator) for source in sources])
            ascent.zero_grad()
            (-risks.var() * log_probability(logits, picks)).backward()
            ascent.step()
        return allowed.gather(2, draw(logits, self.edits, generator))

    def risk(self, batch: Data, known: Tensor, source: Tensor, generator: torch.Generator) -> Tensor:
        """Cross-entropy of the training nodes when the edges from ``source[i]`` to node i are flipped."""
        target = torch.arange(known.numel(), device=known.device).unsqueeze(1).expand_as(source)
        flips = torch.stack([source.reshape(-1), target.reshape(-1)])
        if not self.self_loops:
            flips = flips[:, flips[0] != flips[1]]
        edited = Data(x=batch.x, edge_index=flip_edges(batch.edge_index, flips, known.numel()))
        logits = self.head_(encode(self.encoder_, edited, generator))
        return F.cross_entropy(logits[known], batch.y[known])

    def descend(self, batch: Data, known: Tensor, sources: Tensor, generator: torch.Generator) -> dict[str, float]:
        """Gradients of Var(R) + β · mean(R), the variance with K - 1 as in the authors' code."""
        beta = self.beta * (1 + (self.beta_growth - 1) * self.get_buffer("progress_").item())
        parameters = self.trained()
        risks: list[Tensor] = []
        plain = [torch.zeros_like(p) for p in parameters]
        weighted = [torch.zeros_like(p) for p in parameters]
        for source in sources:
            risk = self.risk(batch, known, source, generator)
            gradients = torch.autograd.grad(risk, parameters, materialize_grads=True)
            risks.append(risk.detach())
            # The weight of a risk's gradient, 2 (R_k - mean) / (K - 1) + β / K, contains the mean of all risks, which is
            # not known yet: sums of ∇R_k and of (R_k - R_1) ∇R_k are enough to add it at the end.
            for total, deviation, gradient in zip(plain, weighted, gradients, strict=True):
                total.add_(gradient)
                deviation.add_(gradient * (risks[-1] - risks[0]))
        variance, mean = torch.var_mean(torch.stack(risks))
        spread = 2 / (len(risks) - 1)
        for p, total, deviation in zip(parameters, plain, weighted, strict=True):
            gradient = spread * deviation + (beta / len(risks) - spread * (mean - risks[0])) * total
            p.grad = gradient if p.grad is None else p.grad + gradient
        loss = variance + beta * mean
        return {"loss": loss.item(), "mean": mean.item(), "variance": variance.item()}

    def after_step(self, step: int, total: int) -> None:
        self.get_buffer("progress_").fill_((step + 1) / total)


def candidate_nodes(num_nodes: int, size: int, generator: torch.Generator | None = None) -> Tensor:
    """``size`` distinct nodes for each node, [nodes, size]: all of them in order, or a uniform draw.

    The draw is one set of distances around a ring on which the nodes have random places. Each node's candidates are a
    uniform sample without replacement, at a cost of nodes × size.

    Example:
        >>> candidate_nodes(2, 2)
        tensor([[0, 1],
                [0, 1]])
        >>> candidate_nodes(1000, 8).shape
        torch.Size([1000, 8])
    """
    if size >= num_nodes:
        return torch.arange(num_nodes).expand(num_nodes, num_nodes)
    ring = torch.randperm(num_nodes, generator=generator)
    place = torch.empty_like(ring).scatter_(0, ring, torch.arange(num_nodes))
    distance = torch.randperm(num_nodes, generator=generator)[:size]
    return ring[(place.unsqueeze(1) + distance).remainder(num_nodes)]


def draw_uniformly(generators: int, num_nodes: int, edits: int, generator: torch.Generator | None = None) -> Tensor:
    """``edits`` distinct nodes for each generator and node, [K, nodes, edits], uniform over all such sets.

    Example:
        >>> draw_uniformly(1, 2, 2).sort().values
        tensor([[[0, 1],
                 [0, 1]]])
    """
    picks = torch.empty(generators, num_nodes, 0, dtype=torch.int64)
    for last in range(max(0, num_nodes - edits), num_nodes):  # Floyd's algorithm
        pick = torch.randint(last + 1, (generators, num_nodes, 1), generator=generator)
        picks = torch.cat([picks, torch.where((picks == pick).any(dim=2, keepdim=True), last, pick)], dim=2)
    return picks


def draw(logits: Tensor, edits: int, generator: torch.Generator | None = None) -> Tensor:
    """``edits`` distinct columns for each row of ``logits`` [K, nodes, columns], drawn one after another by its softmax.

    Example:
        >>> draw(torch.tensor([[[0.0, 99.0], [99.0, 0.0]]]), 1)
        tensor([[[1],
                 [0]]])
    """
    p = logits.detach().softmax(dim=2)
    picks = torch.empty(*p.shape[:2], 0, dtype=torch.int64, device=p.device)
    for _ in range(min(edits, p.size(2))):
        # One uniform number per row and the inverse of the distribution function: ten times faster than multinomial.
        mass = p.scatter(2, picks, 0.0).cumsum(dim=2)
        total = mass[..., -1:]
        level = torch.rand(total.shape, generator=generator).to(total) * total
        level = torch.minimum(level, total.nextafter(torch.zeros_like(total)))  # rounded up, it would select no column
        picks = torch.cat([picks, torch.searchsorted(mass, level, right=True)], dim=2)
    return picks


def log_probability(logits: Tensor, picks: Tensor) -> Tensor:
    """Log-probability of the picks of :func:`draw`, in their order: a column that was picked leaves the softmax.

    Example:
        >>> log_probability(torch.zeros(1, 1, 4), torch.tensor([[[2, 0]]])).exp()
        tensor(0.0833)
    """
    log_p = logits.log_softmax(dim=2).gather(2, picks)
    gone = log_p.exp().cumsum(dim=2) - log_p.exp()
    return (log_p - torch.log1p(-gone.clamp(max=1 - 1e-6))).sum()


def flip_edges(edge_index: Tensor, flips: Tensor, num_nodes: int) -> Tensor:
    """A + B ∘ (Ā - A): ``flips`` (distinct) that are edges are removed, the others added. Repeated edges count once.

    Example:
        >>> flip_edges(torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0, 2], [1, 0]]), 3)
        tensor([[1, 2],
                [2, 0]])
    """
    edges = (edge_index[0] * num_nodes + edge_index[1]).unique()
    chosen = flips[0] * num_nodes + flips[1]
    left = edges[~torch.isin(edges, chosen, assume_unique=True)]
    new = chosen[~torch.isin(chosen, edges, assume_unique=True)]
    edges = torch.cat([left, new])
    return torch.stack([edges // num_nodes, edges % num_nodes])
