import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import degree, k_hop_subgraph

from mario.errors import MarioError
from mario.graphs.samplers import Neighbors


def graph() -> Data:
    generator = torch.Generator().manual_seed(5)
    return Data(x=torch.rand((60, 3), generator=generator), edge_index=torch.randint(60, (2, 300), generator=generator))


def test_seeds_come_first_and_are_marked(generator: torch.Generator) -> None:
    seeds = torch.tensor([7, 3, 41])
    batch = Neighbors(graph(), seeds=3, fanouts=[2, 2]).around(seeds, generator)
    assert torch.equal(batch.n_id[:3], seeds)
    assert batch.seed_mask.tolist() == [True] * 3 + [False] * (batch.num_nodes - 3)


def test_every_node_but_the_last_hop_draws_its_fanout_or_all_there_is(generator: torch.Generator) -> None:
    data = graph()
    total = degree(data.edge_index[1], 60).long()
    seeds = torch.arange(0, 60, 6)
    batch = Neighbors(data, seeds=10, fanouts=[3, 5]).around(seeds, generator)
    drawn = degree(batch.edge_index[1], batch.num_nodes).long()
    assert torch.equal(drawn[:10], total[seeds].clamp(max=3))
    first_hop = torch.unique(batch.edge_index[0, batch.edge_index[1] < 10])
    first_hop = first_hop[first_hop >= 10]
    assert torch.equal(drawn[first_hop], total[batch.n_id[first_hop]].clamp(max=5))
    last_hop = torch.ones(int(batch.num_nodes or 0), dtype=torch.bool)
    last_hop[:10] = last_hop[first_hop] = False
    assert not drawn[last_hop].any()


def test_no_edge_is_drawn_twice(generator: torch.Generator) -> None:
    data = graph()
    data.edge_attr = torch.arange(300)
    batch = Neighbors(data, seeds=20, fanouts=[3, 3, 3]).sample(generator)
    assert batch.edge_attr.unique().numel() == batch.num_edges


def test_all_neighbors_are_the_k_hop_neighborhood(generator: torch.Generator) -> None:
    data = graph()
    batch = Neighbors(data, seeds=2, fanouts=[-1, -1]).around(torch.tensor([4, 9]), generator)
    nodes, *_ = k_hop_subgraph([4, 9], 2, data.edge_index, num_nodes=60)
    assert torch.equal(batch.n_id.sort().values, nodes)


def test_neighbors_are_equally_likely_and_independent_of_place(generator: torch.Generator) -> None:
    star = Data(x=torch.eye(8), edge_index=torch.tensor([[1, 2, 3, 4, 5, 6, 7], [0] * 7]))
    sampler = Neighbors(star, seeds=1, fanouts=[3])
    triples = torch.zeros(8, 8)
    for _ in range(1400):
        drawn = sampler.around(torch.tensor([0]), generator).n_id[1:]
        assert drawn.numel() == 3
        triples[drawn.unsqueeze(1), drawn] += 1
    # A neighbor is in 3/7 of the draws (600, standard deviation 19), a pair in 1/7 (200, standard deviation 13).
    assert triples.diagonal()[1:].tolist() == pytest.approx([600] * 7, abs=80)
    pairs = triples[1:, 1:][~torch.eye(7, dtype=torch.bool)]
    assert pairs.tolist() == pytest.approx([200] * 42, abs=55)


def test_an_epoch_has_every_seed_once(generator: torch.Generator) -> None:
    batches = list(Neighbors(graph(), seeds=25, fanouts=[2]).epoch(generator))
    assert [int(batch.seed_mask.sum()) for batch in batches] == [25, 25, 10]
    seeds = torch.cat([batch.n_id[batch.seed_mask] for batch in batches])
    assert torch.equal(seeds.sort().values, torch.arange(60))


@pytest.mark.parametrize("nodes", [torch.tensor([50, 2, 8]), torch.arange(60) % 10 == 3], ids=["ids", "mask"])
def test_seeds_are_drawn_from_the_nodes_allowed(nodes: torch.Tensor, generator: torch.Generator) -> None:
    sampler = Neighbors(graph(), seeds=4, fanouts=[2], nodes=nodes)
    allowed = set(nodes.nonzero().view(-1).tolist() if nodes.dtype == torch.bool else nodes.tolist())
    batch = sampler.sample(generator)
    assert set(batch.n_id[batch.seed_mask].tolist()) <= allowed
    assert int(batch.seed_mask.sum()) == min(4, len(allowed))
    every = torch.cat([batch.n_id[batch.seed_mask] for batch in sampler.epoch(generator)])
    assert sorted(every.tolist()) == sorted(allowed)


def test_more_seeds_than_nodes_are_all_nodes(generator: torch.Generator) -> None:
    assert Neighbors(graph(), seeds=100, fanouts=[1]).sample(generator).seed_mask.sum() == 60


def test_seeds_of_embeddings_match_the_full_graph(generator: torch.Generator) -> None:
    from torch_geometric.nn import SAGEConv

    data = graph()
    first, second = SAGEConv(3, 5), SAGEConv(5, 2)
    full = second(first(data.x, data.edge_index).relu(), data.edge_index)
    batch = Neighbors(data, seeds=6, fanouts=[-1, -1]).sample(generator)
    part = second(first(batch.x, batch.edge_index).relu(), batch.edge_index)
    torch.testing.assert_close(part[batch.seed_mask], full[batch.n_id[batch.seed_mask]])


def test_an_interrupted_draw_leaves_no_trace(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler, seeds = Neighbors(graph(), seeds=2, fanouts=[2, 2]), torch.tensor([1, 2])
    expected = sampler.around(seeds, torch.Generator().manual_seed(1))
    draw, calls = sampler._draw, []

    def interrupted(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return draw(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(sampler, "_draw", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sampler.around(torch.tensor([5, 6]), generator)
    again = sampler.around(seeds, torch.Generator().manual_seed(1))
    assert torch.equal(again.n_id, expected.n_id)
    assert torch.equal(again.edge_index, expected.edge_index)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"seeds": 0, "fanouts": [2]}, "seeds must be an integer of at least 1, got 0"),
        ({"seeds": 2, "fanouts": []}, "fanouts is empty"),
        ({"seeds": 2, "fanouts": [3, -2]}, "fanouts must hold integers .* got -2"),
        ({"seeds": 2, "fanouts": [1.5]}, r"fanouts must hold integers .* got 1\.5"),
        ({"seeds": 2, "fanouts": [1], "nodes": torch.tensor([60])}, r"nodes must lie in 0\.\.59, got 60\.\.60"),
        ({"seeds": 2, "fanouts": [1], "nodes": torch.tensor([1, 1])}, "nodes holds a node twice"),
        ({"seeds": 2, "fanouts": [1], "nodes": torch.zeros(60, dtype=torch.bool)}, "nodes is empty"),
        (
            {"seeds": 2, "fanouts": [1], "nodes": torch.ones(9, dtype=torch.bool)},
            "a mask of length 9, but the graph has 60",
        ),
        ({"seeds": 2, "fanouts": [1], "nodes": torch.ones(3)}, "nodes must be int64 ids or a bool mask"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(MarioError, match=match):
        Neighbors(graph(), **arguments)  # type: ignore[arg-type]
