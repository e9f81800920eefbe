"""An estimator of mutual information, added as a newcomer would: one function in one file."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import mario
from mario.contrast import ESTIMATORS, Pairs, conditional_mi, estimate, register_estimator
from mario.errors import MarioError


def nwj(pairs: Pairs) -> Tensor:
    """Nguyen, Wainwright, Jordan (2010): mean e^{s_ij − 1} − mean s_ii."""
    return pairs.sums / pairs.negatives - pairs.own


@pytest.fixture
def _registered() -> Iterator[None]:
    register_estimator("nwj", term=lambda s: (s - 1).exp())(nwj)
    yield
    del ESTIMATORS["nwj"]


def full_nwj(u: Tensor, v: Tensor, clusters: Tensor, tau: float) -> Tensor:
    s = torch.cosine_similarity(u.unsqueeze(1), v.unsqueeze(0), dim=2) / tau
    negative = (clusters.unsqueeze(1) == clusters) & ~torch.eye(len(u), dtype=torch.bool)
    count = negative.sum(1)
    rows = ((s - 1).exp() * negative).sum(1) / count.clamp(min=1) - s.diagonal()
    return (rows * (count > 0)).mean()


@pytest.mark.usefixtures("_registered")
@pytest.mark.parametrize("clusters", [1, 3])
def test_within_clusters_and_without(clusters: int, generator: torch.Generator) -> None:
    u, v = (torch.randn(20, 4, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    labels = torch.randint(clusters, (20,), generator=generator)
    ours, wanted = conditional_mi(u, v, labels, labels, 0.7, estimator="nwj"), full_nwj(u, v, labels, 0.7)
    torch.testing.assert_close(ours, wanted)
    torch.testing.assert_close(torch.autograd.grad(ours, (u, v)), torch.autograd.grad(wanted, (u, v)))
    if clusters == 1:
        torch.testing.assert_close(estimate(u, v, 0.7, "nwj"), wanted)


@pytest.mark.usefixtures("_registered")
def test_methods_take_it(generator: torch.Generator) -> None:
    edges = torch.randint(40, (2, 120), generator=generator)
    data = Data(x=torch.randn(40, 6, generator=generator), edge_index=torch.cat([edges, edges.flip(0)], 1))
    settings: dict[str, Any] = {"hidden_channels": 8, "epochs": 1, "steps_per_epoch": 2}
    grace = mario.GRACE(estimator="nwj", **settings).fit(data)
    both = mario.MARIO(estimator="nwj", cmi_estimator="nwj", clusters=4, **settings).fit(data)
    assert grace.transform(data).isfinite().all()
    assert both.transform(data).isfinite().all()


def test_unknown_before_it_is_registered() -> None:
    for name in ("estimator", "cmi_estimator"):
        with pytest.raises(MarioError, match=f"^{name} must be one of info_nce, .*got 'nwj'"):
            mario.MARIO.from_settings({name: "nwj"})
    with pytest.raises(MarioError, match=r"estimator must be one of info_nce, .*got 'nwj'"):
        estimate(torch.eye(2), torch.eye(2), 0.5, "nwj")
    with pytest.raises(MarioError, match=r"cmi_estimator must be one of .*got 'alignment_uniformity'"):
        mario.MARIO(cmi_estimator="alignment_uniformity")
