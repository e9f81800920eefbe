"""Faults of a graph, at every public entry that takes one."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

import mario
from kinds.kind import Kind, equal, finite_or_refused, is_finite, refused, same
from mario.datasets import save_dataset
from mario.evaluation import evaluate_many, invariance
from mario.graphs import check_graph, save_graph, save_mapped, split_graph, training_graph
from mario.graphs.samplers import Clusters, FullGraph, Graphs, Neighbors, RandomWalk
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
)

NAN, INF = float("nan"), float("inf")
NODES, EDGES = 8, 16


def mask(*nodes: int) -> Tensor:
    return torch.zeros(NODES, dtype=torch.bool).index_fill_(0, torch.tensor(nodes), True)


def features() -> Tensor:
    return torch.randn(NODES, 3, generator=torch.Generator().manual_seed(0))


def ring() -> Tensor:
    nodes = torch.arange(NODES)
    there = torch.stack([nodes, (nodes + 1) % NODES])
    return torch.cat([there, there.flip(0)], dim=1)


def sound(**changes: Any) -> Data:
    """A ring of eight nodes with all that a graph may have, and ``changes``; without what is ``None``."""
    parts: dict[str, Any] = {
        "x": features(),
        "edge_index": ring(),
        "y": torch.arange(NODES) % 2,
        "train_mask": mask(0, 1),
        "id_val_mask": mask(2),
        "id_test_mask": mask(3),
        "ood_val_mask": mask(4, 5),
        "ood_test_mask": mask(6, 7),
        "domain_id": torch.arange(NODES) // 2,
        "env_id": torch.tensor([0, 1] + [-1] * 6),
        "setting": "transductive",
        "metric": "accuracy",
        "num_classes": 2,
    }
    data = Data()
    for key, value in (parts | changes).items():
        if value is not None:
            data[key] = value
    return data


def graph_set(**changes: Any) -> Data:
    """Four pairs of nodes with an edge each."""
    parts: dict[str, Any] = {
        "x": features(),
        "edge_index": torch.tensor([[0, 2, 4, 6], [1, 3, 5, 7]]),
        "batch": torch.arange(NODES) // 2,
        "ptr": torch.tensor([0, 2, 4, 6, 8]),
        "y": torch.tensor([0, 1, 0, 1]),
        "train_mask": torch.tensor([True, True, False, False]),
        "ood_test_mask": torch.tensor([False, False, True, True]),
        "num_classes": 2,
    }
    data = Data()
    for key, value in (parts | changes).items():
        if value is not None:
            data[key] = value
    return data


def csr(crow: list[int], col: list[int], values: list[float] | None = None, types: Any = None) -> Tensor:
    """Sparse features of the eight nodes and four columns, with any indices."""
    rows, columns = types or (torch.int64, torch.int64)
    crow = crow + [crow[-1]] * (NODES + 1 - len(crow))
    parts = torch.tensor(crow, dtype=rows), torch.tensor(col, dtype=columns), torch.tensor(values or [1.0] * len(col))
    return torch.sparse_csr_tensor(*parts, size=(NODES, 4), check_invariants=False)


def raw_csr(crow: list[int], col: list[int], count: int) -> Tensor:
    """The same with as many row pointers and values as given."""
    return torch.sparse_csr_tensor(
        torch.tensor(crow), torch.tensor(col), torch.ones(count), size=(NODES, 4), check_invariants=False
    )


def edges(*ends: int) -> Tensor:
    """The ring with its first edges replaced."""
    index = ring()
    for number, end in enumerate(ends):
        index[1, number] = end
    return index


def changed(**changes: Any) -> Callable[[], Any]:
    return lambda: sound(**changes)


# Reading these would read or write foreign memory, or cannot be interpreted: refused by everything.
STRUCTURE: dict[str, Callable[[], Any]] = {
    "a dict": lambda: {"x": features(), "edge_index": ring()},
    "None": lambda: None,
    "a tensor": features,
    "a list of graphs": lambda: [sound(), sound()],
    "a pair of tensors": lambda: (features(), ring()),
    "the class Data": lambda: Data,
    "a path": lambda: "graph.safetensors",
    "an array": lambda: np.eye(3),
    "HeteroData": lambda: HeteroData(paper={"x": features()}),
    "an edge to the number of nodes": changed(edge_index=edges(NODES)),
    "an edge to -1": changed(edge_index=edges(-1)),
    "an edge to 2**40": changed(edge_index=edges(2**40)),
    "an edge to -2**62": changed(edge_index=edges(-(2**62))),
    "int32 edges": changed(edge_index=ring().int()),
    "float edges": changed(edge_index=ring().float()),
    "bool edges": changed(edge_index=ring().bool()),
    "edges [E, 2]": changed(edge_index=ring().t()),
    "edges [E]": changed(edge_index=ring()[0]),
    "edges [3, E]": changed(edge_index=torch.zeros(3, 4).long()),
    "edges [2, E, 1]": changed(edge_index=ring().unsqueeze(2)),
    "a list of edges": changed(edge_index=[[0, 1], [1, 0]]),
    "an array of edges": changed(edge_index=ring().numpy()),
    "a sparse matrix as edges": changed(edge_index=torch.eye(2).to_sparse_csr()),
    "COO edges": changed(edge_index=ring().to_sparse()),
    "edges on meta": changed(edge_index=torch.empty(2, 4, dtype=torch.int64, device="meta")),
    "a sparse column at the width": lambda: sound(x=csr([0, 1, 2], [0, 4])),
    "a huge sparse column": lambda: sound(x=csr([0, 1, 2], [0, 2**40])),
    "a negative sparse column": lambda: sound(x=csr([0, 1, 2], [-1, 0])),
    "sparse rows that fall": lambda: sound(x=csr([0, 2, 1, 2], [0, 1])),
    "a negative row pointer": lambda: sound(x=csr([0, -1, 2], [0, 1])),
    "a first row pointer above 0": lambda: sound(x=csr([1, 1, 2], [0, 1])),
    "a huge last row pointer": lambda: sound(x=csr([0, 1, 2**50], [0, 1])),
    "a last row pointer too small": lambda: sound(x=csr([0, 1, 1], [0, 1])),
    "too few row pointers": lambda: sound(x=raw_csr([0, 2], [0, 1], 2)),
    "fewer sparse columns than values": lambda: sound(x=raw_csr([0] + [2] * NODES, [0], 2)),
    "sparse columns out of order": lambda: sound(x=csr([0, 2], [1, 0])),
    "a sparse column twice": lambda: sound(x=csr([0, 2], [1, 1])),
    "sparse indices of two types": lambda: sound(x=csr([0, 1], [0], types=(torch.int32, torch.int64))),
    "x [nodes]": changed(x=torch.ones(NODES)),
    "x [nodes, 1, 1]": changed(x=torch.ones(NODES, 1, 1)),
    "x a number": changed(x=torch.tensor(1.0)),
    "x a list": changed(x=[[1.0]] * NODES),
    "x an array": changed(x=np.ones((NODES, 3))),
    "COO x": changed(x=torch.eye(NODES).to_sparse()),
    "CSC x": changed(x=torch.eye(NODES).to_sparse_csc()),
    "nested x": changed(x=torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])),
    "quantized x": changed(x=torch.quantize_per_tensor(torch.ones(NODES, 3), 0.1, 0, torch.qint8)),
    "x on meta": changed(x=torch.empty(NODES, 3, device="meta")),
    "one edge weight too few": changed(edge_weight=torch.ones(EDGES - 1)),
    "an edge weight for all": changed(edge_weight=torch.tensor(1.0)),
    "edge attributes of nodes": changed(edge_attr=torch.ones(NODES, 2)),
    "no edge attributes": changed(edge_attr=torch.ones(0, 2)),
    "fewer rows than num_nodes": changed(num_nodes=NODES + 1),
    "num_nodes a bool": changed(num_nodes=True),
    "num_nodes a text": changed(num_nodes=str(NODES)),
    "num_nodes a tensor": changed(num_nodes=torch.tensor([NODES, NODES])),
    "COO mask": changed(train_mask=mask(0).to_sparse()),
    "a nested attribute": changed(other=torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])),
    "an attribute with a bad row pointer": lambda: sound(other=csr([0, 9], [0])),
    "an attribute on meta": changed(other=torch.empty(NODES, device="meta")),
    "a short batch": lambda: graph_set(batch=torch.zeros(NODES - 1).long(), ptr=None),
    "a float batch": lambda: graph_set(batch=torch.zeros(NODES), ptr=None),
    "a negative batch": lambda: graph_set(batch=torch.full((NODES,), -1), ptr=None),
    "a batch of huge ids": lambda: graph_set(batch=torch.full((NODES,), 2**50), ptr=None),
    "a batch that is a list": lambda: graph_set(batch=[0] * NODES, ptr=None),
    "ptr without batch": changed(ptr=torch.tensor([0, NODES])),
    "ptr a list": lambda: graph_set(ptr=[0, 2, 4, 6, 8]),
}

# Refused by what trains, embeds, evaluates or keeps a graph; `BEFORE_SPLIT` also by the split.
VALUES: dict[str, Callable[[], Any]] = {
    "no x": changed(x=None),
    "no edges": changed(edge_index=None),
    "an entry that is NaN": lambda: sound(
        x=features().index_put_((torch.tensor(7), torch.tensor(2)), torch.tensor(NAN))
    ),
    "all entries NaN": changed(x=torch.full((NODES, 3), NAN)),
    "an infinite entry": changed(x=torch.full((NODES, 3), INF)),
    "an entry of minus infinity": changed(x=torch.full((NODES, 3), -INF)),
    "a sparse NaN": lambda: sound(x=csr([0, 1], [0], [NAN])),
    "a sparse infinity": lambda: sound(x=csr([0, 1], [0], [INF])),
    "whole numbers as x": changed(x=torch.ones(NODES, 3).long()),
    "bools as x": changed(x=torch.ones(NODES, 3).bool()),
    "float16 x": changed(x=features().half()),
    "bfloat16 x": changed(x=features().bfloat16()),
    "complex x": changed(x=features().to(torch.complex64)),
    "no nodes": changed(x=torch.ones(0, 3), edge_index=torch.zeros(2, 0).long()),
    "no features": changed(x=torch.ones(NODES, 0)),
    "x that requires gradients": lambda: sound(x=features().requires_grad_()),
    "x too large for float32": changed(x=torch.full((NODES, 3), 1e39, dtype=torch.float64)),
    "an edge weight that is NaN": changed(edge_weight=torch.full((EDGES,), NAN)),
    "an infinite edge weight": changed(edge_weight=torch.full((EDGES,), INF)),
    "a negative edge weight": changed(edge_weight=torch.full((EDGES,), -1.0)),
    "whole edge weights": changed(edge_weight=torch.ones(EDGES).long()),
    "edge weights in a column": changed(edge_weight=torch.ones(EDGES, 1)),
    "a list of edge weights": changed(edge_weight=[1.0] * EDGES),
    "edge weights too large for float32": changed(edge_weight=torch.full((EDGES,), 1e300, dtype=torch.float64)),
    "edge weights that require gradients": lambda: sound(edge_weight=torch.ones(EDGES, requires_grad=True)),
    "edge attributes without columns": changed(edge_attr=torch.ones(EDGES)),
    "edge attributes that are NaN": changed(edge_attr=torch.full((EDGES, 1), NAN)),
    "whole edge attributes": changed(edge_attr=torch.ones(EDGES, 1).long()),
    "float labels": changed(y=torch.zeros(NODES)),
    "labels in a column": changed(y=torch.zeros(NODES, 1).long()),
    "one-hot labels": changed(y=torch.eye(NODES).long()),
    "int32 labels": changed(y=torch.zeros(NODES, dtype=torch.int32)),
    "a label too few": changed(y=torch.zeros(NODES - 1).long()),
    "labels in a list": changed(y=[0] * NODES),
    "a label of -2": changed(y=torch.tensor([-2] + [0] * 7)),
    "a label at num_classes": changed(y=torch.full((NODES,), 2)),
    "num_classes a text": changed(num_classes="2"),
    "num_classes a bool": changed(num_classes=True),
    "num_classes 0": changed(num_classes=0),
    "num_classes a fraction": changed(num_classes=2.0),
}
BEFORE_SPLIT = [name for name in VALUES if "num_classes" not in name]
VALUES |= {
    "a mask of numbers": changed(train_mask=mask(0).long()),
    "a mask of floats": changed(train_mask=mask(0).float()),
    "a mask of indices": changed(train_mask=torch.tensor([0, 1])),
    "a mask in a list": changed(train_mask=[True] * NODES),
    "a mask for each of ten splits": changed(train_mask=torch.ones(NODES, 10).bool()),
    "a short mask": changed(id_val_mask=torch.ones(NODES - 1).bool()),
    "an empty mask": changed(ood_test_mask=torch.zeros(NODES).bool()),
    "masks that overlap": changed(ood_test_mask=mask(0, 6, 7)),
    "masks that are the same": changed(id_val_mask=mask(0, 1)),
    "float domains": changed(domain_id=torch.zeros(NODES)),
    "a short list of environments": changed(env_id=torch.zeros(NODES - 1).long()),
    "groups without names": changed(group_id=torch.zeros(NODES).long()),
    "groups of one name": changed(group_id=torch.zeros(NODES).long(), groups=["T1", "T1"]),
    "groups whose names are numbers": changed(group_id=torch.zeros(NODES).long(), groups=[1, 2]),
    "a group without a name": changed(group_id=torch.full((NODES,), 5), groups=["T1"]),
    "a group of -2": changed(group_id=torch.full((NODES,), -2), groups=["T1"]),
    "float groups": changed(group_id=torch.zeros(NODES), groups=["T1"]),
    "a group named id_val": changed(group_id=torch.zeros(NODES).long(), groups=["id_val"]),
    "a group named step": changed(group_id=torch.zeros(NODES).long(), groups=["step"]),
    "a setting with a capital": changed(setting="Inductive"),
    "an empty setting": changed(setting=""),
    "a setting that is a number": changed(setting=1),
    "a visible mask without a setting": changed(visible_mask=mask(0, 1, 2), setting=None),
    "a visible mask without training nodes": changed(visible_mask=mask(2), setting="inductive"),
    "a visible mask with test nodes": changed(visible_mask=mask(0, 1, 6), setting="inductive"),
    "a visible mask of numbers": changed(visible_mask=mask(0, 1).long(), setting="inductive"),
    "a short visible mask": changed(visible_mask=torch.ones(NODES - 1).bool(), setting="inductive"),
}

# Of a set of graphs.
SETS: dict[str, Callable[[], Any]] = {
    "graphs whose nodes alternate": lambda: graph_set(batch=torch.arange(NODES) % 2, ptr=None),
    "a graph without nodes": lambda: graph_set(batch=torch.tensor([0, 0, 2, 2, 3, 3, 4, 4]), ptr=None),
    "an edge between graphs": lambda: graph_set(edge_index=torch.tensor([[0], [2]])),
    "ptr that falls": lambda: graph_set(ptr=torch.tensor([0, 4, 2, 6, 8])),
    "ptr beyond the nodes": lambda: graph_set(ptr=torch.tensor([0, 2, 4, 6, 80])),
    "a wrong number of graphs": lambda: graph_set(num_graphs=7),
}
SET_VALUES: dict[str, Callable[[], Any]] = {
    "a label for each node of a set": lambda: graph_set(y=torch.zeros(NODES).long()),
    "a mask for each node of a set": lambda: graph_set(train_mask=mask(0)),
    "a visible mask of a set": lambda: graph_set(visible_mask=torch.ones(4).bool(), setting="inductive"),
}


@cache
def fitted(name: str = "RandomInit", **settings: Any) -> Any:
    """A small model of the sound graph."""
    return model(name, **settings).fit(sound())


def model(name: str = "RandomInit", **settings: Any) -> Any:
    small = {"epochs": 1, "steps_per_epoch": 1, "hidden_channels": 4, "num_layers": 2, "sampling": "full"}
    return getattr(mario, name)(**(small | settings))


VIEWS: dict[str, Any] = {
    "DropEdges": DropEdges(0.5),
    "DropNodes": DropNodes(0.5),
    "MaskFeatures": MaskFeatures(0.5),
    "MaskNodes": MaskNodes(0.5),
    "PerturbEdges": PerturbEdges(0.5),
    "RandomWalkSubgraph": RandomWalkSubgraph(0.5),
    "ShuffleFeatures": ShuffleFeatures(),
    "Diffusion": Diffusion(),
    "AdversarialFeatures": AdversarialFeatures(loss=lambda data: data.x.sum()),
    "Chain": Chain(DropEdges(0.5), MaskFeatures(0.5)),
    "OneOf": OneOf(DropEdges(0.5), MaskFeatures(0.5)),
}

CHECKED: dict[str, Callable[[Any], object]] = {
    "check_graph": check_graph,
    "fit": lambda data: model().fit(data),
    "fit of GRACE": lambda data: model("GRACE").fit(data),
    "fit_transform": lambda data: model().fit_transform(data),
    "transform": lambda data: fitted().transform(data),
    "predict": lambda data: fitted("ERM").predict(data),
    "evaluate": lambda data: mario.evaluate(fitted(), data),
    "evaluate_many": lambda data: evaluate_many([torch.ones(NODES, 2)], data),
    "invariance": lambda data: invariance(fitted(), data),
    "training_graph": training_graph,
    "save_dataset": lambda data: save_dataset(data, "mine"),
}
SPLIT: dict[str, Callable[[Any], object]] = {"split_graph": lambda data: split_graph(data, domain="degree")}
ANY: dict[str, Callable[[Any], object]] = {
    "save_graph": lambda data: save_graph(data, "graph.safetensors"),
    "save_mapped": lambda data: save_mapped(data, "mapped"),
    "FullGraph": lambda data: FullGraph(data).sample(),
    "RandomWalk": lambda data: RandomWalk(data, roots=1, length=1).sample(),
    "Neighbors": lambda data: Neighbors(data, seeds=1, fanouts=[1]).sample(),
    "Clusters": lambda data: Clusters(data, clusters=1, method="bfs").sample(),
    "Graphs": lambda data: Graphs(data, per_batch=1).sample(),
    **VIEWS,
}


def kinds() -> list[Kind]:
    return [*_refused(), *_handled(), *_changed_later(), *_at_the_end_of_the_range()]


def _refused() -> Iterator[Kind]:
    for fault, made in STRUCTURE.items():
        for entry, call in (CHECKED | SPLIT | ANY).items():
            yield refused(f"{fault} in {entry}", lambda made=made, call=call: call(made()))
    for fault, made in VALUES.items():
        for entry, call in (CHECKED | (SPLIT if fault in BEFORE_SPLIT else {})).items():
            yield refused(f"{fault} in {entry}", lambda made=made, call=call: call(made()))
    of_sets = {"check_graph": check_graph, "fit of GraphCL": lambda data: model("GraphCL").fit(data)}
    parted = {"Graphs": ANY["Graphs"], "OneOf": ANY["OneOf"]}
    for fault, made in SETS.items():
        for entry, call in (of_sets | parted).items():
            yield refused(f"{fault} in {entry}", lambda made=made, call=call: call(made()))
    for fault, made in SET_VALUES.items():
        for entry, call in of_sets.items():
            yield refused(f"{fault} in {entry}", lambda made=made, call=call: call(made()))
    yield refused("a set of graphs for a method of nodes", lambda: model("GRACE").fit(graph_set()))
    yield refused("a graph for a method of sets", lambda: model("GraphCL").fit(sound()))
    yield refused("other features than in fit", lambda: fitted().transform(sound(x=torch.ones(NODES, 5))))
    yield refused("no labels for a supervised method", lambda: model("ERM").fit(sound(y=None)))
    yield refused("no masks for a supervised method", lambda: model("ERM").fit(_bare(sound())))
    yield refused("no labels to evaluate", lambda: mario.evaluate(fitted(), sound(y=None)))
    yield refused("no training nodes to evaluate", lambda: mario.evaluate(fitted(), _bare(sound())))
    yield refused("other edge attributes than in fit", _other_attributes)
    yield refused("a mapped graph of sparse features", lambda: save_mapped(sound(x=csr([0, 1], [0])), "mapped"))
    yield refused("an attribute that JSON cannot hold", lambda: save_graph(sound(note=object()), "graph.safetensors"))
    yield refused("an attribute named starts", lambda: save_mapped(sound(starts=torch.zeros(3)), "mapped"))
    yield refused("an attribute named ../x", lambda: save_mapped(_named("../x"), "mapped"))
    yield refused("an attribute named /tmp/x", lambda: save_mapped(_named("/tmp/x"), "mapped"))
    yield refused("an attribute with a null character", lambda: save_mapped(_named("a\0b"), "mapped"))
    yield refused("a complex attribute", lambda: save_mapped(sound(other=torch.ones(3).to(torch.complex64)), "mapped"))


def _bare(data: Data) -> Data:
    return Data(x=data.x, edge_index=data.edge_index, y=data.y)


def _named(name: str) -> Data:
    data = sound()
    data[name] = torch.zeros(3)
    return data


def _other_attributes() -> object:
    two = sound(edge_attr=torch.ones(EDGES, 2))
    return model(encoder="gat").fit(two).transform(sound(edge_attr=torch.ones(EDGES, 3)))


def _expanded() -> Tensor:
    return torch.ones(1, 3).expand(NODES, 3)


def _in_inference_mode() -> Data:
    with torch.inference_mode():
        return sound(x=features().clone(), edge_index=ring().clone())


class Subclass(Data):
    """A user's own kind of Data."""


