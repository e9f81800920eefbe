"""The distance between the embeddings of two views of a graph: on average, and in the worst case."""

import math

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import check_count, check_number, check_seed
from mario.contrast.rows import directions
from mario.errors import MarioError
from mario.graphs import check_graph
from mario.methods import Method
from mario.methods.grace import GRACE
from mario.views import AdversarialFeatures, Chain, DropEdges, MaskFeatures, View

_ROWS = 1024


@torch.inference_mode(False)  # the adversary needs gradients, whatever the mode
def invariance(
    model: Method, data: Data, *, seed: int = 0, pairs: int = 8, epsilon: float = 1e-3, steps: int = 3
) -> dict[str, float]:
    """L_align and L_align* of a fitted method (MARIO, Definition 2), measured in the same way for all methods.

    The views are GRACE's default ones, of the whole graph, for every method, as distances under different views cannot
    be compared. The embedding is the one that ``transform`` returns. The alignment of a two-view method on its own
    views is in its log.

    ``align_mean`` is the mean over nodes and ``pairs`` random pairs of views of the squared distance of unit rows.
    ``align_worst`` is the mean over nodes of the largest distance of any pair. It includes one more pair: the one with
    the largest mean distance, with one view moved by ``steps`` ascent steps on its features, none of which changes by
    more than ``epsilon``. So the worst case is never below the mean.

    Args:
        model: A fitted method.
        data: The graph, or the set of graphs.
        seed: For the views; the same seed gives every model the same views.
        pairs: Number of pairs of views.
        epsilon: ε, the largest change of a feature; the default is that of the recipe.
        steps: M, the number of ascent steps; likewise.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> found = invariance(mario.RandomInit(hidden_channels=16, epochs=1).fit(data), data)
        >>> 0 < found["align_mean"] < found["align_worst"] < 4
        True
    """
    check_count("pairs", pairs)
    check_count("steps", steps)
    check_number("epsilon", epsilon, low=0)
    check_seed("seed", seed)
    if not isinstance(model, Method):
        raise MarioError(f"model must be a fitted method of mario, got {type(model).__name__}")
    model.check_fitted()
    check_graph(data)
    graph = model.embeddable(data)
    model.eval()
    with torch.autocast(graph.x.device.type, enabled=False):
        return _measure(model, graph, seed, pairs, epsilon, steps)


def _measure(model: Method, graph: Data, seed: int, pairs: int, epsilon: float, steps: int) -> dict[str, float]:
    device = graph.x.device
    generator = torch.Generator().manual_seed(seed)
    first, second = standard_views()
    means: list[float] = []
    worst = torch.zeros(())
    for _ in range(pairs):
        alpha, beta = first(graph, generator), second(graph, generator)
        with torch.no_grad():
            apart = distances(model.embed(alpha), model.embed(beta))
        means.append(apart.double().mean().item())
        if not math.isfinite(means[-1]):
            raise MarioError("the embeddings of a view are not finite: scale data.x, or train the model again")
        worst = torch.maximum(worst.to(device), apart)
        if means[-1] == max(means):
            hardest = alpha, beta
    alpha, beta = hardest
    with torch.no_grad():
        other = model.embed(beta)
    # Start and steps together stay within ε. Steps are by sign: the paper's step needs the norm over all ranks, and
    # only rank 0 evaluates.
    adversary = AdversarialFeatures(
        epsilon / (steps + 1), steps, "sign", loss=lambda view: distances(model.embed(view), other).mean()
    )
    moved = adversary(alpha, generator)
    with torch.no_grad():
        worst = torch.maximum(worst, distances(model.embed(moved), other))
    return {"align_mean": sum(means) / pairs, "align_worst": worst.double().mean().item()}


def distances(u: Tensor, v: Tensor) -> Tensor:
    """‖u_i − v_i‖² of every row i at unit length, in blocks of rows: embeddings may be as wide as the features."""
    parts = zip(u.split(_ROWS), v.split(_ROWS), strict=True)
    return torch.cat([(directions(a) - directions(b)).square().sum(1) for a, b in parts])


def standard_views() -> tuple[View, View]:
    """GRACE's two default views, with features as a matrix."""
    grace = GRACE()
    return (
        Chain(MaskFeatures(grace.mask_features_1), DropEdges(grace.drop_edges_1)),
        Chain(MaskFeatures(grace.mask_features_2), DropEdges(grace.drop_edges_2)),
    )
