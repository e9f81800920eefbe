"""``MARIO(**RELEASED)`` against a training step written from the formulas of the authors' released code, in float64."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

import mario
from mario.methods import RELEASED

from .tiny import tiny_graph

LAYERS, TAU, GAMMA, EPSILON, CLUSTERS = 2, 0.2, 0.3, 0.05, 5
LR, PROTOTYPE_LR, PROTOTYPE_STEPS, ASCENT_STEPS = 0.01, 0.02, 10, 3


class Written:
    """The released step with dense matrices and plain autograd. Weights have the names that ours have."""

    def __init__(self, model: mario.MARIO) -> None:
        self.state = {name: value.detach().clone() for name, value in model.state_dict().items()}
        for name in dict(model.named_parameters()):
            self.state[name].requires_grad_()
        self.encoder = [value for name, value in self.parameters() if name.startswith("encoder_.")]
        self.projector = [value for name, value in self.parameters() if name.startswith("projector_.")]
        self.optimizer = torch.optim.Adam(self.encoder, lr=LR)  # neither projector nor prototypes

    def parameters(self) -> list[tuple[str, Tensor]]:
        return [(name, value) for name, value in self.state.items() if value.requires_grad]

    def batch_norm(self, h: Tensor, name: str) -> Tensor:
        mean, variance = self.state[f"{name}.running_mean"], self.state[f"{name}.running_var"]
        return F.batch_norm(h, mean, variance, self.state[f"{name}.weight"], self.state[f"{name}.bias"], training=True)

    def encode(self, x: Tensor, propagation: Tensor) -> Tensor:
        for i in range(LAYERS):
            x = propagation @ (x @ self.state[f"encoder_.convs.{i}.lin.weight"].t())
            x = self.batch_norm(x + self.state[f"encoder_.convs.{i}.bias"], f"encoder_.norms.{i}").relu()
        return x

    def project(self, h: Tensor) -> Tensor:
        h = F.linear(h, self.state["projector_.layers.0.weight"], self.state["projector_.layers.0.bias"])
        h = self.batch_norm(h, "projector_.layers.1").relu()
        return F.linear(h, self.state["projector_.layers.3.weight"], self.state["projector_.layers.3.bias"])

    def move_prototypes(self, alpha: tuple[Tensor, Tensor], beta: tuple[Tensor, Tensor]) -> None:
        """Ten steps of a new Adam on prototypes and projector; prototypes are scaled outside autograd."""
        prototypes = self.state["prototypes_.weight"]
        with torch.no_grad():
            h_alpha, h_beta = self.encode(*alpha), self.encode(*beta)
        groups = [{"params": [prototypes], "weight_decay": 1e-5}, {"params": self.projector}]
        optimizer = torch.optim.Adam(groups, lr=PROTOTYPE_LR)
        for _ in range(PROTOTYPE_STEPS):
            optimizer.zero_grad()
            prototypes.data = F.normalize(prototypes.data)
            scores = [F.normalize(self.project(h)) @ prototypes.t() for h in (h_alpha, h_beta)]
            q = [assignment(s.detach()) for s in scores]
            swapped = q[0] * F.log_softmax(scores[1] / TAU, 1) + q[1] * F.log_softmax(scores[0] / TAU, 1)
            (-swapped.sum(1).mean() / 2).backward()
            optimizer.step()
        prototypes.data = F.normalize(prototypes.data)

    def loss(self, alpha: tuple[Tensor, Tensor], beta: tuple[Tensor, Tensor]) -> Tensor:
        """InfoNCE in both directions minus γ times the conditional term, as means over nodes."""
        u, v = (F.normalize(self.project(self.encode(*view))) for view in (alpha, beta))
        contrast = (one_direction(u, v) + one_direction(v, u)) / 2
        with torch.no_grad():
            y_u, y_v = (assignment(z @ self.state["prototypes_.weight"].t()).argmax(1) for z in (u, v))
        pairs = (u @ v.t()).exp()
        together = (y_v.unsqueeze(1) == y_u.unsqueeze(0)) | torch.eye(len(u), dtype=torch.bool)
        conditional = -(pairs.diag() / (pairs * together).sum(1)).log() * (y_u == y_v)
        return (contrast - GAMMA * conditional).mean()

    def step(self, alpha: Data, beta: Data, delta: Tensor) -> None:
        a, b = propagation(alpha), propagation(beta)
        self.move_prototypes((alpha.x, a), (beta.x, b))
        self.optimizer.zero_grad()
        for _ in range(ASCENT_STEPS):
            delta = delta.detach().requires_grad_()
            (self.loss((alpha.x + delta, a), (beta.x, b)) / ASCENT_STEPS).backward()
            assert delta.grad is not None
            delta = delta + EPSILON * delta.grad.sign()
        self.optimizer.step()


def propagation(view: Data) -> Tensor:
    """D^-1/2 (A + I) D^-1/2, one row per receiving node."""
    adjacency = torch.eye(view.num_nodes, dtype=torch.float64)
    adjacency.index_put_((view.edge_index[1], view.edge_index[0]), torch.ones((), dtype=torch.float64), accumulate=True)
    scale = adjacency.sum(1).rsqrt()
    return scale.unsqueeze(1) * adjacency * scale


def one_direction(u: Tensor, v: Tensor) -> Tensor:
    within, between = (u @ u.t() / TAU).exp(), (u @ v.t() / TAU).exp()
    return -(between.diag() / (within.sum(1) + between.sum(1) - within.diag())).log()


def assignment(scores: Tensor) -> Tensor:
    """Sinkhorn's assignment [N, K]: three rounds of even columns, then rows that sum to one."""
    q = (scores / 0.1).exp()
    q = q / q.sum()
    for _ in range(3):
        q = q / q.sum(0) / q.size(1)
        q = q / q.sum(1, keepdim=True) / q.size(0)
    return q * q.size(0)