SAME: dict[str, tuple[Callable[[], Data], Callable[[], Data], float]] = {
    "float64 x": (lambda: sound(x=features().double()), sound, 0.0),
    "x by columns": (lambda: sound(x=features().t().contiguous().t()), sound, 1e-6),
    "x with holes": (lambda: sound(x=features().repeat_interleave(2, 0)[::2]), sound, 0.0),
    "x expanded": (lambda: sound(x=_expanded()), lambda: sound(x=torch.ones(NODES, 3)), 1e-6),
    "int32 sparse x": (
        lambda: sound(x=_sparse(torch.int32)),
        lambda: sound(x=_sparse(torch.int64).to_dense()),
        1e-5,
    ),
    "sparse x": (lambda: sound(x=_sparse(torch.int64)), lambda: sound(x=_sparse(torch.int64).to_dense()), 1e-5),
    "edges by columns": (lambda: sound(edge_index=ring().t().contiguous().t()), sound, 0.0),
    "edges in another order": (lambda: sound(edge_index=ring().flip(1)), sound, 1e-5),
    "tensors of inference mode": (_in_inference_mode, sound, 0.0),
    "a subclass of Data": (lambda: Subclass(**sound().to_dict()), sound, 0.0),
    "num_nodes stated": (lambda: sound(num_nodes=NODES), sound, 0.0),
    "attributes of other types": (lambda: sound(note=object(), more={1: 2}, nothing=[]), sound, 0.0),
    "a tensor of another shape": (lambda: sound(other=torch.ones(2, 3, 4)), sound, 0.0),
    "a number as a tensor": (lambda: sound(other=torch.tensor(3)), sound, 0.0),
    "strange labels elsewhere": (lambda: sound(other_y=torch.full((NODES,), NAN)), sound, 0.0),
    "edge weights of 1": (lambda: sound(edge_weight=torch.ones(EDGES)), sound, 1e-5),
    "no labels": (lambda: sound(y=None, num_classes=None), sound, 0.0),
    "no domains": (lambda: sound(domain_id=None, env_id=None), sound, 0.0),
    "a visible mask in the transductive setting": (lambda: sound(visible_mask=mask(0, 1, 2)), sound, 0.0),
}


