"""Models in files: what a file needs to be read, and what it is refused for."""

import json
import pickle

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch_geometric.nn import GAT, GCN

import mario
from mario.errors import MarioError
from mario.methods import Method, find
from mario.methods.registry import systems
from mario.views import DropEdges, MaskFeatures

from .test_parts import Mine
from .tiny import tiny_graph


class TestParts:
    @pytest.fixture
    def path(self, tmp_path):
        views = (DropEdges(0.2), MaskFeatures(0.2))
        model = mario.GRACE(encoder=GCN(4, 8, 2), views=views, projector=nn.Linear(8, 8), epochs=1, steps_per_epoch=1)
        model.fit(tiny_graph()).save(tmp_path / "model.safetensors")
        return tmp_path / "model.safetensors"

    @staticmethod
    def parts(**changes: object) -> dict[str, object]:
        views = (DropEdges(0.2), MaskFeatures(0.2))
        return {"encoder": GCN(4, 8, 2), "views": views, "projector": nn.Linear(8, 8), **changes}

    def test_all_that_was_given_is_given_again(self, path) -> None:
        assert mario.load(path, **self.parts()).transform(tiny_graph()).shape == (80, 8)

    @pytest.mark.parametrize("part", ["encoder", "views", "projector"])
    def test_a_part_that_is_missing(self, path, part: str) -> None:
        with pytest.raises(MarioError, match=rf"saved with {part}=.*: pass {part}= to mario.load"):
            mario.load(path, **self.parts(**{part: None}))

    def test_of_another_class(self, path) -> None:
        with pytest.raises(MarioError, match=r"saved with encoder=torch_geometric\S*GCN, got torch_geometric\S*GAT"):
            mario.load(path, **self.parts(encoder=GAT(4, 8, 2)))
        with pytest.raises(MarioError, match=r"saved with views=\(\S*DropEdges, \S*MaskFeatures\), got \(\S*DropEdges"):
            mario.load(path, **self.parts(views=(DropEdges(0.2), DropEdges(0.2))))

    def test_of_another_shape(self, path) -> None:
        with pytest.raises(MarioError, match="do not fit the encoder and projector given"):
            mario.load(path, **self.parts(encoder=GCN(4, 8, 3)))

    def test_a_part_that_was_not_there(self, tmp_path) -> None:
        mario.GRACE(epochs=1, steps_per_epoch=1).fit(tiny_graph()).save(tmp_path / "model.safetensors")
        with pytest.raises(MarioError, match="saved without encoder of its own"):
            mario.load(tmp_path / "model.safetensors", encoder=GCN(4, 8, 2))

    def test_nothing_is_imported_by_name(self, path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("nothing is imported because a file names it")

        parts = self.parts()
        monkeypatch.setattr("importlib.import_module", refuse)
        assert isinstance(mario.methods.load(path, **parts), Method)

    def test_a_class_of_a_script_is_known_by_its_name_alone(self, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Mine, "__module__", "__main__")
        mario.GRACE(encoder=Mine(), epochs=1, steps_per_epoch=1).fit(tiny_graph()).save(tmp_path / "m.safetensors")
        monkeypatch.setattr(Mine, "__module__", "of.a.package")
        assert mario.load(tmp_path / "m.safetensors", encoder=Mine()).transform(tiny_graph()).shape == (80, 5)

    def test_views_may_be_a_list(self, path) -> None:
        views = [DropEdges(0.2), MaskFeatures(0.2)]
        assert mario.load(path, **self.parts(views=views)).transform(tiny_graph()).shape == (80, 8)

    @pytest.mark.parametrize(
        ("part", "value", "message"),
        [
            ("views", (DropEdges(0.2),), r"views must be None or two transforms.*got \(DropEdges"),
            ("encoder", GCN, "encoder must be .* got the class GCN; pass an instance"),
            ("encoder", 3, "encoder must be .* or a torch.nn.Module, got 3"),
        ],
    )
    def test_what_is_no_part_is_refused(self, path, part: str, value: object, message: str) -> None:
        with pytest.raises(MarioError, match=message):
            mario.load(path, **self.parts(**{part: value}))


@pytest.mark.parametrize(
    "change",
    [{"in_channels": "four"}, {"num_classes": None}, {"parts": [1]}, {"settings": 3}, {"edge_channels": []}],
    ids=str,
)
def test_a_header_that_makes_no_sense_is_an_error_that_names_the_file(tmp_path, change: dict[str, object]) -> None:
    path = tmp_path / "model.safetensors"
    mario.GRACE(epochs=1, steps_per_epoch=1).fit(tiny_graph()).save(path)
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["mario"])
    save_file(load_file(path), path, {"mario": json.dumps({**header, **change})})
    with pytest.raises(MarioError, match=r"model\.safetensors was written by another version of mario, or"):
        mario.load(path)


def test_a_folder_is_no_model(tmp_path) -> None:
    with pytest.raises(MarioError, match="is a folder; pass the file that save wrote"):
        mario.load(tmp_path)


@pytest.mark.parametrize("changes", [{"hidden_channels": 5}, {"num_layers": 1}, {"encoder": GCN(4, 8, 2)}], ids=str)
@pytest.mark.parametrize("method", [mario.MARIO, mario.VGAE])
def test_settings_changed_after_fit_are_for_the_next_fit(method: type[Method], changes: dict, tmp_path) -> None:
    data = tiny_graph()
    model = method(hidden_channels=8, num_layers=2, epochs=1, steps_per_epoch=1).fit(data)
    z = model.transform(data)
    model.set_params(**changes)
    assert torch.equal(model.transform(data), z)
    model.save(tmp_path / "model.safetensors")
    assert torch.equal(mario.load(tmp_path / "model.safetensors").transform(data), z)


@pytest.mark.parametrize("name", [*systems("node"), "graphcl", "graphcl+mario"])
def test_every_method_can_be_pickled(name: str) -> None:
    model = find(name)(tau=0.3) if "tau" in {f.name for f in find(name).fields()} else find(name)(lr=0.5)
    other = pickle.loads(pickle.dumps(model))
    assert type(other) is type(model)
    assert other.get_params() == model.get_params()