def pair(**settings: object) -> tuple[mario.MARIO, Data, Written]:
    """Our model, its graph, and the step written out, with the same weights."""
    chosen = {"hidden_channels": 8, "num_layers": LAYERS, "lr": LR, "gamma": GAMMA, "epsilon": EPSILON}
    chosen |= {
        "last_activation": True,
        "clusters": CLUSTERS,
        "prototype_lr": PROTOTYPE_LR,
        "prototype_steps": PROTOTYPE_STEPS,
    }
    model = mario.MARIO(**{**RELEASED, **chosen, **settings})
    graph = model.prepare(tiny_graph(), seed=0)
    model.double().train()
    model.prototypes_.normalize_()  # in float64 now
    graph.x = graph.x.double()
    return model, graph, Written(model)


def take_steps(steps: int, **settings: object) -> dict[str, float]:
    """The largest difference in each weight, gradient of the encoder, and running statistic of the encoder."""
    model, graph, written = pair(**settings)
    optimizer = model.optimizer()
    for step in range(steps):
        draws = torch.Generator().manual_seed(step)
        alpha, beta = model.make_views(graph, draws)
        delta = torch.empty_like(alpha.x).uniform_(-EPSILON, EPSILON, generator=draws)
        written.step(alpha, beta, delta)
        optimizer.zero_grad()
        model.step(graph, torch.Generator().manual_seed(step))
        optimizer.step()
    skipped = ["num_batches_tracked", "projector_.layers.1.running"]  # ours runs the projector once more, for the log
    # Batch norm cancels the bias before it. Its gradient is rounding error, of which Adam makes a step.
    skipped += ["convs.0.bias", "convs.1.bias", "layers.0.bias"] + (["running_mean"] if steps > 1 else [])
    gaps = {
        name: (value - written.state[name]).abs().max().item()
        for name, value in model.state_dict().items()
        if not any(part in name for part in skipped)
    }
    for name, p in model.named_parameters():
        if name.startswith("encoder_."):
            assert p.grad is not None
            gaps[f"gradient of {name}"] = (p.grad - written.state[name].grad).abs().max().item()
    return gaps


@pytest.mark.parametrize("steps", [1, 3])
def test_steps_are_those_of_the_released_code(steps: int) -> None:
    gaps = take_steps(steps)
    assert {"prototypes_.weight", "projector_.layers.0.weight", "encoder_.norms.1.running_var"} <= gaps.keys()
    assert max(gaps.values()) < 1e-12, gaps


def test_the_gradient_along_the_sphere_is_another_step() -> None:
    assert take_steps(1, prototype_gradient="sphere")["prototypes_.weight"] > 1e-3