def _sparse(dtype: torch.dtype) -> Tensor:
    dense = features().relu()
    made = dense.to_sparse_csr()
    return torch.sparse_csr_tensor(
        made.crow_indices().to(dtype), made.col_indices().to(dtype), made.values(), dense.shape
    )


def _handled() -> Iterator[Kind]:
    for fault, (odd, right, tolerance) in SAME.items():
        for encoder in ("gcn", "sage", "gat", "gin"):
            if encoder == "gat" and fault == "edge weights of 1":
                continue  # which it does not take, and says so
            yield same(
                f"{fault} with {encoder}",
                lambda odd=odd, encoder=encoder: model(encoder=encoder).fit_transform(odd()),
                lambda right=right, encoder=encoder: model(encoder=encoder).fit_transform(right()),
                tolerance,
            )
    for name in ("GRACE", "MARIO", "DGI", "BGRL"):
        for fault in ("float64 x", "no labels", "a subclass of Data", "tensors of inference mode"):
            odd = SAME[fault][0]
            yield same(
                f"{fault} in fit of {name}",
                lambda odd=odd, name=name: model(name).fit(odd()).transform(sound()),
                lambda name=name: model(name).fit(sound()).transform(sound()),
            )
    for name, view in VIEWS.items():
        if name in ("Diffusion", "AdversarialFeatures"):
            continue
        yield Kind(
            f"x that is NaN in {name}, which looks at no values",
            lambda view=view: view(sound(x=torch.full((NODES, 3), NAN)), torch.Generator().manual_seed(0)),
            lambda seen, view=view: equal(seen.edge_index, view(sound(), torch.Generator().manual_seed(0)).edge_index),
        )
    yield same("edges twice", lambda: _embedded(ring().repeat(1, 2)), lambda: _embedded(ring(), 2.0), 1e-5)
    yield same("an edge from each node to itself", lambda: _embedded(_looped()), lambda: _embedded(ring()), 1e-5)
    yield Kind("no edge at all", lambda: _embedded(ring()[:, :0]), lambda z: z.shape == (NODES, 4) and is_finite(z))
    yield Kind("a single node", _single, lambda z: z.shape == (1, 4) and is_finite(z))
    yield same("nodes in another order", _permuted, lambda: fitted().transform(sound()), 1e-5)
    yield same("-1 for labels outside of the masks", _unlabeled, lambda: mario.evaluate(fitted(), _fewer(sound())))
    yield same(
        "a mapped graph",
        lambda: (save_mapped(sound(), "mapped"), fitted().transform(mario.graphs.load_mapped("mapped")))[1],
        lambda: fitted().transform(sound()),
        1e-6,
    )
    yield same(
        "a graph from a file",
        lambda: (save_graph(sound(), "a.safetensors"), mario.graphs.load_graph("a.safetensors"))[1],
        sound,
    )
    yield same("labels that training must not see", _other_test_labels, lambda: model("MARIO").fit_transform(sound()))


