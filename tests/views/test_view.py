"""What all views have in common."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.transforms import BaseTransform, Compose

from mario.errors import MarioError
from mario.views import (
    AdversarialFeatures,
    Chain,
    Diffusion,
    DropEdges,
    DropNodes,
    MaskFeatures,
    MaskNodes,
    OneOf,
    PerturbEdges,
    RandomWalkSubgraph,
    ShuffleFeatures,
    View,
)

VIEWS = [
    DropEdges(0.4),
    DropEdges(0.4, undirected=True),
    MaskFeatures(0.4),
    DropNodes(0.4),
    RandomWalkSubgraph(0.6),
    RandomWalkSubgraph(roots=3, length=2),
    Chain(DropEdges(0.4), MaskFeatures(0.4), DropNodes(0.2)),
]


def graph(*, sparse: bool = False) -> Data:
    generator = torch.Generator().manual_seed(7)
    x = torch.rand((20, 8), generator=generator) + 1
    return Data(
        x=x.to_sparse_csr() if sparse else x,
        edge_index=torch.randint(20, (2, 90), generator=generator),
        edge_attr=torch.arange(90.0).view(90, 1),
        y=torch.arange(20),
        name="twenty",
    )


def tensors(data: Data) -> dict[str, torch.Tensor]:
    return {key: value.to_dense() for key, value in data if isinstance(value, torch.Tensor)}


def same(left: Data, right: Data) -> bool:
    one, two = tensors(left), tensors(right)
    return one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


@pytest.mark.parametrize("view", VIEWS, ids=repr)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
class TestEveryView:
    def test_leaves_its_input_alone(self, view: View, sparse: bool, generator: torch.Generator) -> None:
        data = graph(sparse=sparse)
        before, identities = graph(sparse=sparse), {key: id(value) for key, value in data}
        view(data, generator)
        assert same(data, before)
        assert {key: id(value) for key, value in data} == identities

    def test_same_generator_state_gives_the_same_view(self, view: View, sparse: bool) -> None:
        data = graph(sparse=sparse)
        one, two, other = (view(data, torch.Generator().manual_seed(seed)) for seed in (5, 5, 6))
        assert same(one, two)
        assert not same(one, other)

    def test_leaves_the_default_generator_alone_when_given_one(
        self, view: View, sparse: bool, generator: torch.Generator
    ) -> None:
        before = torch.get_rng_state()
        view(graph(sparse=sparse), generator)
        assert torch.equal(torch.get_rng_state(), before)

    def test_is_a_transform_that_uses_the_default_generator(self, view: View, sparse: bool) -> None:
        assert isinstance(view, BaseTransform)
        data = graph(sparse=sparse)
        with torch.random.fork_rng():
            torch.manual_seed(3)
            composed = Compose([view])(data)
        assert same(composed, view(data, torch.Generator().manual_seed(3)))

    def test_keeps_sparse_sparse_and_what_is_no_tensor(
        self, view: View, sparse: bool, generator: torch.Generator
    ) -> None:
        data = graph(sparse=sparse)
        seen = view(data, generator)
        assert seen.x.layout == data.x.layout
        assert seen.name == "twenty"

    def test_edges_stay_with_their_attributes(self, view: View, sparse: bool, generator: torch.Generator) -> None:
        data = graph(sparse=sparse)
        seen = view(data, generator)
        n_id = seen.n_id if "n_id" in seen else torch.arange(20)
        assert torch.equal(n_id[seen.edge_index], data.edge_index[:, seen.edge_attr.view(-1).long()])
        assert torch.equal(seen.y, n_id)


def with_weights(edges: int) -> Data:
    generator = torch.Generator().manual_seed(1)
    return Data(
        x=torch.rand((20, 8), generator=generator),
        edge_index=torch.randint(20, (2, edges), generator=generator),
        edge_weight=torch.rand(edges, generator=generator),
        edge_attr=torch.rand(edges, 3, generator=generator),
    )


def triples(data: Data, n_id: torch.Tensor) -> list[tuple[float, ...]]:
    """Source, target, weight and attributes of each edge."""
    ends = n_id[data.edge_index].t().tolist()
    rows = zip(ends, data.edge_weight.tolist(), data.edge_attr.tolist(), strict=True)
    return [(*edge, weight, *attr) for edge, weight, attr in rows]


OTHERS = [
    MaskNodes(0.4),
    ShuffleFeatures(),
    Diffusion(),
    AdversarialFeatures(loss=lambda data: data.x.sum()),
    OneOf(DropEdges(0.4), DropNodes(0.4)),
]


@pytest.mark.parametrize("view", [*VIEWS, *OTHERS], ids=repr)
@pytest.mark.parametrize("edges", [90, 20, 0], ids=["more edges", "as many edges as nodes", "no edges"])
@pytest.mark.parametrize("batch", [False, True], ids=["one graph", "a batch"])
def test_weights_and_attributes_stay_with_their_edges(
    view: View, edges: int, batch: bool, generator: torch.Generator
) -> None:
    data = with_weights(edges)
    if batch:
        # Four graphs of five nodes: each edge is moved into the graph of its source.
        data.batch = torch.arange(20) // 5
        data.edge_index[1] = data.edge_index[0] // 5 * 5 + data.edge_index[1] % 5
    seen = view(data, generator)
    n_id = seen.n_id if "n_id" in seen else torch.arange(20)
    assert set(triples(seen, n_id)) <= set(triples(data, torch.arange(20)))
    assert seen.edge_weight.shape == (seen.num_edges,)
    assert seen.edge_attr.shape == (seen.num_edges, 3)


def test_an_added_edge_has_the_weight_and_attributes_of_a_dropped_one(generator: torch.Generator) -> None:
    data = with_weights(90)
    seen = PerturbEdges(0.5)(data, generator)
    assert not torch.equal(seen.edge_index, data.edge_index)
    assert torch.equal(seen.edge_weight, data.edge_weight)
    assert torch.equal(seen.edge_attr, data.edge_attr)


@pytest.mark.parametrize("view", [*VIEWS, *OTHERS], ids=repr)
def test_views_serve_a_plain_pyg_model(view: View, generator: torch.Generator) -> None:
    seen = view(with_weights(90), generator)
    assert type(seen.x) is torch.Tensor
    out = GCN(8, 4, 2)(seen.x, seen.edge_index, edge_weight=seen.edge_weight)
    assert out.shape == (seen.num_nodes, 4)
    out.sum().backward()


def test_a_view_of_ones_own_works_in_a_chain_and_in_a_dataset_transform(generator: torch.Generator) -> None:
    class Reverse(View):
        def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
            data.edge_index = data.edge_index.flip(0)
            return data

    data = with_weights(90)
    both = Compose([Chain(Reverse(), DropEdges(0.0)), Reverse()])(data)
    assert torch.equal(both.edge_index, data.edge_index)


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan"), float("inf"), True, "0.5", None])
@pytest.mark.parametrize("kind", [DropEdges, MaskFeatures, DropNodes])
def test_a_probability_out_of_range_is_named(kind: type[View], p: float) -> None:
    with pytest.raises(MarioError, match=r"p must be a probability in \[0, 1\], got "):
        kind(p)  # type: ignore[call-arg]


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_a_graph_without_edges_is_fine(view: View, generator: torch.Generator) -> None:
    seen = view(Data(x=torch.ones(5, 8), edge_index=torch.empty(2, 0, dtype=torch.int64)), generator)
    assert seen.num_edges == 0
    assert 1 <= seen.num_nodes <= 5


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_a_graph_of_one_node_keeps_it(view: View, generator: torch.Generator) -> None:
    seen = view(Data(x=torch.ones(1, 8), edge_index=torch.tensor([[0], [0]])), generator)
    assert seen.num_nodes == 1
