"""Raw files as users have them: read-only, absent, damaged, hostile, and in formats that we have no real file of."""

import io
import os
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import CitationFull

from mario.datasets import CATALOG, load_dataset
from mario.datasets.readers.pyg import check_npz, combine, compact
from mario.errors import MarioError

ARRAYS = dict[str, np.ndarray]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's cache that is empty, and no other data than what a test gives as root, which may be made up."""
    monkeypatch.setenv("MARIO_UNVERIFIED", "1")
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MARIO_DATA", raising=False)
    return tmp_path / "cache"


def cora_arrays(nodes: int = 120, words: int = 2400, classes: int = 6) -> ARRAYS:
    """A small graph in the format of CitationFull's ``cora.npz``."""
    rng = np.random.RandomState(0)
    attr = sp.random(nodes, words, density=0.02, format="csr", random_state=rng, dtype=np.float32)
    adj = sp.random(nodes, nodes, density=0.05, format="csr", random_state=rng, dtype=np.float32)
    arrays: ARRAYS = {"labels": rng.randint(classes, size=nodes)}
    for name, matrix in (("attr", attr), ("adj", adj)):
        arrays |= {f"{name}_data": matrix.data, f"{name}_indices": matrix.indices, f"{name}_indptr": matrix.indptr}
        arrays[f"{name}_shape"] = np.array(matrix.shape)
    return arrays


def write_cora(root: Path, arrays: ARRAYS) -> Path:
    path = root / CATALOG["good-cora"].files[0].path
    path.parent.mkdir(parents=True)
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def write_twitch(root: Path, **arrays: object) -> None:
    rng = np.random.RandomState(0)
    for file in CATALOG["good-twitch"].files:
        path = root / file.path
        path.parent.mkdir(parents=True)
        parts = {
            "features": rng.rand(20, 4).astype(np.float32),
            "target": rng.randint(2, size=20),
            "edges": rng.randint(20, size=(60, 2)),
        }
        np.savez(path, **(parts | arrays))  # type: ignore[arg-type]


def write_linqs(root: Path, pages: int = 12, **damage: str) -> None:
    (root / "WebKB-LINQS").mkdir(parents=True)
    classes = ["course", "faculty", "project", "staff", "student"]
    for u, university in enumerate(CATALOG["webkb"].parts):
        content = [f"http://{university}/{i}\t{i % 2}\t{u % 2}\t1\t{classes[i % 5]}" for i in range(pages)]
        cites = [f"http://{university}/0 http://{university}/{i}" for i in range(1, pages)]
        for ending, lines in (("content", content), ("cites", cites)):
            if university == "texas" and ending in damage:
                lines[3] = damage[ending]
            (root / f"WebKB-LINQS/{university}.{ending}").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("shift", ["covariate", "concept", "no_shift"])
@pytest.mark.parametrize("domain", ["word", "degree"])
def test_good_cora_from_a_small_file_of_its_format(tmp_path: Path, cache: Path, domain: str, shift: str) -> None:
    write_cora(tmp_path / "data", cora_arrays())
    data = load_dataset("good-cora", domain=domain, shift=shift, root=tmp_path / "data")
    assert data.x.layout == torch.sparse_csr
    assert data.x.shape == (120, 2400)
    assert data.num_classes == 6


def test_good_cora_is_what_pyg_reads(tmp_path: Path, cache: Path) -> None:
    path = write_cora(tmp_path / "data", cora_arrays())
    ours = load_dataset("good-cora", root=tmp_path / "data")
    again = load_dataset("good-cora", root=tmp_path / "data")
    copied = tmp_path / "pyg" / "cora" / "raw" / "cora.npz"
    copied.parent.mkdir(parents=True)
    shutil.copy(path, copied)
    theirs = CitationFull(str(tmp_path / "pyg"), "Cora")[0]
    for data in (ours, again):
        assert torch.equal(data.x.to_dense(), theirs.x)
        assert torch.equal(data.edge_index, theirs.edge_index)
        assert torch.equal(data.y, theirs.y)
    words = theirs.x.sum(dim=1)
    split = load_dataset("good-cora", domain="word", shift="covariate", root=tmp_path / "data")
    assert words[split.train_mask].min() > words[split.ood_val_mask].max()
    assert words[split.ood_val_mask].min() > words[split.ood_test_mask].max()


