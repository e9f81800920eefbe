"""Exported models: equal to the model, for any number of nodes, or one clear message."""

import json
import sys
from pathlib import Path

import pytest
import torch

import mario
from embedder.graphs import folder_of, shifting
from mario.embedder import ModelFolder, embed
from mario.embedder.export import export, exportable, inputs
from mario.embedder.reading import make_ready
from mario.errors import MarioError

GIVEN = {"rule": "gate", "center": "always", "steps": 2, "hidden_channels": 8, "method": "grace"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    return folder_of(shifting(), tmp_path_factory.mktemp("fit") / "model", given=GIVEN)


@pytest.mark.parametrize("encoder", ["gcn", "sage", "gin"])
def test_torch_export_is_the_model_on_any_graph(tmp_path: Path, encoder: str) -> None:
    folder = folder_of(shifting(), tmp_path / "model", given={**GIVEN, "encoder": encoder})
    done = export(folder, "torch", tmp_path / "m.pt2", sample=shifting())
    assert done.difference is not None
    assert done.difference < 1e-5
    program = torch.export.load(tmp_path / "m.pt2").module()
    other = shifting(seed=4, nodes=120)
    found = program(*inputs(folder.model(), make_ready(folder.about, other)))
    torch.testing.assert_close(found, embed(folder, other).dense(), rtol=0, atol=1e-4)
    assert json.loads((tmp_path / "m.json").read_text())["model"] == folder.digest


def test_onnx_is_the_model_on_any_graph(folder: ModelFolder, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    export(folder, "onnx", tmp_path / "m.onnx")
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    other = shifting(seed=4, nodes=120)
    given = inputs(folder.model(), make_ready(folder.about, other))
    feed = dict(zip(("x", "edge_index", "edge_value", "domain"), (part.numpy() for part in given), strict=True))
    found = torch.from_numpy(session.run(None, feed)[0])
    torch.testing.assert_close(found, embed(folder, other).dense(), rtol=0, atol=1e-4)


def test_a_folder_for_the_hub_has_weights_and_a_card_and_no_vectors(folder: ModelFolder, tmp_path: Path) -> None:
    export(folder, "huggingface", tmp_path / "hub")
    names = {path.name for path in (tmp_path / "hub").iterdir()}
    assert names == {"model.safetensors", "head.safetensors", "config.json", "model.json", "README.md"}
    config = json.loads((tmp_path / "hub" / "config.json").read_text())
    assert config["blocks"] == {"x": 4, "graph": 8}
    assert config["class_names"] == ["0", "1"]
    card = (tmp_path / "hub" / "README.md").read_text()
    for heading in ("## Data", "## Scores", "## Limits"):
        assert heading in card
    loaded = mario.load(tmp_path / "hub" / "model.safetensors")
    torch.testing.assert_close(loaded.transform(shifting()), embed(folder, shifting()).dense())
    with pytest.raises(MarioError, match="is there already"):
        export(folder, "huggingface", tmp_path / "hub")


def test_what_cannot_be_exported_is_one_message(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gat = folder_of(shifting(), tmp_path / "gat", given={**GIVEN, "encoder": "gat"})
    before = sorted(tmp_path.rglob("*"))
    for wrong, to, out, said in (
        (gat, "torch", "m.pt2", "the encoder GAT cannot be exported: gcn, sage and gin can"),
        (folder, "onnx", "m.pt2", r"must be a file that ends with \.onnx"),
        (folder, "tensorflow", "m", "to must be one of torch, onnx, huggingface"),
    ):
        with pytest.raises(MarioError, match=said):
            export(wrong, to, tmp_path / out)
    with pytest.raises(MarioError, match="which are not those of one encoder"):
        exportable(mario.Steady(mario.Hops(epochs=1)).fit(shifting()))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MarioError, match=r"ONNX needs onnxruntime: pip install 'mario-gcl\[onnx\]'"):
        export(folder, "onnx", tmp_path / "m.onnx")
    assert sorted(tmp_path.rglob("*")) == before
