"""A graph in a folder: what was saved comes back, and a damaged folder gives one clear error."""

import json
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import mario
from mario.encoders import propagation
from mario.errors import MarioError
from mario.graphs import check_graph, load_mapped, save_mapped, training_graph
from mario.graphs.csr import CSR
from mario.graphs.paging import mapping_of
from mario.graphs.samplers import Clusters, Neighbors, RandomWalk, Sampler
from mario.graphs.subgraph import count_nodes


def graph(*, nodes: int = 60, symmetric: bool = True, ordered: bool = True, seed: int = 0) -> Data:
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(nodes, (2, 4 * nodes), generator=generator)
    if symmetric:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    if ordered:
        edge_index = edge_index[:, (edge_index[0] * nodes + edge_index[1]).argsort(stable=True)]
    part = torch.randint(3, (nodes,), generator=generator)
    return Data(
        x=torch.randn(nodes, 5, generator=generator),
        edge_index=edge_index,
        y=torch.randint(3, (nodes,), generator=generator),
        train_mask=part == 0,
        id_val_mask=part == 1,
        ood_test_mask=part == 2,
        env_id=torch.where(part == 0, 0, -1),
        num_classes=3,
        name="mine",
        faults=[],
    )


def same(a: Data, b: Data) -> bool:
    keys = a.to_dict().keys()
    assert keys == b.to_dict().keys()
    return all(torch.equal(a[key], b[key]) if isinstance(a[key], torch.Tensor) else a[key] == b[key] for key in keys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_mapped(graph(), tmp_path / "graph")
    return tmp_path / "graph"


def test_what_was_saved_comes_back_and_stays_on_disk(folder: Path) -> None:
    loaded = load_mapped(folder)
    assert same(graph(), loaded)
    assert mapping_of(loaded.x) is not None
    assert mapping_of(graph().x) is None
    assert all(mapping_of(value) is not None for _, value in loaded if isinstance(value, torch.Tensor))
    check_graph(loaded)
    assert (loaded.num_nodes, loaded.num_features, loaded.is_undirected()) == (60, 5, True)


def test_edges_are_grouped_by_source_in_their_order(tmp_path: Path) -> None:
    data = graph(ordered=False, symmetric=False)
    save_mapped(data, tmp_path / "graph")
    order = data.edge_index[0].argsort(stable=True)
    loaded = load_mapped(tmp_path / "graph")
    assert torch.equal(loaded.edge_index, data.edge_index[:, order])
    mapping = mapping_of(loaded.edge_index)
    assert mapping is not None
    assert not mapping.symmetric


def test_a_graph_without_edges(tmp_path: Path) -> None:
    save_mapped(Data(x=torch.eye(3), edge_index=torch.empty(2, 0, dtype=torch.int64)), tmp_path / "graph")
    loaded = load_mapped(tmp_path / "graph")
    assert loaded.edge_index.shape == (2, 0)
    check_graph(loaded)
    assert RandomWalk(loaded, roots=2, length=2).sample().edge_index.shape == (2, 0)


@pytest.mark.parametrize("by", ["source", "target"])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("ids", [False, True])
def test_rows_are_those_of_the_graph_in_memory(tmp_path: Path, by: str, symmetric: bool, ids: bool) -> None:
    data = graph(symmetric=symmetric)
    save_mapped(data, tmp_path / "graph")
    loaded = load_mapped(tmp_path / "graph")
    ours, plain = (CSR(each.edge_index, 60, by=by, ids=ids) for each in (loaded, data))
    assert torch.equal(ours.starts, plain.starts)
    assert torch.equal(ours.others, plain.others)
    slots = torch.arange(ours.others.numel())
    assert torch.equal(ours.ends(slots), plain.ends(slots))
    if ids:
        assert torch.equal(ours.ids(slots), plain.ids(slots))
    stays = by == "source" or (symmetric and not ids)
    assert (mapping_of(ours.others) is not None) == stays


def samplers(data: Data) -> list[Sampler]:
    return [
        RandomWalk(data, roots=10, length=3),
        Neighbors(data, seeds=7, fanouts=[3, -1], nodes=data.train_mask),
        Clusters(data, clusters=6, per_batch=2, method="bfs"),
    ]


def test_every_sampler_draws_the_batches_of_the_graph_in_memory(folder: Path) -> None:
    for ours, plain in zip(
        samplers(training_graph(load_mapped(folder))), samplers(training_graph(graph())), strict=True
    ):
        for seed in range(5):
            batches = [sampler.sample(torch.Generator().manual_seed(seed)) for sampler in (ours, plain)]
            assert same(*batches)
            assert mapping_of(batches[0].x) is None


def test_an_edge_attribute_that_was_added_follows_its_edge(folder: Path) -> None:
    loaded, data = load_mapped(folder), graph()
    loaded.edge_weight = data.edge_weight = torch.arange(data.num_edges)
    ours, plain = (Neighbors(each, seeds=7, fanouts=[2]) for each in (loaded, data))
    assert same(*(sampler.sample(torch.Generator().manual_seed(0)) for sampler in (ours, plain)))


def weighted(*, symmetric: bool, ordered: bool) -> Data:
    data, generator = graph(symmetric=symmetric, ordered=ordered), torch.Generator().manual_seed(3)
    data.edge_weight = torch.rand(data.num_edges, generator=generator)
    data.edge_attr = torch.randn(data.num_edges, 3, generator=generator)
    return data


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
def test_weights_and_attributes_are_mapped_and_stay_with_their_edges(
    tmp_path: Path, symmetric: bool, ordered: bool
) -> None:
    data = weighted(symmetric=symmetric, ordered=ordered)
    save_mapped(data, tmp_path / "graph")
    loaded = load_mapped(tmp_path / "graph")
    check_graph(loaded)
    order = data.edge_index[0].argsort(stable=True)
    assert torch.equal(loaded.edge_index, data.edge_index[:, order])
    assert torch.equal(loaded.edge_weight, data.edge_weight[order])
    assert torch.equal(loaded.edge_attr, data.edge_attr[order])
    assert mapping_of(loaded.edge_weight) is not None
    assert mapping_of(loaded.edge_attr) is not None
    plain = data.clone()
    for key in ("edge_index", "edge_weight", "edge_attr"):
        plain[key] = loaded[key].clone()
    for ours, theirs in zip(samplers(training_graph(loaded)), samplers(training_graph(plain)), strict=True):
        for seed in range(3):
            batches = [sampler.sample(torch.Generator().manual_seed(seed)) for sampler in (ours, theirs)]
            assert same(*batches)
            assert mapping_of(batches[0].edge_weight) is mapping_of(batches[0].edge_attr) is None


def test_weights_that_changed_are_checked(tmp_path: Path) -> None:
    save_mapped(weighted(symmetric=True, ordered=True), tmp_path / "graph")
    change(tmp_path / "graph", "edge_weight", (7,), -1)
    with pytest.raises(MarioError, match=r"data\.edge_weight holds 1 negative"):
        check_graph(load_mapped(tmp_path / "graph"))
    change(tmp_path / "graph", "edge_attr", (7, 0), np.nan)
    with pytest.raises(MarioError, match=r"data\.edge_attr holds 1 NaN"):
        check_graph(load_mapped(tmp_path / "graph"))


def test_a_thread_may_draw_while_others_read(folder: Path) -> None:
    """One sampler per thread; batches depend on the generator only, not on pages that another thread drops."""
    loaded = load_mapped(folder)
    due = [RandomWalk(graph(), roots=10, length=3).sample(torch.Generator().manual_seed(seed)) for seed in range(50)]
    wrong: list[int] = []

    def draw() -> None:
        sampler = RandomWalk(loaded, roots=10, length=3)
        for seed, batch in enumerate(due):
            found = sampler.sample(torch.Generator().manual_seed(seed))
            wrong.extend([] if same(found, batch) else [seed])

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_loading_warns_about_nothing(folder: Path, recwarn: pytest.WarningsRecorder) -> None:
    loaded = load_mapped(folder)
    check_graph(loaded)
    assert not recwarn.list


def test_training_does_not_copy_the_features(folder: Path) -> None:
    data = load_mapped(folder)
    seen = training_graph(data)
    assert seen.x is data.x
    assert seen.edge_index is data.edge_index
    data.setting = "inductive"
    memory = graph()
    memory.setting = "inductive"
    assert same(training_graph(data), training_graph(memory))


def test_nothing_of_the_whole_graph_stays_in_memory_after_it_was_embedded(folder: Path) -> None:
    data = load_mapped(folder)
    model = mario.GRACE(hidden_channels=4, num_layers=2, epochs=1, steps_per_epoch=1, roots=3).fit(data)
    known = propagation.propagation_of(data.edge_index, count_nodes(data))
    assert propagation.propagation_of(data.edge_index, count_nodes(data)) is known, "as ever while nothing is embedded"
    z = model.transform(data)
    assert propagation.propagation_of(data.edge_index, count_nodes(data)) is not known
    torch.testing.assert_close(model.transform(data), z, rtol=0, atol=0)


def test_a_half_written_folder_is_no_graph(folder: Path, tmp_path: Path) -> None:
    (folder / "graph.json").unlink()
    with pytest.raises(MarioError, match=r"no graph in .*graph\.json is missing"):
        load_mapped(folder)
    with pytest.raises(MarioError, match="no graph in"):
        load_mapped(tmp_path / "nowhere")
    with pytest.raises(MarioError, match="is not empty"):
        save_mapped(graph(), folder)


def change(folder: Path, name: str, where: tuple[int, ...], value: float) -> None:
    array = np.load(folder / f"{name}.npy")
    array[where] = value
    np.save(folder / f"{name}.npy", array)


def test_copies_are_checked_again_and_sound(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copyfile)
    loaded = load_mapped(tmp_path / "copy")
    check_graph(loaded)
    assert same(loaded, graph())


@pytest.mark.parametrize(
    ("name", "where", "value", "message"),
    [
        ("edge_index", (1, 3), 60, "names node 60, but the 60 nodes"),
        ("edge_index", (1, 3), -1, "names node -1"),
        ("edge_index", (0, 3), 59, "not grouped by source"),
        ("starts", (5,), 0, "must ascend"),
        ("starts", (60,), 481, "must ascend from 0 to the 480 edges"),
    ],
)
def test_damaged_edges_are_one_error(folder: Path, name: str, where: tuple[int, ...], value: int, message: str) -> None:
    change(folder, name, where, value)
    with pytest.raises(MarioError, match=message):
        load_mapped(folder)


def test_features_that_changed_are_checked(folder: Path) -> None:
    change(folder, "x", (4, 2), np.nan)
    with pytest.raises(MarioError, match="holds 1 NaN"):
        check_graph(load_mapped(folder))


def test_damaged_files_are_one_error(folder: Path) -> None:
    about = (folder / "graph.json").read_text()
    whole = (folder / "x.npy").read_bytes()
    for damaged in (whole[:-8], whole[:40], b"", b"nonsense", b"\x80\x04K\x01."):
        (folder / "x.npy").write_bytes(damaged)
        with pytest.raises(MarioError, match=r"damaged|not a sound graph"):
            load_mapped(folder)
    np.save(folder / "x.npy", np.ones((59, 5), dtype=np.float32))
    with pytest.raises(MarioError, match=r"x\.npy holds float32 of shape \[59, 5\]; graph\.json says float32 of \[60"):
        load_mapped(folder)
    (folder / "x.npy").unlink()
    with pytest.raises(MarioError, match=r"x\.npy is missing"):
        load_mapped(folder)
    (folder / "x.npy").write_bytes(whole)
    for text in ("[]", "{}", '{"format": 2}', about.replace('"arrays"', '"other"'), about.replace('"y"', '"../y"')):
        (folder / "graph.json").write_text(text)
        with pytest.raises(MarioError):
            load_mapped(folder)
    (folder / "graph.json").write_text("{")
    with pytest.raises(MarioError, match="not valid JSON"):
        load_mapped(folder)


def test_shapes_that_do_not_fit_are_one_error(folder: Path) -> None:
    about = json.loads((folder / "graph.json").read_text())
    np.save(folder / "starts.npy", np.zeros(60, dtype=np.int64))
    about["arrays"]["starts"]["shape"] = [60]
    (folder / "graph.json").write_text(json.dumps(about))
    with pytest.raises(MarioError, match="starts must hold 61 int64"):
        load_mapped(folder)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"edge_weight": torch.full((480,), torch.nan)}, "data.edge_weight holds 480 NaN"),
        ({"edge_attr": torch.full((480, 1), torch.inf)}, "data.edge_attr holds 480 NaN or infinite"),
        ({"x": torch.eye(60).to_sparse_csr()}, "a dense matrix"),
        ({"x": torch.full((60, 2), torch.nan)}, "120 NaN"),
        ({"x": torch.ones(60, 2, dtype=torch.int64)}, "float32"),
        ({"edge_index": torch.tensor([[0], [60]])}, "names node 60"),
        ({"name": {1, 2}}, "cannot be written as JSON"),
        ({"starts": torch.zeros(3)}, "data.starts cannot be written: the name must be"),
        ({"starts": "early"}, "data.starts cannot be written"),
        ({"../x": torch.zeros(3)}, r"becomes the name of a file and cannot be '../x': it has '/'"),
        ({"my key": torch.zeros(3)}, "data.my key cannot be written"),
        ({"extra": torch.zeros(3, dtype=torch.bfloat16)}, "data.extra is strided bfloat16"),
        ({"extra": torch.zeros(3, dtype=torch.complex64)}, "data.extra is strided complex64"),
        ({"extra": torch.eye(3).to_sparse_csr()}, "data.extra is sparse_csr float32"),
    ],
)
def test_what_cannot_be_saved_is_one_error_and_no_graph(
    tmp_path: Path, broken: dict[str, object], message: str
) -> None:
    data = graph()
    for key, value in broken.items():
        data[key] = value
    with pytest.raises(MarioError, match=message):
        save_mapped(data, tmp_path / "graph")
    assert not (tmp_path / "graph" / "graph.json").exists()


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.float16, torch.float64])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_tensors_of_other_types_and_shapes_come_back(
    tmp_path: Path, dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    data = graph()
    data.extra = torch.ones(shape).to(dtype)
    save_mapped(data, tmp_path / "graph")
    loaded = load_mapped(tmp_path / "graph").extra
    assert loaded.dtype == dtype
    assert torch.equal(loaded, data.extra)


HEADERS = {
    "no dict": b"1 / 0",
    "arithmetic": b"{'descr': '<f4', 'fortran_order': False, 'shape': (9**9**9, 5)}",
    "deep": b"-" * 9000 + b"1",
    "brackets": b"(" * 9000,
    "a call": b"__import__('os').abort()",
    "not closed": b"{'descr': '<f4', 'fortran_order': False, 'shape': (60, 5",
    "a null": b"{'descr': '<f4', \x00}",
    "no text": b"\xff\xfe\xfd",
    "huge shape": b"{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000000000000000000, 5)}",
    "shape that overflows": b"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
    "negative shape": b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 5)}",
    "shape of bools": b"{'descr': '<f4', 'fortran_order': False, 'shape': (True, 5)}",
    "objects": b"{'descr': '|O', 'fortran_order': False, 'shape': (60, 5)}",
    "text": b"{'descr': '<U5', 'fortran_order': False, 'shape': (6, 5)}",
    "no size": b"{'descr': '<U0', 'fortran_order': False, 'shape': (60, 5)}",
    "fields": b"{'descr': [('a', '<f4'), ('a', '<f4')], 'fortran_order': False, 'shape': (60, 5)}",
    "other byte order": b"{'descr': '>f4', 'fortran_order': False, 'shape': (60, 5)}",
    "column-major": b"{'descr': '<f4', 'fortran_order': True, 'shape': (60, 5)}",
    "more keys": b"{'descr': '<f4', 'fortran_order': False, 'shape': (60, 5), 1: 2}",
}


@pytest.mark.parametrize("version", [1, 2, 3, 9])
@pytest.mark.parametrize("header", HEADERS)
def test_any_header_is_one_error(folder: Path, header: str, version: int) -> None:
    text = HEADERS[header] + b"\n"
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    (folder / "x.npy").write_bytes(b"\x93NUMPY" + bytes([version, 0]) + size + text + bytes(1200))
    with pytest.raises(MarioError, match=r"damaged|not a sound graph"):
        load_mapped(folder)
