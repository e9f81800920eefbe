"""Files of embeddings and predictions: what is in them, and that they are whole or absent."""

import csv
import errno
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import torch

from embedder.graphs import folder_of, shifting, with_ids
from mario.datasets import save_dataset
from mario.embedder import Embeddings, ModelFolder, Predictions, embed, predict
from mario.embedder.output import write_embeddings, write_predictions
from mario.errors import MarioError

NAMES = [f"user {i}\t" if i == 7 else f"u{i}" for i in range(300)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    given = {"rule": "gate", "center": "always", "steps": 3, "hidden_channels": 8, "method": "grace"}
    return folder_of(shifting(), tmp_path_factory.mktemp("fit") / "model", given=given)


@pytest.fixture(scope="module")
def z(folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory) -> Embeddings:
    return embed(folder, with_ids(save_dataset(shifting(), tmp_path_factory.mktemp("graph") / "mine"), NAMES))


@pytest.fixture(scope="module")
def found(folder: ModelFolder, z: Embeddings) -> Predictions:
    return predict(folder, z)


def test_parquet_has_ids_vectors_and_where_they_are_from(z: Embeddings, tmp_path: Path) -> None:
    assert write_embeddings(z, tmp_path / "z.parquet") == [tmp_path / "z.parquet"]
    table = pyarrow.parquet.read_table(tmp_path / "z.parquet")
    assert table.column("id").to_pylist() == NAMES
    vectors = table.column("embedding").combine_chunks()
    assert str(vectors.type).startswith("fixed_size_list<element: float>[12]")
    read = torch.from_numpy(vectors.flatten().to_numpy().reshape(300, 12).copy())
    assert read.equal(z.dense())
    about = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert about["mario.model"] == z.digest
    assert about["mario.graph"] == z.graph.fingerprint
    assert json.loads(about["mario.blocks"]) == {"x": [0, 4], "graph": [4, 12]}


def test_the_same_graph_gives_the_same_file(z: Embeddings, folder: ModelFolder, tmp_path: Path) -> None:
    assert z.graph.folder is not None
    write_embeddings(z, tmp_path / "one.parquet")
    write_embeddings(embed(folder, z.graph.folder), tmp_path / "two.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_parquet_with_a_column_per_number(z: Embeddings, tmp_path: Path) -> None:
    write_embeddings(z, tmp_path / "z.parquet", columns=True)
    frame = pyarrow.parquet.read_table(tmp_path / "z.parquet").to_pandas().set_index("id")
    assert list(frame.columns) == z.columns
    np.testing.assert_array_equal(frame.to_numpy(), z.dense().numpy())


def test_numpy_has_ids_beside_it_and_needs_no_pickle(z: Embeddings, tmp_path: Path) -> None:
    files = write_embeddings(z, tmp_path / "z.npy")
    assert files == [tmp_path / "z.npy", tmp_path / "z.ids.npy"]
    np.testing.assert_array_equal(np.load(files[0], mmap_mode="r"), z.dense().numpy())
    assert np.load(files[1]).tolist() == NAMES


@pytest.mark.parametrize("values", [list(range(300, 0, -1)), [2**64 - 1 - i for i in range(300)]])
def test_whole_numbers_stay_whole_numbers(folder: ModelFolder, tmp_path: Path, values: list[int]) -> None:
    z = embed(folder, with_ids(save_dataset(shifting(), tmp_path / "mine"), values))
    write_embeddings(z, tmp_path / "z.npy")
    assert np.load(tmp_path / "z.ids.npy").tolist() == values
    write_embeddings(z, tmp_path / "z.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "z.parquet").column("id").to_pylist() == values


def test_text_is_read_as_the_same_numbers(z: Embeddings, folder: ModelFolder, tmp_path: Path) -> None:
    write_embeddings(z, tmp_path / "z.tsv")
    with open(tmp_path / "z.tsv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    assert rows[0] == ["id", *z.columns]
    assert [row[0] for row in rows[1:]] == NAMES
    np.testing.assert_array_equal(np.array([row[1:] for row in rows[1:]], dtype=np.float32), z.dense().numpy())
    plain = embed(folder, shifting())
    write_embeddings(plain, tmp_path / "z.vec")
    lines = (tmp_path / "z.vec").read_text().splitlines()
    assert lines[0] == "300 12"
    assert lines[5].split(" ")[0] == "4"
    np.testing.assert_array_equal(np.array(lines[5].split(" ")[1:], dtype=np.float32), plain.dense()[4].numpy())


def test_an_id_with_white_space_does_not_go_into_word2vec(z: Embeddings, tmp_path: Path) -> None:
    with pytest.raises(MarioError, match=r"id 'user 7\\t' is empty or has white space, which \.vec cannot hold"):
        write_embeddings(z, tmp_path / "z.vec")
    assert not list(tmp_path.iterdir())


def test_predictions_name_the_label_and_the_classes(found: Predictions, tmp_path: Path) -> None:
    path, empty = write_predictions(found, tmp_path / "p.parquet")
    assert empty == 0
    frame = pyarrow.parquet.read_table(path).to_pandas()
    assert list(frame.columns) == ["id", "label", "probability", "p_0", "p_1"]
    assert frame["id"].tolist() == NAMES
    np.testing.assert_allclose(frame[["p_0", "p_1"]].to_numpy(), found.probabilities(0, 300).numpy())
    assert (frame["label"] == frame[["p_0", "p_1"]].to_numpy().argmax(1)).all()
    write_predictions(found, tmp_path / "p.csv")
    with open(tmp_path / "p.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == NAMES
    assert [int(row["label"]) for row in rows] == frame["label"].tolist()


def test_labels_below_a_probability_are_left_empty(found: Predictions, tmp_path: Path) -> None:
    best = found.probabilities(0, 300).max(1).values
    limit = float(best.median())
    path, empty = write_predictions(found, tmp_path / "p.parquet", at_least=limit)
    labels = pyarrow.parquet.read_table(path).column("label")
    assert labels.null_count == empty == int((best < limit).sum()) > 0
    with pytest.raises(MarioError, match="at_least must be a probability"):
        write_predictions(found, tmp_path / "p.csv", at_least=2.0)


@pytest.mark.parametrize("suffix", [".parquet", ".npy", ".tsv"])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left on device")])
def test_what_stops_half_way_leaves_nothing(
    z: Embeddings, tmp_path: Path, suffix: str, stop: type[BaseException] | BaseException
) -> None:
    def watch(done: int, total: int) -> None:
        raise stop

    before = tmp_path / f"z{suffix}"
    before.write_text("earlier")
    with pytest.raises((KeyboardInterrupt, MarioError)) as caught:
        write_embeddings(z, tmp_path / f"z{suffix}", watch=watch)
    if isinstance(stop, OSError):
        assert "No space left on device; the previous file is kept" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [before.name]
    assert before.read_text() == "earlier"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("z.csv", r"-o must end with \.parquet, \.npy, \.tsv or \.vec, got"),
        ("z", "-o must end with"),
        ("folder.npy", "is a folder: name a file for -o"),
        ("file/z.npy", "file is a file, so .* cannot be written"),
    ],
)
def test_a_file_that_cannot_be_written_is_said_first(z: Embeddings, tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(MarioError, match=said):
        write_embeddings(z, tmp_path / name)


def test_without_pyarrow_numpy_and_text_work(
    folder: ModelFolder, z: Embeddings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = embed(folder, shifting())
    assert z.graph.folder is not None
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for suffix in (".npy", ".tsv", ".vec"):
        write_embeddings(plain, tmp_path / f"z{suffix}")
    assert np.load(tmp_path / "z.ids.npy").tolist() == list(range(300))
    write_predictions(predict(folder, plain), tmp_path / "p.csv")
    with pytest.raises(MarioError, match=r"Parquet files need pyarrow: pip install 'mario-gcl\[tables\]'"):
        write_embeddings(plain, tmp_path / "z.parquet")
    with pytest.raises(MarioError, match=r"need pyarrow: pip install 'mario-gcl\[tables\]'"):
        embed(folder, z.graph.folder)
