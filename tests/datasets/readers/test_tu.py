from pathlib import Path

import pytest

from mario.datasets import CATALOG, load_dataset
from mario.datasets.readers.tu import read_tu
from mario.errors import MarioError

FILES = {
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "node_labels": "1\n2\n1\n3\n1\n",
    "graph_labels": "7\n-1\n",
    "A": "1, 2\n2, 1\n2, 1\n3, 3\n4, 5\n5, 4\n",
}


def write(root: Path, name: str = "PROTEINS", **changed: str) -> Path:
    raw = root / "TUDataset" / name / "raw"
    raw.mkdir(parents=True)
    for part, text in (FILES | changed).items():
        (raw / f"{name}_{part}.txt").write_text(text)
    return root


def files_of(root: Path) -> list[Path]:
    return [root / file.path for file in CATALOG["proteins-25"].files]


def test_read(tmp_path: Path) -> None:
    data = read_tu(*files_of(write(tmp_path)))
    assert data.x.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert data.edge_index.tolist() == [[0, 1, 3, 4], [1, 0, 4, 3]]  # no self-loop, no edge twice
    assert data.y.tolist() == [1, 0]
    assert data.batch.tolist() == [0, 0, 0, 1, 1]
    assert data.ptr.tolist() == [0, 3, 5]
    assert data.num_graphs == 2


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("A", "1, 2\n2, 9\n", r"names nodes outside 1\.\.5"),
        ("A", "1, 4\n", "links nodes of two graphs"),
        ("A", "1\n2\n", "2 whole numbers per line, got 1"),
        ("A", "1, x\n", "PROTEINS_A.txt cannot be read"),
        ("graph_indicator", "1\n1\n3\n3\n3\n", "number the graphs from 1"),
        ("graph_indicator", "2\n2\n2\n3\n3\n", "number the graphs from 1"),
        ("node_labels", "1\n2\n", "2 lines for 5 nodes"),
        ("graph_labels", "1\n2\n1\n", "3 lines for 2 graphs"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, part: str, text: str, message: str) -> None:
    with pytest.raises(MarioError, match=message):
        read_tu(*files_of(write(tmp_path, **{part: text})))


def test_loading_needs_graphs_of_the_size_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MARIO_UNVERIFIED", "1")
    write(tmp_path / "data")
    with pytest.raises(MarioError, match="train=500, but only 0 graphs have 4 to 25 nodes"):
        load_dataset("proteins-25", root=tmp_path / "data", download=False)


def test_both_d_and_d_sets_share_one_prepared_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MARIO_UNVERIFIED", "1")
    nodes = [*[30] * 3, 400]
    lines = [str(i + 1) for i, n in enumerate(nodes) for _ in range(n)]
    text = "\n".join(lines) + "\n"
    files = {"graph_indicator": text, "node_labels": "1\n" * len(lines), "graph_labels": "1\n2\n1\n2\n", "A": "1, 2\n"}
    write(tmp_path / "data", "DD", **files)
    data = load_dataset("dd-200", root=tmp_path / "data", download=False)
    assert data.train_mask.tolist() == [True, True, True, False]
    with pytest.raises(MarioError, match="only 3 graphs have 30 to 300 nodes"):
        load_dataset("dd-300", root=tmp_path / "data", download=False)
    assert len(list((tmp_path / "cache/graphs").iterdir())) == 1
