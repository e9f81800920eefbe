import pytest
import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.views import MaskNodes


def set_of_two() -> Data:
    return Data(x=torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 8.0]]), batch=torch.tensor([0, 0, 1]))


def test_a_masked_node_shows_the_mean_of_its_graph(generator: torch.Generator) -> None:
    data = set_of_two()
    assert MaskNodes(1.0)(data, generator).x.tolist() == [[2, 0], [2, 0], [0, 8]]
    assert data.x.tolist() == [[1, 0], [3, 0], [0, 8]]


def test_whole_nodes_are_masked_at_the_promised_rate(generator: torch.Generator) -> None:
    x = torch.rand(20_000, 3, generator=generator) + 1
    masked = MaskNodes(0.2, fill="zero")(Data(x=x), generator).x
    gone = (masked == 0).all(1)
    assert gone.float().mean().item() == pytest.approx(0.2, abs=0.01)
    assert torch.equal(masked[~gone], x[~gone])


def test_noise_is_the_authors(generator: torch.Generator) -> None:
    x = MaskNodes(1.0, fill="noise")(Data(x=torch.zeros(5000, 4)), generator).x
    assert x.mean().item() == pytest.approx(0.5, abs=0.02)
    assert x.std().item() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("fill", ["mean", "noise", "zero"])
def test_sparse_features_are_as_dense_ones(fill: str) -> None:
    dense, sparse = set_of_two(), set_of_two()
    sparse.x = sparse.x.to_sparse_csr()
    first, second = (MaskNodes(0.5, fill=fill)(data, torch.Generator().manual_seed(3)).x for data in (dense, sparse))
    assert second.layout == (torch.sparse_csr if fill == "zero" else torch.strided)
    torch.testing.assert_close(second.to_dense() if fill == "zero" else second, first)


def test_what_was_masked_does_not_leak(generator: torch.Generator) -> None:
    data = Data(x=torch.tensor([[float("nan")], [1.0]]))
    assert MaskNodes(1.0, fill="zero")(data, generator).x.tolist() == [[0], [0]]


def test_nothing_to_do_and_wrong_input(generator: torch.Generator) -> None:
    data = set_of_two()
    assert torch.equal(MaskNodes(0.0)(data, generator).x, data.x)
    with pytest.raises(MarioError, match="p must be a probability"):
        MaskNodes(-0.1)
    with pytest.raises(MarioError, match="fill must be one of mean, noise, zero, got 'ones'"):
        MaskNodes(0.1, fill="ones")
    with pytest.raises(MarioError, match="no x"):
        MaskNodes(0.1)(Data(num_nodes=2), generator)
