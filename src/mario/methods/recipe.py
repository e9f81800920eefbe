"""The recipe: MARIO over any method that contrasts two views."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from mario import ranks
from mario.contrast import Prototypes, conditional_mi, sinkhorn
from mario.contrast.across_ranks import gathered
from mario.contrast.estimators import Names
from mario.encoders.norm import NotedStatistics
from mario.encoders.size import check_size
from mario.errors import MarioError
from mario.graphs import column_std
from mario.graphs.features import Features, is_wide
from mario.methods.base import Method
from mario.methods.grace import GRACE
from mario.methods.laid_over import laid_over
from mario.methods.registry import REGISTRY, hosts, register
from mario.methods.settings import MOST_PROTOTYPES, MOST_STEPS, setting
from mario.methods.two_view import Side, TwoView, embeddings
from mario.views import AdversarialFeatures


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class WithRecipe(TwoView):
    """The settings and steps that the recipe adds to its host, as a mixin: see :func:`Recipe`.

    Where the paper and the released code differ, a setting has a value for each; docs/paper-and-code.md lists them.
    """

    # fmt: off
    adversarial: bool = setting(True, help="perturb a view adversarially; false is the paper's 'w/o ad'")
    epsilon: float = setting(1e-3, low=0.0, search=(1e-4, 1e-3, 1e-2), help="ε: size of the start and of an ascent step")
    epsilon_unit: str = setting("absolute", choices=("absolute", "std"), help="unit of ε: 1 (paper), or each feature's standard deviation in the batch, with a sign step")
    ascent_steps: int = setting(3, low=1, high=MOST_STEPS, search=(1, 3, 5), help="M: ascent steps, each a backward pass")
    ascent: str = setting("frobenius", choices=("frobenius", "sign", "projected_sign"), help="ε·∇/‖∇‖_F (paper), ε·sign(∇) (released), or the latter within |δ| ≤ ε")
    ascent_gradients: str = setting("every", choices=("every", "last"), help="passes that train: all M, from the start on (paper), or one more after M ascent steps")
    perturb: str = setting("alpha", choices=("alpha", "both"), help="the view that is perturbed")
    conditional: bool = setting(True, help="subtract conditional mutual information; false is 'w/o cmi'")
    gamma: float = setting(0.1, low=0.0, search=(0.001, 0.01, 0.1, 0.5, 1.0), help="γ: weight of the conditional term")
    cmi_tau: float = setting(1.0, low=1e-6, search=(0.2, 0.5, 1.0), help="temperature of the conditional term")
    cmi_estimator: str = setting("info_nce", choices=Names(conditional=True), help="its estimator")
    cmi_negatives: str = setting("second", choices=("second", "first"), help="view in which a negative is in the cluster: second (paper), first (released)")
    pseudo_labels: str = setting("argmax", choices=("argmax", "sinkhorn"), help="argmax of Cᵀu (paper) or of Sinkhorn's Q (released)")
    clusters: int = setting(100, low=1, high=MOST_PROTOTYPES, search=(10, 50, 100, 200, 300), help="|C|: number of prototypes")
    prototype_steps: int = setting(10, low=0, high=MOST_STEPS, search=(1, 5, 10, 20), help="l: prototype steps before each encoder step")
    prototype_lr: float = setting(1e-3, low=0.0, search=(1e-3, 1e-4, 1e-5), help="learning rate of the prototypes")
    prototype_optimizer: str = setting("adam", choices=("adam", "sgd"), help="a new one for each l steps, as released")
    prototype_weight_decay: float = setting(0.0, low=0.0, search=(0.0, 1e-5), help="0 (paper), 1e-5 (released)")
    prototype_tau: float = setting(1.0, low=1e-6, search=(0.1, 0.2, 0.5, 1.0), help="temperature of swapped prediction: 1 (paper), τ (released)")
    prototype_gradient: str = setting("sphere", choices=("sphere", "raw"), help="through the scaling of prototypes to unit length (paper), or of the raw weights, scaled outside autograd (released)")
    sinkhorn_iterations: int = setting(3, low=1, high=MOST_STEPS, help="iterations of Sinkhorn-Knopp")
    sinkhorn_temperature: float = setting(0.1, low=1e-6, help="entropy of Sinkhorn's plan")
    projector_moves: str = setting("outer", choices=("outer", "inner", "both"), help="projector moves with the encoder (paper), with the prototypes (released), or both; no effect on a host without one")
    # fmt: on

    host: ClassVar[bool] = False

    def check_together(self) -> None:
        super().check_together()
        if self.epsilon_unit == "std" and self.ascent == "frobenius":
            raise MarioError("epsilon_unit='std' needs ascent='projected_sign' or 'sign', got 'frobenius'")
        if self.conditional and not self.aligned:
            raise MarioError(
                f"{self.name} has no two embedding matrices whose rows are the same nodes, so there is nothing to "
                "condition on: use conditional=False"
            )

    def build(self, in_channels: int, num_classes: int) -> None:
        super().build(in_channels, num_classes)
        if self.conditional:
            gradient = self.prototype_gradient
            check_size("the prototypes", [self.contrast_width, self.clusters])
            self.prototypes_ = Prototypes(self.clusters, self.contrast_width, gradient=gradient)  # type: ignore[arg-type]

    def trained(self) -> list[nn.Parameter]:
        names = ["prototypes_."] + (["projector_."] if self.projector_moves == "inner" and self.conditional else [])
        own = {id(p) for name, p in self.named_parameters() if name.startswith(tuple(names))}
        return [p for p in super().trained() if id(p) not in own]

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        """Lines 2 to 15 of Algorithm 1."""
        if not (self.adversarial or self.conditional):
            return super().step(batch, generator)
        alpha, beta = self.make_views(batch, generator)
        with_projector = self.conditional and self.projector_moves != "outer" and hasattr(self, "projector_")
        figures = self.move_with_projector(alpha, beta, generator) if with_projector else {}
        cluster = self.conditional and not with_projector
        if not self.adversarial:
            sides = self.lean_encode(alpha, generator), self.lean_encode(beta, generator)
            if cluster:
                figures, _ = self.move_prototypes(*map(embeddings, sides))
            loss = self.robust_loss(*sides, generator)
            loss.backward()
            return {"loss": loss.item(), **figures}
        for view in (alpha, beta) if self.perturb == "both" else (alpha,):
            if self.takes_features and isinstance(view.x, Tensor) and is_wide(view.x):
                view.x = Features(view.x)  # δ is kept in factors then
        adversary = AdversarialFeatures(
            self.epsilon if self.epsilon_unit == "absolute" else self.epsilon * column_std(batch.x),
            self.ascent_steps,
            self.ascent,  # type: ignore[arg-type]
            gradients=self.ascent_gradients,  # type: ignore[arg-type]
        )
        if self.perturb == "both":
            if cluster:
                with torch.no_grad():
                    figures, _ = self.move_prototypes(*(embeddings(self.encode(v, generator)) for v in (alpha, beta)))
            losses = adversary.ascend(
                lambda a, b: self.robust_loss(
                    self.lean_encode(a, generator), self.lean_encode(b, generator), generator
                ),
                [alpha, beta],
                generator,
            )
        else:
            # β and the encoder do not change while prototypes move and δ ascends. One forward pass serves both (with one
            # draw of dropout), and one backward pass too, as it is linear in the gradient that reaches this side. In the
            # running statistics of batch norm, β counts as often as if it had passed each time after α.
            with NotedStatistics(self) as noted:
                side = self.lean_encode(beta, generator)
            noted.undo()
            known = None
            if cluster:
                with torch.no_grad():
                    clean = embeddings(self.encode(alpha, generator))
                figures, known = self.move_prototypes(clean, embeddings(side))
                noted.again()
            elif self.conditional:
                known = self.cluster_of(embeddings(side))
            reached = _cut(side)
            contrast, finish = self.contrast_with(reached, generator)

            def perturbed(view: Data) -> Tensor:
                moved = self.lean_encode(view, generator)
                noted.again()
                return self._minus_conditional(contrast, moved, reached, known)

            losses = adversary.ascend(perturbed, [alpha], generator)
            finish()
            _go_back(side, reached)
        return {"loss": torch.stack(losses).mean().item(), **figures}

    def robust_loss(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        """L_rob = L_MI − γ·L_CMI."""
        return self._minus_conditional(lambda a: self.contrast(a, beta, generator), alpha, beta)

    def _minus_conditional(
        self, contrast: Callable[[Side], Tensor], alpha: Side, beta: Side, clusters_beta: Tensor | None = None
    ) -> Tensor:
        if not self.conditional:
            return contrast(alpha)
        u, v = embeddings(alpha), embeddings(beta)
        clusters = self.cluster_of(u), self.cluster_of(v) if clusters_beta is None else clusters_beta
        return contrast(alpha) - self.gamma * self.conditional_term(u, v, clusters)

    def conditional_term(
        self, z_alpha: Tensor, z_beta: Tensor, clusters: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """L_CMI, given the clusters in which the prototypes put both views."""
        first, second = clusters or (self.cluster_of(z_alpha), self.cluster_of(z_beta))
        if getattr(self, "gather", False):
            z_alpha, z_beta = gathered(z_alpha), gathered(z_beta)
            first, second = ranks.rows(first), ranks.rows(second)
        return conditional_mi(
            z_alpha,
            z_beta,
            first,
            second,
            self.cmi_tau,
            estimator=self.cmi_estimator,
            negatives=self.cmi_negatives,
        )

    @torch.no_grad()
    def cluster_of(self, z: Tensor) -> Tensor:
        """Ŷ, the pseudo-label of every row."""
        if self.pseudo_labels == "sinkhorn":
            return sinkhorn(self.prototypes_(z), **self._entropy).argmax(1)
        return self.prototypes_.assign(z)

    @torch.no_grad()
    def move_prototypes(self, u: Tensor, v: Tensor) -> tuple[dict[str, float], Tensor]:
        """C ← argmin L_clu by l steps with a fixed encoder (line 4), so that Z is computed once.

        Returns figures for the log, and Ŷ of the second view.
        """
        optimizer = self._prototype_optimizer([])
        steps = self.prototype_steps
        return self._figures(*self.prototypes_.descend(u, v, optimizer, steps, self.prototype_tau, **self._entropy))

    def move_with_projector(self, alpha: Data, beta: Data, generator: torch.Generator) -> dict[str, float]:
        """The same with a projector that is trained too, as in the released code, so that Z changes."""
        with torch.no_grad():
            h_u, h_v = self.represent(alpha, generator), self.represent(beta, generator)
        projector: Any = self.projector_
        optimizer = self._prototype_optimizer(list(projector.parameters()))
        loss = h_u.new_zeros(())
        for _ in range(self.prototype_steps):
            optimizer.zero_grad(set_to_none=True)
            z_u, z_v = self.project(h_u, generator), self.project(h_v, generator)
            loss = self.prototypes_.loss(z_u, z_v, self.prototype_tau, **self._entropy)
            loss.backward()
            ranks.sum_gradients(p for group in optimizer.param_groups for p in group["params"])
            optimizer.step()
            self.prototypes_.normalize_()
        optimizer.zero_grad(set_to_none=True)  # else the encoder step would add to the last gradient of the projector
        with torch.no_grad():
            scores_u, scores_v = (self.prototypes_(self.project(h, generator)) for h in (h_u, h_v))
            return self._figures(scores_u, scores_v, loss.detach())[0]

    def _prototype_optimizer(self, projector: list[nn.Parameter]) -> torch.optim.Optimizer:
        groups: list[dict[str, Any]] = [
            {"params": list(self.prototypes_.parameters()), "weight_decay": self.prototype_weight_decay}
        ]
        if projector:
            groups.append({"params": projector, "weight_decay": 0.0})
        maker = torch.optim.Adam if self.prototype_optimizer == "adam" else torch.optim.SGD
        return maker(groups, lr=self.prototype_lr, fused=True)

    @property
    def _entropy(self) -> dict[str, Any]:
        return {"iterations": self.sinkhorn_iterations, "temperature": self.sinkhorn_temperature}

    def _figures(self, scores_u: Tensor, scores_v: Tensor, loss: Tensor) -> tuple[dict[str, float], Tensor]:
        """L_clu before the last step, and statistics of the pseudo-labels after it; then Ŷ of the second view."""
        by = (scores_u, scores_v)
        if self.pseudo_labels == "sinkhorn":
            by = (sinkhorn(scores_u, **self._entropy), sinkhorn(scores_v, **self._entropy))
        clusters_u, clusters_v = (part.argmax(1) for part in by)
        figures = {
            **({"clustering": loss.item()} if self.prototype_steps else {}),
            "clusters_used": int(clusters_u.bincount().count_nonzero()) / self.clusters,
            "clusters_agree": (clusters_u == clusters_v).float().mean().item(),
        }
        return figures, clusters_v

    @torch.no_grad()
    def diagnostics(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        """Those of the host, the two terms of the loss, and how many clusters are in use."""
        figures = super().diagnostics(batch, generator)
        if self.conditional:
            self.eval()
            alpha, beta = (self.encode(view) for view in self.make_views(batch, generator))
            self.train()
            u, v = embeddings(alpha), embeddings(beta)
            sizes = self.cluster_of(u).bincount(minlength=self.clusters).float()
            shares = sizes[sizes > 0] / sizes.sum()
            figures |= {
                "mi_loss": self.contrast(alpha, beta, generator).item(),
                "cmi_loss": self.conditional_term(u, v).item(),
                "clusters_used": (sizes > 0).float().mean().item(),
                "cluster_perplexity": (-(shares * shares.log()).sum()).exp().item() / self.clusters,
            }
        return figures


def _cut(side: Side) -> Side:
    """``side`` detached from the graph of autograd; tensors that had a gradient collect one of their own."""
    if isinstance(side, Tensor):
        return side.detach().requires_grad_(side.requires_grad)
    return tuple(part.detach().requires_grad_(part.requires_grad) for part in side)


def _go_back(side: Side, reached: Side) -> None:
    """Propagate the gradients that a detached side collected."""
    made, cut = ((side,), (reached,)) if isinstance(side, Tensor) else (side, reached)
    pairs = [(m, c.grad) for m, c in zip(made, cut, strict=True) if c.grad is not None]
    if pairs:
        torch.autograd.backward([m for m, _ in pairs], [g for _, g in pairs])


@register("mario")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class MARIO(WithRecipe, GRACE):
    """MARIO (Zhu et al., WWW 2024): the recipe over GRACE.

    ``adversarial=False`` is the paper's ablation `w/o ad`, ``conditional=False`` is `w/o cmi`; with both, the steps are
    those of GRACE to the bit. ``MARIO(**RELEASED)`` follows the authors' released code where it differs, and
    ``MARIO(**STRONG)`` has an adversary that changes the features by more than the paper's.

    ``encoder``, ``projector`` and ``views`` take your own modules and transforms:
    ``MARIO(encoder=torch_geometric.nn.GraphSAGE(4, 64, num_layers=2))``.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> MARIO(hidden_channels=16, clusters=5, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """


RELEASED: dict[str, Any] = {
    "tau": 0.2,
    "ascent": "sign",
    "projector_moves": "inner",
    "pseudo_labels": "sinkhorn",
    "cmi_negatives": "first",
    "prototype_tau": 0.2,
    "prototype_gradient": "raw",
    "prototype_weight_decay": 1e-5,
    "schedule": "steps",
}
"""Settings for which MARIO follows the authors' released code where it differs from the paper.

There `prototype_tau` is `tau`: if you change one (0.5 on WebKB), change both."""


STRONG: dict[str, Any] = {
    "epsilon": 0.3,
    "epsilon_unit": "std",
    "ascent": "projected_sign",
    "ascent_steps": 1,
    "ascent_gradients": "last",
}
"""Settings of an adversary that moves each feature by up to 0.3 of its standard deviation.

The paper's step has length ε = 1e-3 over the whole matrix of features, so that an entry hardly changes. Here every entry
moves: from a random start, one sign step that stays within the bound, then the pass that trains. Without the conditional
term, a step has one pass more than GRACE's. Use it over any host, ``Recipe(host, **STRONG)``, with or without
``conditional=False``."""


def Recipe(host: TwoView, **settings: Any) -> TwoView:  # noqa: N802 (it reads as the thing it makes)
    """``host`` with MARIO's recipe laid over it (Zhu et al., WWW 2024).

    Two things change. One view is perturbed adversarially within ε, so that views are aligned in the worst case and not
    only on average. And information that the views share beyond cluster membership is penalized:
    L_rob = L_MI − γ·L_CMI. Before each encoder step, the prototypes of the clusters are trained for ``prototype_steps``
    steps with a fixed encoder (bi-level training, Algorithm 1).

    Example:
        >>> import mario
        >>> type(mario.Recipe(mario.GRACE(hidden_channels=16), gamma=0.2)).__name__
        'MARIO'
    """
    if isinstance(host, type):
        raise MarioError(f"the recipe takes a method, got the class {host.__name__}: use {host.__name__}()")
    if not isinstance(host, Method):
        raise MarioError(f"the recipe takes a method such as GRACE(), got {host!r}")
    return with_recipe(type(host)).from_settings({**host.get_params(), **settings})  # type: ignore[return-value]


_OVER: dict[type[Method], type[Method]] = {GRACE: MARIO}


def __getattr__(name: str) -> Any:
    """``COSTAWithRecipe`` and so on: pickle looks for a class in its module."""
    for host in hosts():
        if name == f"{REGISTRY[host].__name__}WithRecipe":
            return with_recipe(REGISTRY[host])
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def with_recipe(host: type[Method]) -> type[Method]:
    """The class of ``host`` with the recipe, called ``HOST+mario``; over GRACE it is :class:`MARIO`."""
    if host not in _OVER:
        if issubclass(host, WithRecipe):
            raise MarioError(f"{host.name} has the recipe already")
        if not host.host:
            able = ", ".join(hosts())
            raise MarioError(
                f"the recipe needs a method that contrasts two views, which {host.name} does not; there are {able}"
            )
        fixed = {}
        if not getattr(host, "aligned", True):
            fixed["conditional"] = (bool, False, {"help": "no pairs of rows to condition on: always false"})
        names = {"name": f"{host.name}+mario", "class_name": f"{host.__name__}WithRecipe", "module": __name__}
        _OVER[host] = laid_over(WithRecipe, host, **names, fixed=fixed)
    return _OVER[host]
