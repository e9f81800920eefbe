import pytest
import torch
from torch_geometric.data import Data

import mario
from mario.contrast import nt_xent
from mario.errors import MarioError
from mario.graphs.graph_sets import select_graphs
from mario.methods import find
from mario.methods.graphcl import AUGMENTATIONS, GraphCL
from mario.training import train
from mario.views import Chain, DropEdges, DropNodes, MaskFeatures, MaskNodes, OneOf, PerturbEdges, RandomWalkSubgraph

from .tiny_graphs import tiny_graph_set

SMALL = {"hidden_channels": 8, "num_layers": 2, "epochs": 3, "steps_per_epoch": 2, "graphs": 12}


def both(kind: str) -> dict[str, str]:
    return {"augment_1": kind, "augment_2": kind}


@pytest.mark.parametrize("name", ["graphcl", "graphcl+mario"])
@pytest.mark.parametrize("kind", AUGMENTATIONS)
def test_every_augmentation_trains(name: str, kind: str) -> None:
    data = tiny_graph_set()
    recipe = {"clusters": 4, "prototype_steps": 2} if "mario" in name else {}
    model = find(name).from_settings({**SMALL, "epochs": 1, **both(kind), **recipe}).fit(data)
    z = model.transform(data)
    assert z.shape == (40, 8)
    assert torch.isfinite(z).all()


def test_augmentations_are_the_papers() -> None:
    model = GraphCL(ratio=0.1, subgraph_ratio=0.3, mask_fill="noise")
    shown = {kind: repr(model.augmentation(kind, 0.2, 0.4)) for kind in AUGMENTATIONS}
    four = [DropNodes(0.1), RandomWalkSubgraph(0.3), PerturbEdges(0.1), MaskNodes(0.1, fill="noise")]
    assert [shown[kind] for kind in ("nodes", "subgraph", "edges", "attributes")] == [repr(view) for view in four]
    for k in (2, 3, 4):
        assert shown[f"random{k}"] == repr(OneOf(*four[:k]))
    assert shown["drop_and_mask"] == repr(Chain(MaskFeatures(0.2), DropEdges(0.4)))
    assert shown["none"] == "Chain()"


def test_the_two_views_have_their_own_probabilities(generator: torch.Generator) -> None:
    model = GraphCL(
        **both("drop_and_mask"), mask_features_1=1.0, mask_features_2=0.0, drop_edges_1=0.0, drop_edges_2=1.0
    )
    data = tiny_graph_set()
    alpha, beta = model.make_views(data, generator)
    assert not alpha.x.any()
    assert torch.equal(alpha.edge_index, data.edge_index)
    assert torch.equal(beta.x, data.x)
    assert beta.edge_index.size(1) == 0


@pytest.mark.parametrize("kind", AUGMENTATIONS)
def test_every_view_has_every_graph_in_its_place(kind: str, generator: torch.Generator) -> None:
    data = tiny_graph_set()
    for view in GraphCL(**both(kind)).make_views(data, generator):
        assert view.batch.unique().tolist() == list(range(40))
        assert torch.equal(view.y, data.y)
        assert torch.equal(view.batch[view.edge_index[0]], view.batch[view.edge_index[1]])
        if "n_id" in view:
            assert torch.equal(data.batch[view.n_id], view.batch)


def test_the_loss_by_hand() -> None:
    three = select_graphs(tiny_graph_set(), torch.tensor([0, 1, 2]))
    data = Data(x=three.x, edge_index=three.edge_index, batch=three.batch)
    model = GraphCL(**SMALL, **both("none"), tau=0.2)
    model.prepare(data)
    model.eval()
    alpha, beta = model.make_views(data)
    h = model.encoder_(data.x, data.edge_index)
    pooled = torch.stack([h[data.batch == i].amax(0) for i in range(3)])
    z = model.projector_(pooled)
    torch.testing.assert_close(model.encode(alpha), z)
    s = torch.nn.functional.cosine_similarity(z.unsqueeze(1), z.unsqueeze(0), dim=2) / 0.2
    by_hand = sum(-torch.log(s[i, i].exp() / sum(s[i, j].exp() for j in range(3) if j != i)) for i in range(3)) / 3
    torch.testing.assert_close(model.contrast(model.encode(alpha), model.encode(beta)), by_hand)
    torch.testing.assert_close(by_hand, nt_xent(z, z, 0.2))


@pytest.mark.parametrize("name", ["graphcl", "graphcl+mario"])
def test_it_lowers_its_loss(name: str) -> None:
    recipe = {"clusters": 4, "prototype_steps": 2} if "mario" in name else {}
    model = find(name).from_settings({**SMALL, **both("drop_and_mask"), "epochs": 20, "lr": 1e-2, **recipe})
    losses = [epoch.losses["loss"] for epoch in train(model, model.prepare(tiny_graph_set()))]
    assert sum(losses[-5:]) < sum(losses[:5])


def test_the_recipe_without_its_two_parts_is_graphcl_to_the_bit() -> None:
    data = tiny_graph_set()
    plain = GraphCL(**SMALL).fit(data, seed=3)
    off = mario.Recipe(GraphCL(**SMALL), adversarial=False, conditional=False).fit(data, seed=3)
    assert torch.equal(plain.transform(data), off.transform(data))
    on = mario.Recipe(GraphCL(**SMALL), clusters=4).fit(data, seed=3)
    assert on.name == "graphcl+mario"
    assert not torch.equal(plain.transform(data), on.transform(data))


def test_one_graph_has_no_other_to_be_told_from() -> None:
    one = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), batch=torch.zeros(3, dtype=torch.long))
    with pytest.raises(MarioError, match="at least 2 graphs"):
        GraphCL(**SMALL, **both("none")).fit(one)
    with pytest.raises(MarioError, match="augment_1 must be one of nodes, subgraph"):
        GraphCL(augment_1="color")
