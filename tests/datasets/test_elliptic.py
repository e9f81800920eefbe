"""Elliptic's files in both layouts, damaged in every way we could think of, and the split in time."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import mario
from elliptic_files import LAYOUTS, write_elliptic
from mario.datasets import CATALOG, load_dataset
from mario.datasets.elliptic import elliptic_graph
from mario.datasets.files import file_states
from mario.datasets.readers.elliptic import read_elliptic
from mario.errors import MarioError
from mario.graphs import training_graph


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MARIO_UNVERIFIED", "1")
    monkeypatch.delenv("MARIO_DATA", raising=False)
    return write_elliptic(tmp_path / "data", nodes=12)


def write(folder: Path, features: str, edges: str, classes: str) -> tuple[Path, Path, Path]:
    paths = tuple(folder / f"elliptic_txs_{name}.csv" for name in ("features", "edgelist", "classes"))
    for path, text in zip(paths, (features, edges, classes), strict=True):
        path.write_text(text)
    return paths[0], paths[1], paths[2]


def row(transaction: int, step: int, first: float | str = 0.5, columns: int = 165) -> str:
    return f"{transaction},{step},{first}" + ",0" * (columns - 1)


SOUND = {
    "features": f"{row(30, 7)}\n{row(10, 7, 1.5)}\n{row(20, 12, -2e3)}\n",
    "edges": "txId1,txId2\n10,30\n30,10\n",
    "classes": "txId,class\n10,2\n20,unknown\n30,1\n",
}


def test_a_file_set_worked_by_hand(tmp_path: Path) -> None:
    data = read_elliptic(*write(tmp_path, **SOUND))
    assert data.x.dtype == torch.float32
    assert data.x.shape == (3, 165)
    assert data.x[:, 0].tolist() == [0.5, 1.5, -2000]
    assert data.edge_index.tolist() == [[1, 0], [0, 1]]
    assert data.y.tolist() == [1, 0, -1]
    assert data.time_step.tolist() == [7, 7, 12]


@pytest.mark.parametrize(
    ("part", "old", "new", "message"),
    [
        (
            "features",
            row(10, 7, 1.5),
            row(10, 7, 1.5, columns=164),
            "features.csv must have 167 numbers per line and no header: .*columns changed",
        ),
        ("features", ",0\n", "\n", "must have 167 columns .* got 166"),
        ("features", SOUND["features"], "", "got an empty file"),
        (
            "features",
            row(30, 7),
            "txId," + ",".join(map(str, range(166))),
            "features.csv must have 167 numbers per line and no header: .*txId",
        ),
        ("features", "1.5", "", "features.csv must have 167 numbers per line and no header: .*column 3"),
        ("features", "1.5", "nan", "line 2, column 3 is NaN or infinite"),
        ("features", "1.5", "1e60", "line 2, column 3 is NaN or infinite"),
        ("features", "10,7,", "30,7,", "has transaction 30 twice"),
        ("features", "10,7,", "10.5,7,", "line 2 has transaction 10.5; it must be a whole number"),
        ("features", "10,7,", "nan,7,", "line 2 has transaction nan"),
        ("features", "10,7,", "10,50,", "line 2 has time step 50; it must be from 1 to 49"),
        ("features", "10,7,", "10,0,", "line 2 has time step 0; it must be from 1 to 49"),
        ("edges", "txId1,txId2\n", "", "edgelist.csv must begin with the line txId1,txId2, got 10,30"),
        ("edges", SOUND["edges"], "", "edgelist.csv must begin .* got an empty file"),
        ("edges", "30,10", "30", "edgelist.csv line 3 has 1 columns"),
        ("edges", "30,10", "30,11", "edgelist.csv names transaction 11, which has no features"),
        ("edges", "30,10", "30,99", "edgelist.csv names transaction 99"),
        ("edges", "30,10", "30,ten", "edgelist.csv line 3 has transaction 'ten'"),
        ("edges", "30,10", "30,-1", "edgelist.csv line 3 has transaction '-1'"),
        ("edges", "30,10", "30," + "9" * 40, "edgelist.csv line 3 has transaction '9"),
        ("edges", "30,10", "30,20", "edgelist.csv line 3 goes from one time step to another"),
        ("classes", "class", "label", "classes.csv must begin with the line txId,class"),
        ("classes", "30,1", "30,3", "classes.csv line 4 has class '3'; it must be 1, 2 or unknown"),
        ("classes", "30,1", "40,1", "classes.csv names transaction 40"),
        ("classes", "30,1\n", "", "no class for transaction 30"),
        ("classes", "30,1\n", "30,1\n30,2\n", "two classes for transaction 30"),
    ],
)
def test_each_damage_is_named(tmp_path: Path, part: str, old: str, new: str, message: str) -> None:
    assert old in SOUND[part]
    paths = write(tmp_path, **(SOUND | {part: SOUND[part].replace(old, new)}))
    with pytest.raises(MarioError, match=message):
        read_elliptic(*paths)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    paths = write(tmp_path, **SOUND)
    for path in paths:
        kept = path.read_bytes()
        path.write_bytes(b"\xff\xfe\x00" + kept)
        with pytest.raises(MarioError, match=path.name):
            read_elliptic(*paths)
        path.write_bytes(kept)


def test_a_graph_without_payments(tmp_path: Path) -> None:
    assert read_elliptic(*write(tmp_path, **(SOUND | {"edges": "txId1,txId2\n"}))).edge_index.shape == (2, 0)


def steps_of(data: Data, mask: str) -> list[int]:
    return sorted({step + 1 for step in data.domain_id[data[mask]].tolist()})


def test_the_split_is_in_time_and_unknown_nodes_are_in_no_part(files: Path) -> None:
    data = load_dataset("elliptic", root=files)
    assert (data.domain, data.shift, data.setting, data.metric) == ("time", "label", "inductive", "f1")
    assert data.num_classes == 2
    assert steps_of(data, "train_mask") == steps_of(data, "visible_mask") == list(range(7, 12))
    assert steps_of(data, "ood_val_mask") == list(range(12, 17))
    assert steps_of(data, "ood_test_mask") == list(range(17, 50))
    parts = data.train_mask | data.ood_val_mask | data.ood_test_mask
    assert torch.equal(parts, (data.y >= 0) & (data.domain_id >= 6))
    assert torch.equal(data.env_id, torch.where(data.train_mask, data.domain_id - 6, -1))
    assert set(data.env_id.tolist()) == {-1, 0, 1, 2, 3, 4}
    assert torch.equal(data.visible_mask, (data.domain_id >= 6) & (data.domain_id <= 10))
    assert data.groups == [f"T{k}" for k in range(1, 10)]
    spans = [sorted({s + 1 for s in data.domain_id[data.group_id == k].tolist()}) for k in range(9)]
    assert spans == [list(range(17 + 4 * k, 21 + 4 * k)) for k in range(8)] + [[49]]


def test_the_lone_snapshot_may_be_the_first_group(files: Path) -> None:
    steps = torch.arange(1, 50)
    data = Data(x=torch.eye(49), edge_index=torch.zeros(2, 0).long(), y=steps % 2, time_step=steps)
    group = elliptic_graph(data, lone="first").group_id
    assert group[16:].tolist() == [0, *(k for k in range(1, 9) for _ in range(4))]
    with pytest.raises(MarioError, match="use one of last, first"):
        elliptic_graph(data, lone="middle")


def test_training_sees_unlabeled_nodes_of_its_snapshots_and_nothing_else(files: Path) -> None:
    data = load_dataset("elliptic", root=files)
    seen = training_graph(data)
    assert torch.equal(seen.n_id, data.visible_mask.nonzero().view(-1))
    assert torch.equal(seen.train_mask, data.train_mask[data.visible_mask])
    assert torch.equal(seen.y, data.y[data.visible_mask])
    assert (seen.y == -1).sum() > seen.train_mask.sum()
    assert not {"visible_mask", "group_id", "groups", "domain_id", "ood_val_mask", "ood_test_mask"} & set(seen.keys())
    assert torch.equal(data.domain_id[seen.n_id[seen.edge_index[0]]], data.domain_id[seen.n_id[seen.edge_index[1]]])
    whole = training_graph(load_dataset("elliptic", root=files, setting="transductive"))
    assert whole.num_nodes == data.num_nodes
    assert (whole.y[~data.train_mask] == -1).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_both_layouts_and_a_bare_folder_give_one_graph(tmp_path: Path, files: Path, layout: str) -> None:
    first = load_dataset("elliptic", root=files)
    other = write_elliptic(tmp_path / "other", nodes=12, layout=layout)
    for root in (other, other / LAYOUTS[layout], (other / LAYOUTS[layout]).parent if layout == "pyg" else other):
        data = load_dataset("elliptic", root=root, download=False)
        assert torch.equal(data.x, first.x)
        assert torch.equal(data.edge_index, first.edge_index)
        assert torch.equal(data.y, first.y)
        assert [state.state for state in file_states(CATALOG["elliptic"], root)] == ["UNKNOWN"] * 3


def test_the_generator_has_a_drift_and_a_shock(tmp_path: Path) -> None:
    paths = sorted((write_elliptic(tmp_path) / LAYOUTS["pyg"]).iterdir())
    data = elliptic_graph(read_elliptic(paths[2], paths[1], paths[0]))
    assert data.x.size(1) == 165
    assert float((data.y >= 0).float().mean()) == pytest.approx(0.22, abs=0.04)
    rate = [float(data.y[data.ood_test_mask & (data.group_id == k)].float().mean()) for k in range(9)]
    assert np.mean(rate[:3]) > np.mean(rate[4:7]) + 0.05
    assert np.mean(rate[:3]) > np.mean(rate[7:]) + 0.1
    scores = mario.evaluate(mario.RawFeatures(epochs=1, steps_per_epoch=1).fit(data), data)
    assert min(scores[f"T{k}"] for k in range(1, 8)) > 1.5 * max(scores["T8"], scores["T9"])


def test_load_fit_evaluate(files: Path) -> None:
    data = load_dataset("elliptic", root=files)
    model = mario.ERM(encoder="sage", hidden_channels=8, num_layers=2, epochs=2, sampling="full").fit(data)
    scores = mario.evaluate(model, data)
    assert sorted(scores) == sorted(["train", "ood_val", "ood_test", *data.groups])
    assert scores["ood_test"] == pytest.approx(np.mean([scores[name] for name in data.groups]))


def test_other_shifts_are_refused(files: Path) -> None:
    with pytest.raises(MarioError, match="unknown shift of elliptic 'concept'; use one of label"):
        load_dataset("elliptic", root=files, shift="concept")
    with pytest.raises(MarioError, match="unknown shift of amazon-photo 'covariate'; use one of concept"):
        load_dataset("amazon-photo", root=files, shift="covariate")


def test_a_damaged_file_is_named_with_its_folder(files: Path) -> None:
    path = files / "EllipticBitcoin/raw/elliptic_txs_classes.csv"
    path.write_text(path.read_text().replace("unknown", "dubious", 1))
    with pytest.raises(MarioError, match=f"elliptic cannot be read from {files}: .*classes.csv .*'dubious'"):
        load_dataset("elliptic", root=files)


def test_a_download_is_unpacked_into_the_cache(tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def serve(_: object, url: str, timeout: float) -> io.BytesIO:
        asked.append(url)
        name = url.rpartition("/")[2].removesuffix(".zip")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.write(files / "EllipticBitcoin/raw" / name, name)
        return io.BytesIO(packed.getvalue())

    monkeypatch.setattr("urllib.request.OpenerDirector.open", serve)
    (tmp_path / "empty").mkdir()
    data = load_dataset("elliptic", root=tmp_path / "empty")
    assert torch.equal(data.x, load_dataset("elliptic", root=files).x)
    assert asked[0] == "https://data.pyg.org/datasets/elliptic/elliptic_txs_features.csv.zip"
    assert (tmp_path / "cache/data/EllipticBitcoin/raw/elliptic_txs_classes.csv").is_file()
