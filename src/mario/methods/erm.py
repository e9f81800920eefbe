"""Empirical risk minimization."""

import copy
import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from mario.encoders.apply import takes
from mario.errors import MarioError
from mario.graphs.samplers import RandomWalk, Sampler
from mario.methods.classifier import Classifier
from mario.methods.registry import register
from mario.methods.settings import setting
from mario.training.streams import PRE_SAMPLES, stream

_COVERAGE = 100  # how often a node is drawn to estimate the norms; as in GOOD and the released code of MARIO


@register("erm")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class ERM(Classifier):
    """An encoder and a linear head trained with the labels of the training nodes or graphs (Vapnik 1999).

    ``node_norm`` and ``edge_norm`` are the corrections of GraphSAINT (Zeng et al., ICLR 2020) for what random walks
    sample more often, estimated by :class:`mario.graphs.samplers.RandomWalk`. With ``node_norm`` the loss is the sum of
    1/λ_v times the cross-entropy over the training nodes of a batch. With ``edge_norm`` the edge u → v has the weight
    C_v / C_uv (``receiver``) or C_u / C_uv (``sender``). The encoder normalizes these weights as any others, as GOOD
    and the released code of MARIO do, which have ``node_norm=True, edge_norm="sender"``. Only training uses the norms.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> ERM(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).predict(data).shape
        torch.Size([700, 4])
    """

    # fmt: off
    node_norm: bool = setting(False, help="weight the loss of a node by GraphSAINT's node norm (released: true)")
    edge_norm: str = setting("none", choices=("none", "receiver", "sender"), help="weight messages by GraphSAINT's edge norm with the count of the receiver (its paper) or of the sender (PyG; released)")
    # fmt: on

    def check_together(self) -> None:
        super().check_together()
        if self.normalizes and self.sampling != "random_walk":
            raise MarioError(
                f"node_norm and edge_norm need sampling='random_walk', got sampling='{self.sampling}': "
                "use that, or node_norm=False and edge_norm='none'"
            )

    @property
    def normalizes(self) -> bool:
        """Whether any of GraphSAINT's norms is used."""
        return self.node_norm or self.edge_norm != "none"

    def sampler(self, graph: Data) -> Sampler:
        plain = super().sampler(graph)
        if not self.normalizes:
            return plain
        if not isinstance(plain, RandomWalk):
            raise MarioError("node_norm and edge_norm need one graph with random walks, got a set of graphs")
        if self.edge_norm != "none" and not takes(self.encoder_, "edge_weight"):
            raise MarioError(f"edge_norm weights edges, which the encoder {self.encoder} cannot: use edge_norm='none'")
        return RandomWalk(
            graph,
            roots=plain.roots,
            length=plain.length,
            normalize=True,
            coverage=_COVERAGE,
            edge_norm_by="sender" if self.edge_norm == "sender" else "receiver",
            generator=stream(self.seed_, 0, 0, PRE_SAMPLES),
        )

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        logits = self.head_(self.pool(self.embed_nodes(self.weighted(batch), generator), batch))
        known = self.labeled(batch)
        if not known.any():
            return {}
        loss = self.risk_of(logits[known], batch.y[known], self.node_weights(batch, known))
        loss.backward()
        return {"loss": loss.item()}

    def weighted(self, batch: Data) -> Data:
        """``batch`` with the edge norm in its edge weights."""
        if self.edge_norm == "none":
            return batch
        batch = copy.copy(batch)
        batch.edge_weight = batch.edge_norm * batch.edge_weight if "edge_weight" in batch else batch.edge_norm
        return batch

    def node_weights(self, batch: Data, known: Tensor) -> Tensor | None:
        """Weights with which the mean over the known nodes of a batch is the sum with GraphSAINT's node norm."""
        return batch.node_norm[known] * known.sum() if self.node_norm else None

    @staticmethod
    def risk_of(logits: Tensor, y: Tensor, weights: Tensor | None) -> Tensor:
        """Mean cross-entropy."""
        if weights is None:
            return F.cross_entropy(logits, y)
        return (weights * F.cross_entropy(logits, y, reduction="none")).mean()
