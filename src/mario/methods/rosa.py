"""RoSA."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from mario.contrast import alignment, transport_nce, uniformity, worst_case_alignment
from mario.encoders.apply import encode
from mario.encoders.norm import NotedStatistics
from mario.errors import MarioError
from mario.graphs.csr import CSR
from mario.graphs.sparse import csr as sparse_csr, row_of_entries, select_rows
from mario.graphs.subgraph import count_nodes
from mario.graphs.walks import draw_distinct, random_step
from mario.methods.parts import Transform, check_same_nodes, view_of
from mario.methods.registry import register
from mario.methods.settings import MOST_STEPS, setting
from mario.methods.two_view import DropAndMask, Projecting, Side, embeddings
from mario.views import AdversarialFeatures, Chain, DropEdges, MaskFeatures


@register("rosa")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class RoSA(Projecting, DropAndMask):
    """RoSA: A Robust Self-Aligned Framework for Node-Node Graph Contrastive Learning (Zhu et al., IJCAI 2022).

    A view of a root is the subgraph of a random walk with restart from it. The two views of a root come from independent
    walks and have different nodes. They are compared by g-EMD, the cost of moving one set of embeddings to the other;
    views of other roots are pushed apart. The features of the first view are perturbed adversarially. ``views`` are
    applied to the subgraphs.

    A step contrasts ``contrast_roots`` roots of the batch, for graphs of any size, in random groups of
    ``contrast_group``: the sum over the other roots of a group estimates the sum over all. The recipe replaces this
    adversary by its own, and ``robust`` then has no effect.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> RoSA(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    tau: float = setting(0.4, low=1e-6, search=(0.1, 0.2, 0.4, 0.5, 0.7, 0.8), help="temperature of the contrast")
    contrast_roots: int = setting(128, low=2, search=(128, 256), help="roots that a step contrasts, or all if there are fewer")
    contrast_group: int = setting(32, low=0, search=(0, 32), help="about how many of them are contrasted with each other, drawn in each step; 0 is all")
    walk_length: int = setting(10, low=1, high=MOST_STEPS, search=(10, 20), help="steps of a walk")
    restart: float = setting(0.5, low=0.0, high=1.0, search=(0.0, 0.5, 0.8), help="probability that a step of a walk is a return to its root")
    topology: bool = setting(True, search=(False, True), help="let the cost within a positive pair grow with the hops between nodes")
    hop_scale: float = setting(2.0, low=1e-6, help="θ of the factor σ(hops/θ)")
    exact_hops: int = setting(1024, low=0, help="nodes of a batch up to which hops are exact; beyond, they run through the two subgraphs")
    sharpness: float = setting(20.0, low=1e-6, help="λ of the entropic transport plan")
    transport_iterations: int = setting(5, low=1, high=MOST_STEPS, help="Sinkhorn's iterations for a plan")
    positive_in_denominator: bool = setting(False, help="InfoNCE's sum over all pairs (paper), or over negatives only (released)")
    robust: bool = setting(True, search=(False, True), help="perturb the features of view α adversarially")
    robust_steps: int = setting(3, low=1, high=MOST_STEPS, help="ascent steps, each a backward pass")
    robust_epsilon: float = setting(1e-3, low=0.0, search=(1e-4, 1e-3, 1e-2), help="size of the start and of an ascent step")
    robust_ascent: str = setting("sign", choices=("sign", "frobenius"), help="ε·sign(∇) (released) or ε·∇/‖∇‖_F")
    # fmt: on

    uses_edge_data: ClassVar[bool] = False
    """The edges of a view are those that walks went along."""

    def check_together(self) -> None:
        super().check_together()
        if self.contrast_group == 1:
            raise MarioError("contrast_group must be 0, which is all roots, or at least 2, got 1: a root needs another")

    def make_views(self, batch: Data, generator: torch.Generator | None = None) -> tuple[Data, Data]:
        return self.views_of(batch, self.draw_roots(batch, generator), generator)

    def draw_roots(self, batch: Data, generator: torch.Generator | None = None) -> Tensor:
        """Distinct nodes, from the seeds if the batch has seeds."""
        nodes = count_nodes(batch)
        allowed = batch.seed_mask.nonzero().view(-1) if "seed_mask" in batch else None
        most = nodes if allowed is None else allowed.numel()
        if most < 2:
            raise MarioError(
                f"rosa pushes roots apart and needs two of them in a batch, got {most}: one node is not enough"
            )
        drawn = draw_distinct(most, min(self.contrast_roots, most), generator).to(batch.edge_index.device)
        return drawn if allowed is None else allowed[drawn]

    def views_of(self, batch: Data, roots: Tensor, generator: torch.Generator | None = None) -> tuple[Data, Data]:
        """Two views of the same roots: disjoint unions of their subgraphs, in the order of ``roots``.

        A view has the positions of the roots in ``root_rows``, the rows of each subgraph in ``members``
        [roots, widest subgraph], padded with −1, and in ``hops`` the distances to the nodes of the other view.
        """
        nodes = count_nodes(batch)
        csr = CSR(to_undirected(batch.edge_index, num_nodes=nodes), nodes)
        alpha, beta = (walk_views(batch.x, csr, roots, self.walk_length, self.restart, generator) for _ in range(2))
        if self.topology:
            alpha.hops = hops_between(alpha, beta, csr, exact=nodes <= self.exact_hops)
            beta.hops = alpha.hops.mT
        first, second = self.views or self.own_views(batch)
        return self._changed(alpha, first, generator), self._changed(beta, second, generator)

    def own_views(self, batch: Data) -> tuple[Transform, Transform]:
        return (
            Chain(MaskFeatures(self.mask_features_1), DropEdges(self.drop_edges_1)),
            Chain(MaskFeatures(self.mask_features_2), DropEdges(self.drop_edges_2)),
        )

    def _changed(self, view: Data, by: Transform, generator: torch.Generator | None) -> Data:
        """``view`` with other features and edges. What has one row per root could be taken for edges by ``by``."""
        bare = Data(x=view.x, edge_index=view.edge_index, num_nodes=view.nodes.numel())
        changed = view_of(by, bare, generator)
        check_same_nodes(changed, bare, by)
        view.x, view.edge_index = changed.x, changed.edge_index
        return view

    def represent(self, view: Data, generator: torch.Generator | None = None) -> Tensor:
        """The output of the encoder for the roots."""
        return encode(self.encoder_, view, generator)[view.root_rows]

    def encode(self, view: Data, generator: torch.Generator | None = None) -> Side:
        """Z of the roots, then Z of all nodes of all subgraphs, ``members`` and ``hops``."""
        z = self.project(encode(self.encoder_, view, generator), generator)
        return (z[view.root_rows], z, view.members, *((view.hops,) if "hops" in view else ()))

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        _, u, u_sets, *hops = alpha
        _, v, v_sets, *_ = beta
        return transport_nce(
            u,
            u_sets,
            v,
            v_sets,
            self.tau,
            hops=hops[0] if hops else None,
            hop_scale=self.hop_scale,
            group=self.contrast_group,
            positive_in_denominator=self.positive_in_denominator,
            sharpness=self.sharpness,
            iterations=self.transport_iterations,
        )

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        if not self.robust:
            return super().step(batch, generator)
        alpha, beta = self.make_views(batch, generator)
        # β is the same in all ascent steps, so its gradients are summed at Z and go back through the encoder once. In the
        # running statistics of batch norm it counts as often as if it had passed each time after α.
        with NotedStatistics(self) as noted:
            roots, z, *rest = self.encode(beta, generator)
        noted.undo()
        reached = z.detach().requires_grad_()
        adversary = AdversarialFeatures(self.robust_epsilon, self.robust_steps, self.robust_ascent)  # type: ignore[arg-type]

        def loss(view: Data) -> Tensor:
            moved = self.encode(view, generator)
            noted.again()
            return self.contrast(moved, (roots, reached, *rest), generator)

        losses = adversary.ascend(loss, [alpha], generator)
        z.backward(reached.grad)
        return {"loss": torch.stack(losses).mean().item()}

    @torch.no_grad()
    def diagnostics(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        """Alignment on average and in the worst case over two draws of both views of the same roots, and uniformity."""
        self.eval()
        roots = self.draw_roots(batch, generator)
        zs = [embeddings(self.encode(view)) for _ in range(2) for view in self.views_of(batch, roots, generator)]
        self.train()
        return {
            "alignment": alignment(zs).item(),
            "worst_case_alignment": worst_case_alignment(zs).item(),
            "uniformity": uniformity(zs[0]).item(),
        }


def walk_views(
    x: Tensor, csr: CSR, roots: Tensor, length: int, restart: float, generator: torch.Generator | None = None
) -> Data:
    """The subgraphs of random walks with restart, one per root, disjoint from each other.

    A step goes back to the root with probability ``restart`` and to a uniform neighbor otherwise. A subgraph has the
    nodes of its walk and, in both directions, the edges it went along; that of a root without neighbors is the root.

    Example:
        >>> path = CSR(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=4)
        >>> view = walk_views(torch.eye(4), path, torch.tensor([0, 3]), length=1, restart=0.0)
        >>> view.nodes.tolist(), view.members.tolist(), view.edge_index.tolist()
        ([0, 1, 3], [[0, 1], [2, -1]], [[0, 1], [1, 0]])
    """
    count, at = roots.numel(), roots
    walks, moved = [roots], []
    for _ in range(length):
        back = (torch.rand(count, generator=generator) < restart).to(roots.device)
        step = random_step(csr, at, generator)
        moved.append(~back & (step != at))
        at = torch.where(back, roots, step)
        walks.append(at)
    population = csr.starts.numel() - 1
    owner = torch.arange(count, device=roots.device).unsqueeze(1)
    keys, row = torch.unique(owner * population + torch.stack(walks, dim=1), return_inverse=True)
    went = torch.stack(moved, dim=1)
    edges = torch.stack([row[:, :-1][went], row[:, 1:][went]])
    nodes = keys % population
    return Data(
        x=select_rows(x, nodes),
        edge_index=to_undirected(edges, num_nodes=keys.numel()),
        nodes=nodes,
        root_rows=row[:, 0],
        members=_padded(keys // population, count),
    )


def hops_between(alpha: Data, beta: Data, csr: CSR, *, exact: bool = True) -> Tensor:
    """Hops [roots, n, m] between the nodes of a root's subgraphs in two views; ``csr`` has edges in both directions.

    Exact distances need a search through the whole graph. The others use nodes of the two subgraphs only: they are
    exact for equal nodes and neighbors and may be too large for others. All are finite, as the root connects all nodes.

    Example:
        >>> csr = CSR(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> alpha = Data(nodes=torch.tensor([0, 1]), members=torch.tensor([[0, 1]]))
        >>> beta = Data(nodes=torch.tensor([1, 2]), members=torch.tensor([[0, 1]]))
        >>> hops_between(alpha, beta, csr).tolist()
        [[[1.0, 2.0], [0.0, 1.0]]]
    """
    a, b = (view.nodes[view.members.clamp(min=0)] for view in (alpha, beta))
    if exact:
        sources, position = a.unique(return_inverse=True)
        return _search(csr, sources)[position.unsqueeze(2), b.unsqueeze(1)]
    # The padding repeats a node of the root, so that all K nodes of a row belong to its two subgraphs.
    a, b = (torch.where(v.members < 0, n[:, :1], n) for v, n in ((alpha, a), (beta, b)))
    return _search_within(csr, torch.cat([a, b], dim=1))[:, : a.size(1), a.size(1) :]


def _search(csr: CSR, sources: Tensor) -> Tensor:
    """Breadth-first distances [sources, N] in the whole graph; N if there is no path."""
    nodes = csr.starts.numel() - 1
    adjacency = sparse_csr(
        csr.starts, csr.others, torch.ones(csr.others.numel(), device=sources.device), (nodes, nodes)
    )
    hops = torch.full((nodes, sources.numel()), float(nodes), device=sources.device)
    hops[sources, torch.arange(sources.numel(), device=sources.device)] = 0
    for hop in range(1, nodes):
        further = (adjacency @ (hops == hop - 1).float() > 0) & (hops == nodes)
        if not bool(further.any()):
            break
        hops[further] = hop
    return hops.t()


def _search_within(csr: CSR, nodes: Tensor) -> Tensor:
    """Breadth-first distances [B, K, K] between the nodes of a row along edges between nodes of that row."""
    population = csr.starts.numel() - 1
    rows = row_of_entries(csr.starts)
    known = torch.cat([rows * population + csr.others, rows.new_full((1,), population**2)])
    pairs = nodes.unsqueeze(2) * population + nodes.unsqueeze(1)
    same = (nodes.unsqueeze(2) == nodes.unsqueeze(1)).float()
    adjacency = (known[torch.searchsorted(known, pairs)] == pairs).float()
    size = nodes.size(1)
    hops = torch.where(same > 0, 0.0, float(size))
    for hop in range(1, size):
        further = (hops == hop - 1).float() @ adjacency > 0
        further &= hops == size
        if not bool(further.any()):
            break
        hops[further] = hop
    return hops


def _padded(owner: Tensor, count: int) -> Tensor:
    """Positions of each owner's entries, [count, most], −1 beyond them; ``owner`` ascends."""
    sizes = torch.bincount(owner, minlength=count)
    positions = torch.arange(owner.numel(), device=owner.device)
    padded = torch.full((count, int(sizes.max())), -1, dtype=torch.int64, device=owner.device)
    padded[owner, positions - (sizes.cumsum(0) - sizes)[owner]] = positions
    return padded
