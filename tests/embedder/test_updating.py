"""Updates: known nodes stay, new domains get a center, and a stopped update goes on as if it had not stopped."""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from embedder.graphs import folder_of, shifting, with_ids
from mario.datasets import save_dataset
from mario.embedder import ModelFolder, Progress, embed, predict
from mario.embedder.folder import About
from mario.embedder.updating import Updated, graph_of_fit, update
from mario.embedder.writing import write_update
from mario.errors import MarioError

GIVEN = {"rule": "gate", "center": "always", "steps": 20, "hidden_channels": 8, "method": "grace"}


def grown(labels: bool = False) -> Data:
    """The graph of the fit with 100 more nodes, of which 25 are of a new domain."""
    data, more = shifting(labels=labels, split=False), shifting(seed=5, nodes=100, labels=labels, split=False)
    draws = torch.randint(300, (100,), generator=torch.Generator().manual_seed(0))
    links = torch.stack([torch.arange(300, 400), draws])
    found = Data(
        x=torch.cat([data.x, more.x + 0.5]),
        edge_index=torch.cat([data.edge_index, more.edge_index + 300, links, links.flip(0)], 1),
        domain_id=torch.cat([data.domain_id, more.domain_id + 1]),
    )
    found.domain_names = ["a", "b", "c", "d", "e"]
    found.region = found.domain_id
    if labels:
        found.y = torch.cat([data.y, more.y])
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    data = shifting()
    data.domain_names = ["a", "b", "c", "d"]
    with_ids(save_dataset(data, home / "old", domains=("region",)), [f"n{i}" for i in range(300)])
    with_ids(save_dataset(grown(), home / "new", domains=("region",)), [f"n{i}" for i in range(400)])
    folder_of(home / "old", home / "model", given=GIVEN)
    return home


@pytest.fixture(scope="module")
def folder(home: Path) -> ModelFolder:
    return ModelFolder.read(home / "model")


@pytest.fixture(scope="module")
def updated(home: Path, folder: ModelFolder) -> Updated:
    return update(folder, home / "new", lr=0.02, steps=40)


def test_known_nodes_stay_and_without_keep_they_do_not(home: Path, folder: ModelFolder, updated: Updated) -> None:
    moved = updated.entry["moved"]
    assert updated.entry["kept_by"] == "shared ids"
    assert (moved["of"], moved["rows"]) == ("shared nodes", 300)
    forgot = update(folder, home / "new", lr=0.02, steps=40, keep=0.0)
    before = embed(folder, home / "old").dense()
    far = [
        (embed(write_update(one, folder, home / name), home / "old").dense() - before).square().mean().item()
        for one, name in ((updated, "kept"), (forgot, "forgot"))
    ]
    assert far[0] < 0.2 * far[1]
    columns = embed(folder, home / "old").blocks.columns["x"]
    assert embed(ModelFolder.read(home / "kept"), home / "old").dense()[:, columns].equal(before[:, columns])


def test_the_old_graph_is_replayed_if_it_is_given(home: Path, folder: ModelFolder) -> None:
    found = update(folder, home / "new", replay=home / "old", lr=0.02, steps=40)
    assert found.entry["kept_by"] == "replay"
    assert found.entry["moved"]["of"] == "old graph"
    forgot = update(folder, home / "new", replay=home / "old", lr=0.02, steps=40, keep=0.0)
    assert 1 - found.entry["moved"]["mean"] < 0.5 * (1 - forgot.entry["moved"]["mean"])


def test_without_ids_all_embeddings_are_kept(folder: ModelFolder) -> None:
    found = update(folder, grown(), steps=5)
    assert found.entry["kept_by"] == "distillation"
    assert found.entry["moved"]["of"] == "new graph by the old model"


def test_a_new_domain_gets_a_center_that_later_graphs_have_too(
    home: Path, folder: ModelFolder, updated: Updated
) -> None:
    data = grown()
    assert embed(folder, data).notes == ("domain 'e' is new to the model (25 rows): centered by its own rows",)
    after = write_update(updated, folder, home / "centered")
    assert updated.entry["new_domains"] == ["e"]
    assert after.about.graph.domains == ("a", "b", "c", "d", "e")
    alone = data.subgraph((data.domain_id == 4).nonzero().view(-1)[:5])
    assert not embed(after, alone).notes
    z = embed(after, data).dense()
    assert float(z[data.domain_id == 4].mean(0).abs().max()) < 1e-4


def test_the_updated_folder_is_a_model_with_a_history(home: Path, folder: ModelFolder, updated: Updated) -> None:
    after = write_update(updated, folder, home / "updated")
    assert About.from_dict(after.about.as_json(), "it") == after.about
    assert after.about.history[0]["from"] == folder.digest
    assert after.about.graph.nodes == 400
    assert after.ids().values(398, 400) == ["n398", "n399"]
    assert after.training().z.shape[0] == 400
    assert after.about.columns == folder.about.columns
    assert len(predict(after, home / "new")) == 400
    assert "Updated" in (home / "updated" / "README.md").read_text()
    again = update(after, home / "new", steps=2)
    assert [one["from"] for one in again.about.history] == [folder.digest, after.digest]


def test_the_graph_of_the_fit_is_found_where_it_was_and_if_it_is_the_same(home: Path, folder: ModelFolder) -> None:
    assert graph_of_fit(folder) is not None
    assert graph_of_fit(write_update(update(folder, home / "new", steps=1), folder, home / "one")) is not None
    (home / "old").rename(home / "elsewhere")
    assert graph_of_fit(folder) is None
    (home / "elsewhere").rename(home / "old")


def test_an_update_that_was_stopped_goes_on_with_the_same_bits(home: Path, folder: ModelFolder, tmp_path: Path) -> None:
    def stop(now: Progress) -> None:
        if now.done == 2:
            raise KeyboardInterrupt

    whole = update(folder, home / "new", steps=40).embeddings.dense()
    with pytest.raises(KeyboardInterrupt):
        update(folder, home / "new", steps=40, checkpoint=tmp_path, watch=stop)
    resumed = update(folder, home / "new", steps=40, checkpoint=tmp_path)
    assert resumed.embeddings.dense().equal(whole)


def test_new_labels_are_used_if_that_is_clearly_better(tmp_path: Path) -> None:
    data = shifting()
    data.y = torch.randint(2, (300,), generator=torch.Generator().manual_seed(3))
    folder = folder_of(data, tmp_path / "model", given=GIVEN)
    found = update(folder, grown(labels=True), steps=1)
    assert found.entry["head"].startswith("fitted again with the new labels")
    after = write_update(found, folder, tmp_path / "after")
    assert after.about.class_names == ("0", "1")
    assert predict(after, grown()).probabilities(0, 5).shape == (5, 2)
    good = folder_of(shifting(), tmp_path / "good", given=GIVEN)
    assert update(good, shifting(), steps=1).entry["head"].startswith("kept: ")


def test_a_model_without_weights_is_only_centered(tmp_path: Path) -> None:
    folder = folder_of(shifting(), tmp_path / "model", given={**GIVEN, "method": "hops", "rule": "ood_val"})
    found = update(folder, grown())
    assert found.entry["steps"] == 0
    torch.testing.assert_close(embed(folder, shifting()).dense(), found.model.transform(shifting()))


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"lr": 0.0}, {"keep": -1.0}, {"keep": float("nan")}])
def test_settings_out_of_range_are_one_error(folder: ModelFolder, wrong: dict[str, float]) -> None:
    with pytest.raises(MarioError, match="steps must be at least 1, lr"):
        update(folder, grown(), **wrong)  # type: ignore[arg-type]
