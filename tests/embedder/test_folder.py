"""Model folders: complete or refused, typed, and the same after a round trip."""

import json
from pathlib import Path

import pytest
import torch

from embedder.graphs import QUICK, shifting
from mario.embedder import ModelFolder, conclude, fit_graph, read_source, write_model
from mario.embedder.folder import About
from mario.errors import MarioError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    source = read_source(shifting())
    return write_model(conclude(fit_graph(source.data, given=QUICK), source), tmp_path_factory.mktemp("fit") / "model")


def test_holds_what_the_contract_says(folder: ModelFolder) -> None:
    names = {path.name for path in folder.path.iterdir()}
    assert names == {"model.json", "model.safetensors", "head.safetensors", "train.safetensors", "README.md"}
    about = folder.about
    assert about.class_names == ("0", "1")
    assert about.graph.domain == "region"
    assert about.graph.domains == ("0", "1", "2", "3")
    assert about.rule == "ood_val"
    assert set(about.controls) >= {"raw-features", "hops", "random-init"}
    assert about.chosen in {one.name for one in about.candidates}
    assert about.interval is not None
    assert about.interval[0] <= (about.score or 0) <= about.interval[1]
    assert {pick.setting for pick in about.picks} >= {"rule", "method", "channels", "center", "num_layers", "tau"}


def test_the_model_head_and_training_graph_are_those_of_the_fit(folder: ModelFolder) -> None:
    data = shifting()
    model, head, kept = folder.model(), folder.head(), folder.training()
    z = model.transform(data)
    assert z.shape[1] == sum(folder.about.blocks.values()) == len(folder.about.columns)
    torch.testing.assert_close(kept.z, z)
    assert kept.rows.tolist() == list(range(300))
    assert kept.domain_id is not None
    assert kept.domain_id.equal(data.domain_id)
    assert head is not None
    probabilities = head.predict_proba(model.blocks(data))
    assert probabilities.shape == (300, 2)


def test_about_is_the_same_after_a_round_trip(folder: ModelFolder) -> None:
    written = json.loads(json.dumps(folder.about.as_json()))
    assert About.from_dict(written, "it") == folder.about


def test_the_same_model_has_the_same_digest_and_another_has_not(folder: ModelFolder, tmp_path: Path) -> None:
    source = read_source(shifting())
    again = write_model(conclude(fit_graph(source.data, given=QUICK), source), tmp_path / "again")
    other = write_model(conclude(fit_graph(source.data, given=QUICK, seed=1), source, seed=1), tmp_path / "other")
    assert again.digest == folder.digest
    assert other.digest != folder.digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda about: about.update(format=2), "has format 2"),
        (lambda about: about.pop("chosen"), "has no 'chosen'"),
        (lambda about: about.update(score="high"), "'score' must be a number"),
        (lambda about: about.update(picks=3), "'picks' must be a list"),
        (lambda about: about["files"].update({"../x": {"bytes": 1, "sha256": "0" * 64}}), "cannot be '../x'"),
        (lambda about: about["files"].pop("model.safetensors"), "damaged"),
        (lambda about: about["files"]["head.safetensors"].update(bytes=3), "the model was changed"),
        (lambda about: about["files"]["head.safetensors"].update(sha256="yes"), "damaged"),
        (lambda about: about["files"].update({"absent": {"bytes": 1, "sha256": "0" * 64}}), "there is no file"),
        (lambda about: about.update(blocks={"x": -1}), "damaged"),
    ],
)
def test_a_folder_that_was_changed_is_one_error(
    folder: ModelFolder, tmp_path: Path, change: "object", message: str
) -> None:
    for path in folder.path.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    about = json.loads((tmp_path / "model.json").read_text())
    change(about)  # type: ignore[operator]
    (tmp_path / "model.json").write_text(json.dumps(about))
    with pytest.raises(MarioError, match=message):
        ModelFolder.read(tmp_path)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MarioError, match="is a file; a model is the folder"):
        ModelFolder.read(tmp_path / "file")
    with pytest.raises(MarioError, match="there is no folder"):
        ModelFolder.read(tmp_path / "nothing")
    with pytest.raises(MarioError, match=r"has no model\.json"):
        ModelFolder.read(tmp_path)
    (tmp_path / "checkpoint").mkdir()
    with pytest.raises(MarioError, match="is not finished: repeat its command"):
        ModelFolder.read(tmp_path)
