"""GRACE: anchors instead of all rows."""

import pytest
import torch

import mario
from mario.contrast import info_nce
from mario.errors import MarioError

from .tiny import tiny_graph

SMALL = {"hidden_channels": 8, "num_layers": 2, "sampling": "full"}


def trained(**settings: object) -> mario.GRACE:
    model = mario.GRACE(**SMALL, **{"epochs": 15, "steps_per_epoch": 2, "lr": 2e-2, **settings})
    return model.fit(tiny_graph(), device="cpu")


def exact_loss(model: mario.GRACE) -> float:
    """Over all rows, on views that are the same for every model."""
    generator = torch.Generator().manual_seed(7)
    model.train()
    with torch.no_grad():
        alpha, beta = (model.encode(view) for view in model.make_views(tiny_graph(), generator))
        return info_nce(alpha, beta, model.tau).item()


def test_anchors_train_the_loss_over_all_rows() -> None:
    before, after, exact = trained(epochs=1, lr=0.0), trained(anchors=16), trained()
    z = [model.transform(tiny_graph()) for model in (after, trained(anchors=16), exact)]
    assert torch.equal(z[0], z[1]), "anchors come from the seed"
    assert not torch.equal(z[0], z[2])
    assert exact_loss(after) < exact_loss(before) - 0.5
    assert exact_loss(after) == pytest.approx(exact_loss(exact), abs=0.3)


def test_as_many_anchors_as_nodes_are_all_rows() -> None:
    z = [trained(epochs=2, anchors=anchors).transform(tiny_graph()) for anchors in (0, 80)]
    assert torch.equal(*z)


@pytest.mark.parametrize("other", [{"gather": True}, {"estimator": "jensen_shannon"}])
def test_anchors_with_what_has_none_are_refused(other: dict[str, object]) -> None:
    with pytest.raises(MarioError, match=r"anchors are for estimator=info_nce .* use anchors=0, or gather=False"):
        mario.GRACE(anchors=5, **other)
    assert mario.GRACE(anchors=0, **other).anchors == 0
