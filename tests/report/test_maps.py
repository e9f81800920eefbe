"""Maps of runs: the nodes, the predictions that the run was evaluated by, and the cache in the run's folder."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mario.errors import MarioError
from mario.evaluation import SETS
from mario.lab.case import Case
from mario.lab.runs.execute import finish, load_data
from mario.lab.spec import RunSpec
from mario.report import maps
from mario.report.maps import MapData, map_of, points
from mario.untrusted import read_json

CASE = Case.find("good-cbas", shift="concept")
SMALL = {"epochs": 1, "steps_per_epoch": 1, "checkpoints": 1, "hidden_channels": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = RunSpec.plan(CASE, "grace", seed=1, given=SMALL)
    where = tmp_path_factory.mktemp("runs") / spec.digest
    finish(spec, load_data(spec), where)
    return where


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the maps that were made and not read; t-SNE is left out."""
    found: list[int] = []
    monkeypatch.setattr(maps, "tsne", lambda z: (found.append(len(z)), np.asarray(z)[:, :2])[1])
    return found


def test_predictions_are_those_of_the_last_checkpoint(folder: Path) -> None:
    found = map_of(folder)
    last = read_json(folder / "result.json")["curve"][-1]
    right = found.correct.sum(1) / found.counts.sum(1)
    assert dict(zip(SETS, right, strict=True)) == pytest.approx({name: last[name] for name in SETS})
    assert found.total == len(found.node) == 700
    for place in range(len(SETS)):
        here = found.split == place
        assert here.sum() == found.counts[place].sum()
        assert (found.y == found.prediction)[here].sum() == found.correct[place].sum()


def test_a_supervised_method_predicts_with_its_own_head(tmp_path: Path, made: list[int]) -> None:
    spec = RunSpec.plan(CASE, "erm", given=SMALL)
    finish(spec, load_data(spec), tmp_path)
    found = map_of(tmp_path)
    last = read_json(tmp_path / "result.json")["curve"][-1]
    assert found.correct[4].sum() / found.counts[4].sum() == pytest.approx(last["ood_test"])


def test_fewer_nodes_are_the_same_for_every_method_and_counts_are_of_all(folder: Path, made: list[int]) -> None:
    some = map_of(folder, max_nodes=50)
    assert len(some.node) == len(np.unique(some.node)) == 50
    assert some.total == 700
    other = RunSpec.plan(CASE, "random-init", given=SMALL)
    where = folder.parent / "other"
    finish(other, load_data(other), where)
    assert map_of(where, max_nodes=50).node.tolist() == some.node.tolist()
    assert made == [50, 50]


def test_the_second_time_needs_no_dataset(folder: Path, made: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    first = map_of(folder, max_nodes=40)
    monkeypatch.setattr(maps, "load_data", lambda *_, **__: pytest.fail("the dataset was loaded"))
    second = map_of(folder, max_nodes=40)
    assert made == [40]
    for name in MapData.__dataclass_fields__:
        assert np.array_equal(getattr(first, name), getattr(second, name))


def test_nothing_is_downloaded_for_a_map(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of another machine, whose dataset is not here."""
    shutil.copytree(folder, tmp_path / "copy")
    for name in ("settings.json", "result.json"):
        text = (tmp_path / "copy" / name).read_text()
        (tmp_path / "copy" / name).write_text(text.replace('"good-cbas"', '"good-cora"').replace('"color"', '"word"'))
    monkeypatch.setattr("mario.datasets.pyg.PyGDataset.download", lambda *_: pytest.fail("a dataset was downloaded"))
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MarioError, match=r"(?s)good-cora needs files that are not in .*downloads are disabled"):
        map_of(tmp_path / "copy", max_nodes=30)


@pytest.mark.parametrize("harm", ["another model", "half a file", "a pickle"])
def test_what_is_not_of_this_model_is_replaced(folder: Path, made: list[int], harm: str) -> None:
    path = folder / "map.npz"
    map_of(folder, max_nodes=30)
    if harm == "another model":
        whole = dict(np.load(path))
        np.savez(path, **{**whole, "key": np.array("1 30 0")})
    elif harm == "half a file":
        path.write_bytes(path.read_bytes()[:200])
    else:
        objects: Any = np.array([{"a": 1}], dtype=object)
        with path.open("wb") as file:
            np.savez(file, key=objects)
    before = len(made)
    map_of(folder, max_nodes=30)
    map_of(folder, max_nodes=30)
    assert len(made) == before + 1


def test_a_folder_that_cannot_be_written_has_its_map(
    folder: Path, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    assert len(map_of(folder, max_nodes=20).node) == 20


def test_without_a_model_the_error_says_so(tmp_path: Path, folder: Path) -> None:
    for name in ("settings.json", "result.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(MarioError, match=r"has no model\.safetensors: .* use `mario reproduce` without --records"):
        map_of(tmp_path)


def test_a_broken_folder_is_an_error_of_one_line(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "settings.json").write_text('{"dataset": "good-cbas"}', encoding="utf-8")
    (tmp_path / "result.json").write_text("{}", encoding="utf-8")
    with pytest.raises(MarioError, match=r"result\.json has no 'dataset'"):
        map_of(tmp_path)


def test_graphs_of_a_set_are_points(tmp_path: Path, mario_data: Path, made: list[int]) -> None:
    spec = RunSpec.plan(Case.find("proteins-25"), "random-init", given=SMALL)
    finish(spec, load_data(spec, mario_data), tmp_path)
    found = map_of(tmp_path, mario_data, max_nodes=100)
    assert (found.unit, found.total, len(found.xy)) == ("graph", 1113, 100)


def test_points_fill_the_unit_square_and_keep_their_shape() -> None:
    one = np.zeros(3, dtype=int)
    xy = np.array([[-5.0, 1.0], [5.0, 1.0], [0.0, 3.0]])
    found = points(MapData(one, xy, one, one, one, np.array([0, 1, 2]), one[None], one[None], "node"))
    assert found == {"x": [0, 10000, 5000], "y": [4000, 4000, 6000], "prediction": [0, 1, 2]}


def test_a_collapsed_encoder_is_one_spot_in_the_middle() -> None:
    one = np.zeros(2, dtype=int)
    found = points(MapData(one, np.zeros((2, 2)), one, one, one, one, one[None], one[None], "node"))
    assert found["x"] == found["y"] == [5000, 5000]


def test_classes_and_domains_have_the_names_of_the_dataset(folder: Path, mario_data: Path, tmp_path: Path) -> None:
    assert map_of(folder).class_names == ("random graph", "middle", "bottom", "roof")
    assert map_of(folder).domain_names == (), "colors have numbers"
    spec = RunSpec.plan(Case.find("webkb"), "raw-features", given={"epochs": 1, "checkpoints": 1})
    finish(spec, load_data(spec, mario_data), tmp_path)
    for _ in ("made", "read"):
        assert map_of(tmp_path, mario_data).domain_names == ("cornell", "texas", "washington", "wisconsin")
