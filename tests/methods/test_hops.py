"""The control of neighbor means against sums over the edges."""

import torch
from torch_geometric.data import Data

import mario


def small() -> Data:
    x = torch.tensor([[1.0, 0.0], [2.0, 0.0], [4.0, 6.0], [9.0, 9.0]])
    return Data(x=x, edge_index=torch.tensor([[0, 1, 2, 0], [2, 2, 1, 1]]))


class TestHops:
    def test_are_means_over_neighbors(self) -> None:
        data = small()
        z = mario.Hops(hops=2, epochs=1).fit(data).transform(data)
        hop1 = torch.tensor([[0.0, 0.0], [2.5, 3.0], [1.5, 0.0], [0.0, 0.0]])
        hop2 = torch.tensor([[0.0, 0.0], [0.75, 0.0], [1.25, 1.5], [0.0, 0.0]])
        torch.testing.assert_close(z, torch.cat([data.x, hop1, hop2], 1))

    def test_edge_weights_weight_the_means(self) -> None:
        data = small()
        data.edge_weight = torch.tensor([3.0, 1.0, 1.0, 0.0])
        z = mario.Hops(hops=1, epochs=1).fit(data).blocks(data)["hop1"].dense()
        torch.testing.assert_close(z, torch.tensor([[0.0, 0.0], [4.0, 6.0], [1.25, 0.0], [0.0, 0.0]]))

    def test_sparse_features_stay_sparse(self) -> None:
        data, sparse = small(), small()
        sparse.x = data.x.to_sparse_csr()
        model = mario.Hops(epochs=1).fit(sparse)
        assert all(block.is_sparse for block in model.blocks(sparse).values())
        torch.testing.assert_close(model.blocks(sparse).dense(), model.transform(data))

    def test_under_steady_each_hop_is_a_channel(self) -> None:
        data = mario.load_dataset("good-cbas", shift="concept")
        model = mario.Steady(mario.Hops(hops=2, epochs=1)).fit(data)
        assert [decision.channel for decision in model.decisions_] == ["x", "hop1", "hop2"]
        assert list(model.blocks_) == ["x", "hop1", "hop2"]
