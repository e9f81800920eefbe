import pytest
import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.views import MaskFeatures


def test_masks_whole_columns_and_nothing_else(generator: torch.Generator) -> None:
    x = torch.rand(5, 40) + 1
    view = MaskFeatures(0.5)(Data(x=x), generator).x
    masked = (view == 0).all(dim=0)
    assert 0 < int(masked.sum()) < 40
    assert torch.equal(view[:, ~masked], x[:, ~masked])


def test_masks_nothing_at_zero_and_all_at_one(generator: torch.Generator) -> None:
    x = torch.rand(3, 4) + 1
    assert torch.equal(MaskFeatures(0.0)(Data(x=x), generator).x, x)
    assert not MaskFeatures(1.0)(Data(x=x), generator).x.any()


def test_rate_is_p(generator: torch.Generator) -> None:
    view = MaskFeatures(0.2)(Data(x=torch.ones(1, 100_000)), generator).x
    # Standard error 0.00126
    assert float((view == 0).float().mean()) == pytest.approx(0.2, abs=0.005)


def test_sparse_and_dense_masks_agree_and_the_pattern_stays() -> None:
    x = torch.tensor([[0.0, 2.0, 0.0, 3.0], [1.0, 0.0, 0.0, 4.0], [0.0, 0.0, 0.0, 0.0]])
    sparse = MaskFeatures(0.5)(Data(x=x.to_sparse_csr()), torch.Generator().manual_seed(4)).x
    dense = MaskFeatures(0.5)(Data(x=x), torch.Generator().manual_seed(4)).x
    assert torch.equal(sparse.to_dense(), dense)
    assert not torch.equal(dense, x)
    assert sparse.col_indices().tolist() == [1, 3, 0, 3]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_masked_column_is_zero_for_any_value(value: float, sparse: bool, generator: torch.Generator) -> None:
    x = torch.full((2, 3), value)
    view = MaskFeatures(1.0)(Data(x=x.to_sparse_csr() if sparse else x), generator).x
    assert torch.equal(view.to_dense(), torch.zeros(2, 3))


def test_gradients_reach_what_is_not_masked(generator: torch.Generator) -> None:
    x = torch.ones(2, 50, requires_grad=True)
    view = MaskFeatures(0.5)(Data(x=x), generator).x
    view.sum().backward()
    assert torch.equal(x.grad, view.detach())


@pytest.mark.parametrize(("data", "match"), [(Data(num_nodes=3), "no x"), (Data(x=torch.ones(3)), r"shape \(3,\)")])
def test_features_that_are_no_matrix_are_an_error(data: Data, match: str) -> None:
    with pytest.raises(MarioError, match=match):
        MaskFeatures(0.5)(data)
