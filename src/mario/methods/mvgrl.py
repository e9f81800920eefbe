"""Contrastive multi-view representation learning on graphs."""

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.contrast import Discriminator, ProjectedDot, node_summary_loss, summarize
from mario.encoders.adjacency import entries
from mario.encoders.apply import encode, takes, takes_features
from mario.encoders.size import check_size
from mario.errors import MarioError
from mario.graphs.features import take_rows
from mario.graphs.samplers import Sampler
from mario.graphs.subgraph import count_nodes
from mario.methods.registry import register
from mario.methods.settings import setting
from mario.methods.two_view import Side, TwoView
from mario.views import diffusion_block, diffusion_matrix


@register("mvgrl")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class MVGRL(TwoView):
    """Contrastive Multi-View Representation Learning on Graphs (Hassani & Khasahmadi, ICML 2020).

    View α is the graph and view β its diffusion, with one encoder each. A discriminator separates the nodes of a view
    from those with shuffled features by how they fit a summary of the *other* view. The embedding is the sum of the
    outputs of both encoders.

    The diffusion is that of the whole training graph, computed once, and a batch sees the block of it that its nodes
    span. It is exact up to ``exact_nodes`` nodes and sparse above (see :func:`mario.views.diffusion_matrix`); the
    paper's dense matrix would need 9 GB for GOOD-Twitch. For every named ``encoder``, view β is encoded by a GCN, which
    multiplies by the diffusion matrix: attention would not see the weights that make the view. If ``encoder`` is a
    module that takes ``edge_weight``, a second copy of it gets the entries of the matrix as weighted edges; a module
    that does not is used for α alone, beside a GCN of its width for β.

    With batch norm as the last layer of the encoders there is nothing to learn, as for :class:`mario.DGI`.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> MVGRL(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    batch_norm: bool = setting(False, search=(False, True), help="batch norm after each convolution; needs last_activation")
    last_activation: bool = setting(True, search=(True, False), help="activation after the last convolution too")
    lr: float = setting(1e-3, low=0.0, search=(1e-2, 1e-3, 1e-4), help="learning rate of Adam")
    diffusion: str = setting("ppr", choices=("ppr", "heat"), help="view β: personalized PageRank or the heat kernel")
    teleport: float = setting(0.2, low=0.01, high=1.0, search=(0.05, 0.1, 0.2), help="α: probability that the walk of PageRank starts again")
    heat_time: float = setting(5.0, low=0.0, high=1000.0, search=(1.0, 3.0, 5.0), help="t: how long heat flows")
    exact_nodes: int = setting(3000, low=0, high=20_000, help="graphs of at most so many nodes have all entries of their diffusion")
    tolerance: float = setting(1e-3, low=1e-6, search=(1e-4, 1e-3, 1e-2), help="on larger ones an entry may lack tolerance·√degree")
    discriminator: str = setting("bilinear", choices=("bilinear", "projected_dot"), help="hᵀWs + b (the authors' code for nodes) or f_ψ(h)·f_φ(s) (the paper's text)")
    # fmt: on

    def check_together(self) -> None:
        super().check_together()
        if self.views is not None:
            raise MarioError(
                "the views of MVGRL are the graph and its diffusion, which `diffusion` chooses: leave views=None"
            )

    def build(self, in_channels: int, num_classes: int) -> None:
        super().build(in_channels, num_classes)
        width = self.out_channels_
        again = isinstance(self.encoder, nn.Module) and takes(self.encoder_, "edge_weight")
        self.diffusion_encoder_ = (
            self.make_encoder(in_channels) if again else self.make_encoder(in_channels, "gcn", hidden_channels=width)
        )
        bilinear = self.discriminator == "bilinear"
        check_size("the discriminator", [width, width])
        self.discriminator_ = Discriminator(width, bias=True) if bilinear else ProjectedDot(width)
        self._diffused: list[tuple[tuple[object, ...], tuple[Tensor, ...], Tensor]] = []

    def sampler(self, graph: Data) -> Sampler:
        graph = copy.copy(graph)
        graph.diffusion_row = torch.arange(count_nodes(graph), device=graph.edge_index.device)
        return _WithDiffusion(super().sampler(graph), self.diffuse(graph))

    def make_views(self, batch: Data, generator: torch.Generator | None = None) -> tuple[Data, Data]:
        alpha, beta = copy.copy(batch), copy.copy(batch)
        beta.diffusion = alpha.diffusion if "diffusion" in alpha else self.diffuse(batch)
        if "diffusion" in alpha:
            del alpha.diffusion
        # One shuffle for both, as released.
        alpha.shuffle = beta.shuffle = torch.randperm(count_nodes(batch), generator=generator).to(batch.x.device)
        return alpha, beta

    def represent(self, view: Data, generator: torch.Generator | None = None) -> Tensor:
        if "diffusion" not in view:
            return super().represent(view, generator)
        h = self.encode_diffused(view, view.diffusion, generator)
        return h[view.seed_mask] if "seed_mask" in view else h

    def encode(self, view: Data, generator: torch.Generator | None = None) -> Side:
        """H, and that of the same view with shuffled features."""
        corrupted = copy.copy(view)
        corrupted.x = take_rows(view.x, view.shuffle)
        return self.represent(view, generator), self.represent(corrupted, generator)

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        (h_alpha, corrupted_alpha), (h_beta, corrupted_beta) = alpha, beta
        s_alpha, s_beta = summarize(h_alpha), summarize(h_beta)
        score = self.discriminator_
        return (
            node_summary_loss(score(h_beta, s_alpha), score(corrupted_beta, s_alpha))
            + node_summary_loss(score(h_alpha, s_beta), score(corrupted_alpha, s_beta))
        ) / 2

    def embed(self, data: Data) -> Tensor:
        return encode(self.encoder_, data) + self.encode_diffused(data, self.diffuse(data))

    def encode_diffused(self, data: Data, matrix: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The output of the second encoder for the nodes of ``data``, along the entries of a diffusion matrix."""
        matrix = matrix.to(data.x.device, data.x.dtype)
        if takes_features(self.diffusion_encoder_):
            return encode(self.diffusion_encoder_, Data(x=data.x, edge_index=matrix), generator)
        view = Data(x=data.x, edge_index=entries(matrix), edge_weight=matrix.values())
        return encode(self.diffusion_encoder_, view, generator)

    def __getstate__(self) -> dict[str, Any]:
        # A copy computes its diffusions again: torch cannot copy a sparse matrix with its storage.
        return {**self.__dict__, "_diffused": []}

    def diffuse(self, data: Data) -> Tensor:
        """The diffusion of a graph, on the CPU; the last two are kept, to train and evaluate in turn."""
        facts = (count_nodes(data), self.diffusion, self.teleport, self.heat_time, self.exact_nodes, self.tolerance)
        edge_index = data.edge_index.cpu()
        weight = data.edge_weight.cpu() if "edge_weight" in data and self.uses("edge_weight") else None
        given = (edge_index,) if weight is None else (edge_index, weight)
        for known, earlier, matrix in self._diffused:
            if known == facts and _equal(earlier, given):
                return matrix
        matrix = diffusion_matrix(
            edge_index,
            count_nodes(data),
            self.diffusion,  # type: ignore[arg-type]
            teleport=self.teleport,
            time=self.heat_time,
            exact_nodes=self.exact_nodes,
            tolerance=self.tolerance,
            edge_weight=weight,
        )
        # Clones, as the caller may change the edges in place.
        self._diffused = [*self._diffused[-1:], (facts, tuple(part.clone() for part in given), matrix)]
        return matrix


def _equal(first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> bool:
    return len(first) == len(second) and all(map(torch.equal, first, second))


class _WithDiffusion(Sampler):
    """Batches that carry their block of the whole graph's diffusion."""

    def __init__(self, sampler: Sampler, matrix: Tensor) -> None:
        self.sampler = sampler
        self.matrix = matrix

    def sample(self, generator: torch.Generator | None = None) -> Data:
        return self._with_block(self.sampler.sample(generator))

    def epoch(self, generator: torch.Generator | None = None) -> Iterator[Data]:
        return map(self._with_block, self.sampler.epoch(generator))

    def _with_block(self, batch: Data) -> Data:
        batch.diffusion = diffusion_block(self.matrix, batch.diffusion_row.to(self.matrix.device))
        return batch