def test_object_arrays_that_pyg_never_reads_do_no_harm(tmp_path: Path, cache: Path) -> None:
    names = np.array([{"paper": 1}], dtype=object)  # as in the published cora.npz
    write_cora(tmp_path / "data", cora_arrays() | {"idx_to_node": names})
    assert load_dataset("good-cora", root=tmp_path / "data").num_nodes == 120


def test_a_read_only_folder_is_left_as_it_was(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "data"
    write_linqs(root)
    write_cora(root, cora_arrays())
    before = sorted(root.rglob("*"))
    for path in (*before, root):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        load_dataset("webkb", root=root)
        load_dataset("good-cora", root=root)
        assert sorted(root.rglob("*")) == before
    finally:
        for path in (root, *before):
            path.chmod(0o755)
    assert len(list((cache / "graphs").iterdir())) == 2


def test_processed_files_of_a_user_are_not_read(tmp_path: Path, cache: Path) -> None:
    path = write_cora(tmp_path / "data", cora_arrays())
    processed = path.parent.parent / "processed"
    processed.mkdir()
    (processed / "data_undirected.pt").write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    load_dataset("good-cora", root=tmp_path / "data")
    assert not (tmp_path / "ran").exists()


def test_prepared_graphs_are_kept_by_checksum_and_mended_when_damaged(tmp_path: Path, cache: Path) -> None:
    path = write_cora(tmp_path / "data", cora_arrays())
    first = load_dataset("good-cora", root=tmp_path / "data")
    (kept,) = (cache / "graphs").iterdir()
    stamp = kept.stat().st_mtime_ns
    load_dataset("good-cora", root=tmp_path / "data")
    assert kept.stat().st_mtime_ns == stamp
    kept.write_bytes(kept.read_bytes()[:100])
    again = load_dataset("good-cora", root=tmp_path / "data")
    assert torch.equal(again.x.to_dense(), first.x.to_dense())
    assert kept.stat().st_size > 100
    np.savez(path, **cora_arrays(nodes=130))  # type: ignore[arg-type]
    assert load_dataset("good-cora", root=tmp_path / "data").num_nodes == 130
    assert len(list((cache / "graphs").iterdir())) == 2


def test_without_a_writable_cache_it_works_all_the_same(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file where the cache's folder should be")
    write_linqs(tmp_path / "data")
    assert load_dataset("webkb", root=tmp_path / "data").num_nodes == 48


def test_root_then_environment_then_cache(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, pages in ((cache / "data", 10), (tmp_path / "environment", 15), (tmp_path / "root", 20)):
        write_linqs(place, pages)
    assert load_dataset("webkb").num_nodes == 40
    monkeypatch.setenv("MARIO_DATA", str(tmp_path / "environment"))
    assert load_dataset("webkb").num_nodes == 60
    assert load_dataset("webkb", root=tmp_path / "root").num_nodes == 80
    (tmp_path / "root/WebKB-LINQS/texas.cites").unlink()
    assert load_dataset("webkb", root=tmp_path / "root").num_nodes == 60


def test_absent_files_offline_are_one_error_that_says_where_they_go(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr("urllib.request.OpenerDirector.open", no_network)
    for name in [name for name, card in CATALOG.items() if card.files]:
        for download in (True, False):
            with pytest.raises(MarioError) as caught:
                load_dataset(name, root=tmp_path, download=download)
            message = str(caught.value)
            assert all(str(tmp_path / file.path) in message for file in CATALOG[name].files)
            assert "good-cbas needs no files" in message
            assert ("service not known" in message) == download
            assert caught.value.__cause__ is None
            assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert [path for path in (cache / "data").rglob("*") if path.is_file()] == []


def test_root_must_be_a_folder(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(MarioError, match="is not a folder"):
        load_dataset("webkb", root=tmp_path / "nowhere")


def test_a_download_is_moved_into_place_and_not_opened_on_the_way(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes is hostile and only meets our check."""
    stream = io.BytesIO()
    np.savez(stream, **{key: np.array([Payload(tmp_path / "ran")]) for key in ("features", "target", "edges")})
    monkeypatch.setattr("urllib.request.OpenerDirector.open", lambda *_, **__: io.BytesIO(stream.getvalue()))
    with pytest.raises(MarioError, match="never read"), pytest.warns(UserWarning, match="no checksums are known"):
        load_dataset("good-twitch")
    assert not (tmp_path / "ran").exists()
    assert (cache / "data/Twitch/DE/raw/DE.npz").read_bytes() == stream.getvalue()

    stream = io.BytesIO()
    np.savez(stream, **cora_arrays())  # type: ignore[arg-type]
    assert load_dataset("good-cora").num_nodes == 120


def test_a_download_with_known_checksums_takes_nothing_else(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urllib.request.OpenerDirector.open", lambda *_, **__: io.BytesIO(b"a login page"))
    with pytest.raises(MarioError, match="not the published one"):
        load_dataset("good-webkb")
    assert [path for path in (cache / "data").rglob("*") if path.is_file()] == []
    with pytest.raises(MarioError, match="good-cbas needs no files"):
        load_dataset("webkb")


class Payload:
    """Unpickled, it leaves a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        return os.mkdir, (str(self.mark), 0o755)


@pytest.mark.parametrize("member", ["features", "target", "edges"])
def test_a_pickle_in_an_archive_is_refused_and_does_not_run(tmp_path: Path, cache: Path, member: str) -> None:
    write_twitch(tmp_path / "data", **{member: np.array([Payload(tmp_path / "ran")], dtype=object)})
    with np.load(tmp_path / "data/Twitch/DE/raw/DE.npz", allow_pickle=True) as archive:
        archive[member]
    (tmp_path / "ran").rmdir()  # the payload is a live one
    with pytest.raises(MarioError, match=r"DE\.npz .*never read"):
        load_dataset("good-twitch", root=tmp_path / "data")
    assert not (tmp_path / "ran").exists()


def test_a_bare_pickle_or_a_doubled_member_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "DE.npz"
    path.write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    with pytest.raises(MarioError, match="never read"):
        check_npz(path, ["features"])
    sound, hostile = io.BytesIO(), io.BytesIO()
    np.save(sound, np.ones(2))
    np.save(hostile, np.array([Payload(tmp_path / "ran")], dtype=object))
    for names in (("features", "features.npy"), ("features.npy", "features")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(names[0], sound.getvalue())
            archive.writestr(names[1], hostile.getvalue())
        with pytest.raises(MarioError, match="must hold one array 'features'"):
            check_npz(path, ["features"])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("features.npy", sound.getvalue())
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("features.npy", hostile.getvalue())
    with pytest.raises(MarioError, match="must hold one array 'features'"):
        check_npz(path, ["features"])
    assert not (tmp_path / "ran").exists()


def test_twitch_of_small_files(tmp_path: Path, cache: Path) -> None:
    write_twitch(tmp_path / "data")
    data = load_dataset("good-twitch", shift="covariate", root=tmp_path / "data")
    assert (data.num_nodes, data.num_edges, data.metric) == (120, 360, "roc_auc")
    assert torch.equal(data.domain_id, torch.arange(120) // 20)
    assert torch.equal(data.domain_id[data.edge_index[0]], data.domain_id[data.edge_index[1]])


@pytest.mark.parametrize(
    "change",
    [
        {"edges": np.array([[0, 99]])},
        {"edges": np.array([[0, -1]])},
        {"features": np.full((20, 4), np.nan, dtype=np.float32)},
        {"features": np.ones((20,), dtype=np.float32)},
        {"target": np.zeros(7, dtype=np.int64)},
    ],
)
def test_archives_with_wrong_numbers_are_one_error(tmp_path: Path, cache: Path, change: dict[str, object]) -> None:
    write_twitch(tmp_path / "data", **change)
    with pytest.raises(MarioError, match="good-twitch cannot be read from"):
        load_dataset("good-twitch", root=tmp_path / "data")


@pytest.mark.parametrize("kept", [0, 10, 400, -30])
def test_truncated_archives_are_one_error(tmp_path: Path, cache: Path, kept: int) -> None:
    path = write_cora(tmp_path / "data", cora_arrays())
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(MarioError, match=r"cora\.npz is damaged") as caught:
        load_dataset("good-cora", root=tmp_path / "data")
    assert caught.value.__cause__ is None


def test_flipped_bytes_are_one_error(tmp_path: Path, cache: Path) -> None:
    path = write_cora(tmp_path / "data", cora_arrays())
    content = bytearray(path.read_bytes())
    content[300] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(MarioError, match=r"cora\.npz is damaged"):
        load_dataset("good-cora", root=tmp_path / "data")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attr_indices", 10**6),
        ("attr_indices", -5),
        ("adj_indices", 10**6),
        ("attr_indptr", 10**6),
        ("adj_indptr", -3),
        ("attr_shape", 3),
    ],
)
def test_indices_outside_the_matrix_never_reach_scipy(tmp_path: Path, cache: Path, key: str, value: int) -> None:
    arrays = cora_arrays()
    arrays[key] = arrays[key].copy()
    arrays[key][1] = value
    write_cora(tmp_path / "data", arrays)
    with pytest.raises(MarioError, match=r"are not a \d+ x \d+ matrix"):
        load_dataset("good-cora", root=tmp_path / "data")


def test_members_that_are_missing_are_named(tmp_path: Path, cache: Path) -> None:
    arrays = cora_arrays()
    del arrays["labels"]
    write_cora(tmp_path / "data", arrays)
    with pytest.raises(MarioError, match="one array 'labels'"):
        load_dataset("good-cora", root=tmp_path / "data")


@pytest.mark.parametrize(
    "line",
    [
        "http://texas/x\t0\t1\tstudent",
        "http://texas/x\t0\t1\t2\tstudent",
        "http://texas/x\t0\t1\t1\tdean",
        "http://texas/0\t0\t1\t1\tstudent",
        "nonsense",
    ],
)
def test_a_bad_line_of_pages_is_named(tmp_path: Path, cache: Path, line: str) -> None:
    write_linqs(tmp_path / "data", content=line)
    with pytest.raises(MarioError, match=r"texas\.content line 4 is damaged"):
        load_dataset("webkb", root=tmp_path / "data")


@pytest.mark.parametrize("line", ["http://texas/0", "http://texas/0 http://cornell/0", "a b c"])
def test_a_bad_line_of_links_is_named(tmp_path: Path, cache: Path, line: str) -> None:
    write_linqs(tmp_path / "data", cites=line)
    with pytest.raises(MarioError, match=r"texas\.cites line 4 is damaged"):
        load_dataset("webkb", root=tmp_path / "data")


def test_empty_and_binary_text_files(tmp_path: Path, cache: Path) -> None:
    for content in (b"", b"\xff\xfe\x00"):
        root = tmp_path / f"data{len(content)}"
        write_linqs(root)
        (root / "WebKB-LINQS/texas.content").write_bytes(content)
        with pytest.raises(MarioError, match="webkb cannot be read from"):
            load_dataset("webkb", root=root)


def test_damaged_text_of_pygs_webkb(tmp_path: Path, cache: Path, mario_data: Path) -> None:
    shutil.copytree(mario_data / "WebKB", tmp_path / "data" / "WebKB")
    path = tmp_path / "data/WebKB/texas/raw/out1_node_feature_label.txt"
    path.chmod(0o644)
    whole = path.read_text()
    path.write_text(whole[:5000])  # ends within the second page, which PyG drops in silence
    with pytest.raises(MarioError, match="the 1 nodes are numbered"):
        load_dataset("good-webkb", root=tmp_path / "data")
    path.write_text(whole.replace("\t3\n", "\tthree\n"))
    with pytest.raises(MarioError, match="`mario data verify good-webkb` says which") as caught:
        load_dataset("good-webkb", root=tmp_path / "data")
    assert caught.value.__suppress_context__


def test_combine_puts_graphs_side_by_side() -> None:
    one = torch.tensor([[0], [1]])
    parts = [Data(x=torch.full((n, 1), float(n)), edge_index=one, y=torch.arange(n)) for n in (2, 3)]
    both = combine(parts)
    assert both.x.view(-1).tolist() == [2, 2, 3, 3, 3]
    assert both.edge_index.tolist() == [[0, 2], [1, 3]]
    assert both.y.tolist() == [0, 1, 0, 1, 2]
    assert both.part_id.tolist() == [0, 0, 1, 1, 1]


def test_only_wide_and_empty_features_become_sparse() -> None:
    wide = torch.zeros(5, 2000)
    wide[1, 3], wide[4, 1999] = 2.0, 1.0
    assert compact(wide).layout == torch.sparse_csr
    assert torch.equal(compact(wide).to_dense(), wide)
    assert compact(wide[:, :1999]).layout == torch.strided
    assert compact(torch.ones(5, 2000)).layout == torch.strided
