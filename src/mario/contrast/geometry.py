"""Alignment and uniformity of two views' embeddings on the unit sphere."""

import math
from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Tensor

from mario.arguments import check_positive
from mario.contrast.blocks import Blocks
from mario.contrast.estimators import ESTIMATORS, Estimator, donsker_varadhan, mean_over_rows
from mario.contrast.rows import check_pair, check_rows, directions
from mario.errors import MarioError


def alignment(views: Sequence[Tensor]) -> Tensor:
    r"""L_align: the mean over nodes and pairs of views of ‖z_i − z'_i‖², rows at unit length.

    From `"Understanding Contrastive Representation Learning" <https://arxiv.org/abs/2005.10242>`_; the first term of
    MARIO's Eq. 2.

    Example:
        >>> import torch
        >>> from mario.contrast import alignment
        >>> east, north = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 3.0]])
        >>> alignment([east, east, north])  # 0, 2 and 2 over three pairs
        tensor(1.3333)
    """
    return _squared_distances(views).mean()


def worst_case_alignment(views: Sequence[Tensor]) -> Tensor:
    r"""L_align*, MARIO's invariant alignment loss (Definition 2): mean over nodes of max ‖z_i − z'_i‖² over view pairs.

    The supremum over all augmentations is taken over the given views, as in ArCL. Never lower than `alignment`.

    Example:
        >>> import torch
        >>> from mario.contrast import worst_case_alignment
        >>> east, north = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 3.0]])
        >>> worst_case_alignment([east, east, north])
        tensor(2.)
    """
    return _squared_distances(views).amax(0).mean()


def uniformity(z: Tensor, t: float = 2.0) -> Tensor:
    r"""log mean_{i≠j} e^{−t‖z_i − z_j‖²}, rows at unit length; lower is more evenly spread on the sphere.

    From `"Understanding Contrastive Representation Learning" <https://arxiv.org/abs/2005.10242>`_. Memory is linear in
    the number of rows. A zero row counts as orthogonal to all.

    Example:
        >>> import torch
        >>> from mario.contrast import uniformity
        >>> uniformity(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), t=2.0)  # two opposite points: −2 · 2²
        tensor(-8.)
    """
    check_rows("z", z)
    check_positive("t", t)
    # −t‖a − b‖² = 2t·cos(a, b) − 2t: Donsker-Varadhan of z with itself, whose s_ii is 2t, or 0 where a row is zero.
    directed = (z.detach() != 0).any(1).to(z.dtype).mean()
    return donsker_varadhan(z, z, 1 / (2 * t)) + 2 * t * (directed - 1)


def alignment_uniformity(u: Tensor, v: Tensor, t: float = 1.0) -> Tensor:
    r"""MARIO's Eq. 2: mean_i ‖u_i − v_i‖² + mean_i log mean_j e^{−t‖u_i − v_j‖²}, rows at unit length.

    The paper prints both squared distances with the opposite sign, which would push positives apart and pull
    negatives together, contrary to its text; the signs here are those of Wang & Isola, whom it cites. With t = 1, as
    in the paper, it is the one-directional InfoNCE at τ = ½ minus log N. A loss to minimize; at t = 1 its negative is a
    lower bound on I(U; V).

    Example:
        >>> import torch
        >>> from mario.contrast import alignment_uniformity
        >>> loss = alignment_uniformity(torch.eye(2), torch.eye(2))
        >>> round(loss.item(), 4)  # 0 + log((1 + e⁻²)/2)
        -0.5662
    """
    check_pair(u, v)
    check_positive("t", t)
    everything = Blocks.everything(u.size(0), u.size(1), u.device, own_pairs=True)
    contrast = mean_over_rows(ESTIMATORS["info_nce"], u, v, everything, 1 / (2 * t)) - math.log(u.size(0))
    return contrast if t == 1 else contrast + (1 - t) * alignment([u, v])


ESTIMATORS["alignment_uniformity"] = Estimator(None, loss=lambda u, v, tau: alignment_uniformity(u, v))


def _squared_distances(views: Sequence[Tensor]) -> Tensor:
    """[pairs of views, N]"""
    if not isinstance(views, Sequence) or len(views) < 2:
        many = f" of {len(views)}" if isinstance(views, Sequence) else ""
        raise MarioError(f"views must be a list of at least two matrices, got {type(views).__name__}{many}")
    for number, view in enumerate(views):
        check_rows(f"views[{number}]", view)
        if view.shape != views[0].shape:
            raise MarioError(
                f"all views must embed the same nodes: views[0] is {tuple(views[0].shape)}, "
                f"views[{number}] is {tuple(view.shape)}"
            )
    unit = [directions(view) for view in views]
    return torch.stack([(a - b).square().sum(1) for a, b in combinations(unit, 2)])