def _embedded(edge_index: Tensor, weight: float | None = None) -> Tensor:
    extra = {} if weight is None else {"edge_weight": torch.full((edge_index.size(1),), weight)}
    z: Tensor = fitted().transform(Data(x=features(), edge_index=edge_index, **extra))
    return z


def _looped() -> Tensor:
    return torch.cat([ring(), torch.arange(NODES).repeat(2, 1)], dim=1)


def _single() -> Tensor:
    data = Data(x=torch.ones(1, 3), edge_index=torch.zeros(2, 0).long())
    z: Tensor = model().fit_transform(data)
    return z


def _permuted() -> Tensor:
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(1))
    data = Data(x=features()[order], edge_index=order.argsort()[ring()])
    z: Tensor = fitted().transform(data)
    return z[order.argsort()]


def _fewer(data: Data) -> Data:
    del data.id_test_mask
    return data


def _unlabeled() -> object:
    return mario.evaluate(fitted(), _fewer(sound(y=torch.tensor([0, 1, 0, -1, 0, 1, 0, 1]))))


def _other_test_labels() -> object:
    return model("MARIO").fit_transform(sound(y=torch.tensor([0, 1, 1, 0, 1, 0, 1, 0])))


def _changed_later() -> Iterator[Kind]:
    """Tensors that have passed and are then changed in place."""

    def after(change: Callable[[Data], object], entry: Callable[[Data], object], data: Data | None = None) -> object:
        data = sound() if data is None else data
        entry(data)
        change(data)
        return entry(data)

    def edge(data: Data) -> None:
        data.edge_index[0, 0] = NODES

    def untracked(data: Data) -> None:
        data.x.numpy()[0, 0] = NAN

    def column(data: Data) -> None:
        data.x.col_indices()[0] = 9

    for entry, call in (
        CHECKED | SPLIT | {name: ANY[name] for name in ("DropEdges", "RandomWalk", "Clusters")}
    ).items():
        if entry == "save_dataset":
            continue  # writes once
        yield refused(f"an edge changed in place after {entry}", lambda call=call: after(edge, call))
    for entry in ("check_graph", "fit", "transform", "evaluate"):
        yield refused(f"x changed by numpy after {entry}", lambda e=entry: after(untracked, CHECKED[e]))
        if entry in ("check_graph", "fit"):
            yield refused(
                f"a sparse column changed after {entry}",
                lambda e=entry: after(column, CHECKED[e], sound(x=csr([0, 1], [0]))),
            )


def _at_the_end_of_the_range() -> Iterator[Kind]:
    sizes = {"3e38": 3e38, "1e30": 1e30, "1e20": 1e20, "1e-20": 1e-20, "1e-38": 1e-38, "1e-45": 1e-45, "0": 0.0}
    for size, value in sizes.items():
        for name in ("RandomInit", "RawFeatures", "GRACE", "MARIO", "DGI", "BGRL", "GAE", "GraphMAE", "ERM"):
            yield finite_or_refused(
                f"features of size {size} in {name}",
                lambda name=name, value=value: model(name).fit_transform(sound(x=features().sign() * value)),
            )
        yield finite_or_refused(
            f"features of size {size} evaluated",
            lambda value=value: mario.evaluate(model("RawFeatures").fit(sound()), sound(x=features().sign() * value)),
        )
        yield finite_or_refused(
            f"edge weights of size {size}",
            lambda value=value: model().fit_transform(sound(edge_weight=torch.full((EDGES,), value))),
        )
        yield finite_or_refused(
            f"features of size {size} in invariance",
            lambda value=value: invariance(fitted(), sound(x=features().sign() * value)),
        )
