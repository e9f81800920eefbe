"""Each quantity beside a slow version, on small graphs."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs import quantity
from mario.graphs.declared import QUANTITIES
from mario.graphs.graph_sets import stack_graphs


def slow(data: Data, name: str) -> list[float]:
    n = data.x.size(0)
    edges = list(zip(*data.edge_index.tolist(), strict=True))
    degree = [sum(source == node for source, _ in edges) for node in range(n)]
    near = [{b for a, b in edges if a == i} | {a for a, b in edges if b == i} for i in range(n)]
    near = [others - {i} for i, others in enumerate(near)]
    if name == "degree":
        return [float(d) for d in degree]
    if name == "word":
        return data.x.sum(1).tolist()
    if name == "clustering":
        pairs = [[(a, b) for a in near[i] for b in near[i] if a < b] for i in range(n)]
        return [sum(b in near[a] for a, b in of) / len(of) if of else 0.0 for of in pairs]
    if name == "size":
        found = []
        for start in range(n):
            seen, left = {start}, [start]
            while left:
                for other in near[left.pop()] - seen:
                    seen.add(other)
                    left.append(other)
            found.append(float(len(seen)))
        return found
    home = np.full(n, 1 / n)
    if name == "locality":
        home = np.eye(n)[degree.index(max(degree))]
    onward = np.zeros((n, n))
    for source, target in edges:
        onward[target, source] += 1 / degree[source]
    for node in range(n):
        if not degree[node]:
            onward[:, node] = home
    return np.linalg.solve(np.eye(n) - 0.85 * onward, 0.15 * home).tolist()


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.data())
def test_every_quantity_is_that_of_the_slow_version(nodes: int, draws: st.DataObject) -> None:
    node = st.integers(0, nodes - 1)
    edges = draws.draw(st.lists(st.tuples(node, node), max_size=20))
    data = Data(
        x=torch.arange(2.0 * nodes).view(nodes, 2), edge_index=torch.tensor(edges).view(-1, 2).T.contiguous().long()
    )
    for name in QUANTITIES:
        assert quantity(data, name).double().tolist() == pytest.approx(slow(data, name), abs=1e-7), name


def test_a_graph_of_a_set_has_the_mean_of_its_nodes_but_its_size() -> None:
    ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
    both = stack_graphs([Data(x=torch.ones(3, 2), edge_index=ring), Data(x=torch.ones(2, 2), edge_index=ring[:, :1])])
    assert quantity(both, "size").tolist() == [3, 2]
    assert quantity(both, "degree").tolist() == [1, 0.5]
    assert quantity(both, "clustering").tolist() == [1, 0]


def test_other_names_are_refused() -> None:
    with pytest.raises(MarioError, match=r"unknown quantity 'degre'; .*did you mean 'degree'"):
        quantity(Data(x=torch.eye(2), edge_index=torch.empty(2, 0).long()), "degre")
