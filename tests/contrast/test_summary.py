"""The contrast of nodes and a summary against the formula, PyG's and a slow discriminator."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import DeepGraphInfomax

from mario.contrast import Discriminator, ProjectedDot, node_summary_loss, summarize
from mario.errors import MarioError


def test_summary_of_two_nodes_by_hand() -> None:
    h = torch.tensor([[0.0, 1.0, math.log(3)], [0.0, 3.0, math.log(3)]])
    torch.testing.assert_close(summarize(h), torch.tensor([0.5, 1 / (1 + math.exp(-2)), 0.75]))
    assert summarize(h[:, :2], squash=False).tolist() == [0.0, 2.0]


def test_loss_by_hand() -> None:
    # D = 0.9 and 0.5 for real nodes, 0.2 for the corrupted one
    real, corrupted = torch.tensor([math.log(9), 0.0]), torch.tensor([math.log(0.25)])
    expected = -((math.log(0.9) + math.log(0.5)) / 2 + math.log(0.8)) / 2
    assert node_summary_loss(real, corrupted).item() == pytest.approx(expected)


def test_loss_is_binary_cross_entropy_of_all_logits(generator: torch.Generator) -> None:
    real, corrupted = torch.randn(2, 20, generator=generator, dtype=torch.float64)
    labels = torch.cat([torch.ones(20), torch.zeros(20)]).double()
    slow = nn.functional.binary_cross_entropy_with_logits(torch.cat([real, corrupted]), labels)
    torch.testing.assert_close(node_summary_loss(real, corrupted), slow)


def test_loss_stays_finite_where_the_discriminator_is_sure_and_wrong() -> None:
    real = torch.tensor([-1e4], requires_grad=True)
    loss = node_summary_loss(real, torch.tensor([1e4]))
    loss.backward()
    assert loss.item() == 1e4
    assert real.grad.tolist() == [-0.5]


@pytest.mark.parametrize("bias", [False, True])
def test_discriminator_is_bilinear(bias: bool, generator: torch.Generator) -> None:
    ours = Discriminator(5, bias=bias).double()
    h, s = torch.randn(7, 5, generator=generator).double(), torch.randn(5, generator=generator).double()
    if bias:
        nn.init.constant_(ours.bias, 0.7)
    slow = [sum(h[i, a] * ours.weight[a, b] * s[b] for a in range(5) for b in range(5)) for i in range(7)]
    torch.testing.assert_close(ours(h, s), torch.stack(slow) + (0.7 if bias else 0))


def test_discriminator_starts_as_the_released_code_does() -> None:
    torch.manual_seed(0)
    weight = Discriminator(64).weight
    bound = math.sqrt(6 / (64 * 64 + 64))  # nn.Bilinear(64, 64, 1) under xavier_uniform_
    assert 0.98 * bound < weight.abs().max().item() <= bound
    assert Discriminator(64, bias=True).bias.item() == 0
    assert Discriminator(64).bias is None


def test_twice_the_loss_is_that_of_pyg(generator: torch.Generator) -> None:
    ours, theirs = Discriminator(4), DeepGraphInfomax(4, nn.Identity(), summarize, nn.Identity())
    theirs.weight.data.copy_(ours.weight)
    h, corrupted = torch.randn(2, 9, 4, generator=generator)
    s = summarize(h)
    torch.testing.assert_close(
        2 * node_summary_loss(ours(h, s), ours(corrupted, s)), theirs.loss(h, corrupted, s), atol=1e-6, rtol=1e-6
    )


@pytest.mark.parametrize("made", [lambda: Discriminator(3, bias=True), lambda: ProjectedDot(3)])
def test_gradcheck_and_order_of_nodes(made, generator: torch.Generator) -> None:
    score = made().double()

    def loss(h: Tensor, corrupted: Tensor) -> Tensor:
        s = summarize(h)
        return node_summary_loss(score(h, s), score(corrupted, s))

    h, corrupted = (torch.randn(6, 3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(loss, (h, corrupted))
    order = torch.randperm(6, generator=generator)
    torch.testing.assert_close(loss(h[order], corrupted), loss(h, corrupted))


def test_projected_dot_is_the_product_of_two_mlps(generator: torch.Generator) -> None:
    score = ProjectedDot(3)
    h, s = torch.randn(4, 3, generator=generator), torch.randn(3, generator=generator)
    assert sum(isinstance(layer, nn.Linear) for layer in score.of_node) == 3
    assert score.of_node[0].weight is not score.of_summary[0].weight

    def slow(mlp: nn.Sequential, z: Tensor) -> Tensor:
        for i in (0, 2):
            z = mlp[i].weight @ z + mlp[i].bias
            z = torch.where(z > 0, z, mlp[i + 1].weight * z)
        return mlp[4].weight @ z + mlp[4].bias

    expected = torch.stack([slow(score.of_node, row) @ slow(score.of_summary, s) for row in h])
    torch.testing.assert_close(score(h, s), expected)


@pytest.mark.parametrize("made", [Discriminator, ProjectedDot])
def test_wrong_shapes_are_errors(made: type) -> None:
    with pytest.raises(MarioError, match="width must be an integer of at least 1, got 0"):
        made(0)
    with pytest.raises(
        MarioError, match=r"h must be \[nodes, 3\].*got torch.float32 \(2, 4\) and torch.float32 \(3,\)"
    ):
        made(3)(torch.ones(2, 4), torch.ones(3))
    with pytest.raises(MarioError, match=r"got torch.float32 \(2, 3\) and torch.float32 \(1, 3\)"):
        made(3)(torch.ones(2, 3), torch.ones(1, 3))
    with pytest.raises(MarioError, match="non-empty"):
        summarize(torch.ones(0, 3))
