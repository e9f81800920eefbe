"""Embeddings by a model folder: the same vectors however a graph comes, and domains by their names."""

import copy
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from embedder.graphs import folder_of, shifting
from mario.datasets import save_dataset
from mario.embedder import ModelFolder, embed, predict
from mario.errors import MarioError

CENTERED = {"rule": "gate", "center": "always", "steps": 3, "hidden_channels": 8, "method": "grace"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    return folder_of(shifting(), tmp_path_factory.mktemp("fit") / "model", given=CENTERED)


def test_the_same_graph_twice_gives_the_same_bits_in_any_batches(folder: ModelFolder) -> None:
    first, second = embed(folder, shifting()), embed(folder, shifting())
    assert first.dense().equal(second.dense())
    parts = torch.cat([part for _, _, part in second.batches(rows=7)])
    assert parts.equal(first.dense())
    assert first.columns[:1] + first.columns[-1:] == ["x_0", "graph_7"]
    assert first.width() == len(first.columns) == first.dense().shape[1]


def test_the_order_of_the_nodes_changes_no_vector(folder: ModelFolder) -> None:
    data = shifting()
    order = torch.randperm(300, generator=torch.Generator().manual_seed(1))
    moved = shuffled(data, order)
    z = embed(folder, data).dense()
    torch.testing.assert_close(embed(folder, moved).dense(), z[order], rtol=0, atol=1e-5)


def test_through_temporary_files_the_vectors_are_the_same(folder: ModelFolder, tmp_path: Path) -> None:
    z = embed(folder, shifting()).dense()
    found = embed(folder, shifting(), memory=1000, temporary=tmp_path)
    torch.testing.assert_close(found.dense(), z, rtol=0, atol=1e-5)
    assert not list(tmp_path.iterdir())


def test_narrow_rows_are_those_that_the_folder_keeps(folder: ModelFolder) -> None:
    torch.testing.assert_close(embed(folder, shifting()).dense(narrow=True), folder.training().z)


def test_nodes_and_edges_that_were_never_seen(folder: ModelFolder) -> None:
    found = embed(folder, shifting(seed=9, nodes=500))
    assert len(found) == 500
    assert bool(torch.isfinite(found.dense()).all())
    assert not found.notes


def test_domains_are_those_of_the_same_name(tmp_path: Path) -> None:
    data = shifting()
    data.domain_names = ["north", "south", "east", "west"]
    folder = folder_of(data, tmp_path / "model", given=CENTERED)
    z = embed(folder, data).dense()
    other = copy.copy(data)
    other.domain_id = 3 - data.domain_id
    other.domain_names = ["west", "east", "south", "north"]
    torch.testing.assert_close(embed(folder, other).dense(), z)
    other.domain_names = ["west", "up", "south", "north"]
    found = embed(folder, other)
    assert found.notes == ("domain 'up' is new to the model (75 rows): centered by its own rows",)
    kept = data.domain_id != 2
    torch.testing.assert_close(found.dense()[kept], z[kept])
    few = copy.copy(data)
    few.domain_id = torch.where(torch.arange(300) < 3, 4, data.domain_id)
    few.domain_names = [*data.domain_names, "a"]
    assert "mostly by the mean of the training" in embed(folder, few).notes[0]


def test_without_domains_rows_are_centered_by_the_training_and_said_to_be(folder: ModelFolder) -> None:
    data = shifting()
    del data.domain_id
    found = embed(folder, data)
    assert "no domains (region)" in found.notes[0]
    assert found.notes[1] == "300 rows of unknown domain: centered by the mean of the training"


def test_a_folder_without_labels_and_without_a_split_is_embedded(folder: ModelFolder, tmp_path: Path) -> None:
    data = shifting()
    bare = Data(x=data.x, edge_index=data.edge_index, region=data.domain_id)
    home = save_dataset(bare, tmp_path / "next", domains=("region",))
    found = embed(folder, home)
    torch.testing.assert_close(found.dense(), embed(folder, data).dense())
    assert found.ids.values(0, 2) == [0, 1]


def test_a_graph_on_disk(folder: ModelFolder, tmp_path: Path) -> None:
    home = save_dataset(shifting(), tmp_path / "mapped", mapped=True)
    found = embed(folder, home, memory=1000)
    torch.testing.assert_close(found.dense(), embed(folder, shifting()).dense(), rtol=0, atol=1e-5)


def test_predictions_are_calibrated_probabilities_of_the_classes(folder: ModelFolder) -> None:
    found = predict(folder, shifting())
    probabilities = torch.cat([part for _, _, part in found.batches(rows=50)])
    assert found.class_names == ("0", "1")
    assert found.label == "label"
    torch.testing.assert_close(probabilities.sum(1), torch.ones(300, dtype=torch.float64))
    data = shifting()
    right = (probabilities.argmax(1) == data.y)[data.ood_test_mask].float().mean()
    assert right > 0.7
    torch.testing.assert_close(predict(folder, embed(folder, data)).probabilities(0, 300), probabilities)


def test_a_model_without_labels_has_no_predictions(tmp_path: Path) -> None:
    folder = folder_of(shifting(labels=False), tmp_path / "model")
    with pytest.raises(MarioError, match=r"has no classifier, as .* had no labels of two classes"):
        predict(folder, shifting(labels=False))


def test_what_a_fit_on_one_domain_cannot_promise_is_said(tmp_path: Path) -> None:
    data = shifting(domains=4)
    for name in ("id_test_mask", "ood_val_mask", "ood_test_mask"):
        del data[name]
    one = data.domain_id == 0
    data.train_mask, data.id_val_mask = data.train_mask & one, data.id_val_mask & one
    keep = one.nonzero().view(-1)
    folder = folder_of(data.subgraph(keep), tmp_path / "model")
    assert folder.about.rule == "id_val"
    assert "no promise can be made" in predict(folder, shifting()).warnings[0]


def test_a_graph_of_another_width_is_one_error(folder: ModelFolder) -> None:
    data = shifting()
    data.x = data.x[:, :3]
    with pytest.raises(MarioError, match="fitted on 4 features, graph has 3: build it with `mario graph build --like`"):
        embed(folder, data)


def shuffled(data: Data, order: torch.Tensor) -> Data:
    """The nodes in another order, and their edges, too."""
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    edges = place[data.edge_index]
    found = Data(x=data.x[order], edge_index=edges[:, torch.randperm(edges.size(1))], domain_id=data.domain_id[order])
    found.y = data.y[order]
    return found
