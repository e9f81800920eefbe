"""Tensors on disk: equal to those in memory, and dropped after reading."""

import gc
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from mario.errors import MarioError
from mario.graphs import paging
from mario.graphs.paging import blocks, check_file, count_not_finite, extremes, gather, map_array, mapping_of, release


def file_pages() -> int:
    """KiB of files that are in this process's memory."""
    status = Path("/proc/self/status")
    if not status.is_file():
        pytest.skip("this system does not report how much of a file is in memory")
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("RssFile"))


def open_files() -> list[str]:
    place = Path("/proc/self/fd")
    return [entry.name for entry in place.iterdir() if entry.is_symlink()] if place.is_dir() else []


@pytest.fixture
def stored(tmp_path: Path, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(3000, 7, generator=generator)
    np.save(tmp_path / "x.npy", x.numpy())
    return map_array(tmp_path / "x.npy"), x


def test_a_mapped_tensor_is_a_tensor(stored: tuple[torch.Tensor, torch.Tensor]) -> None:
    mapped, x = stored
    assert type(mapped) is torch.Tensor
    assert torch.equal(mapped, x)
    assert mapping_of(mapped) is mapping_of(mapped[5:]) is mapping_of(mapped.to(torch.float32)) is not None
    assert mapping_of(x) is mapping_of(mapped + 0) is mapping_of(mapped.clone()) is None


def test_gather_is_index_select(stored: tuple[torch.Tensor, torch.Tensor], generator: torch.Generator) -> None:
    mapped, x = stored
    for count in (0, 1, 1024, 2500):
        rows = torch.randint(3000, (count,), generator=generator)
        for tensor, plain in ((mapped, x), (mapped[:, 2], x[:, 2]), (x, x)):
            found = gather(tensor, rows)
            assert torch.equal(found, plain.index_select(0, rows))
            assert mapping_of(found) is None
    with pytest.raises(IndexError):
        gather(mapped, torch.tensor([3000]))


def test_blocks_cover_all_rows_once(stored: tuple[torch.Tensor, torch.Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    mapped, x = stored
    assert torch.equal(torch.cat([block.clone() for block in blocks(mapped, rows=999)]), x)
    monkeypatch.setattr(paging, "_BLOCK_BYTES", 7 * 4 * 100)
    assert [len(block) for block in blocks(mapped)] == [100] * 30


def test_what_is_read_does_not_stay_in_memory(tmp_path: Path, generator: torch.Generator) -> None:
    np.save(tmp_path / "x.npy", np.ones((100_000, 128), dtype=np.float32))  # 51 MB
    mapped = map_array(tmp_path / "x.npy")
    before = file_pages()
    gather(mapped, torch.randint(100_000, (20_000,), generator=generator))
    for _ in blocks(mapped):
        pass
    assert count_not_finite(mapped) == 0
    assert file_pages() - before < 2_000
    mapped.sum()
    assert file_pages() - before > 40_000  # it is that which is measured
    release(mapped)
    assert file_pages() - before < 2_000


def test_scans_are_those_in_memory_and_remembered_of_whole_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: torch.Generator
) -> None:
    monkeypatch.setattr(paging, "_BLOCK_BYTES", 64)
    ids = torch.randint(-5, 90, (2, 300), generator=generator)
    values = torch.randn(40, 3, generator=generator)
    values[7, 1], values[30, 0], values[39, 2] = torch.nan, torch.inf, -torch.inf
    np.save(tmp_path / "ids.npy", ids.numpy())
    np.save(tmp_path / "values.npy", values.numpy())
    mapped_ids, mapped_values = map_array(tmp_path / "ids.npy"), map_array(tmp_path / "values.npy")
    for tensor in (mapped_ids[1], mapped_ids, ids):
        plain = ids[1] if tensor.dim() == 1 else ids
        assert extremes(tensor) == (int(plain.min()), int(plain.max()))
    assert count_not_finite(mapped_values[:7]) == count_not_finite(values[:7]) == 0
    assert count_not_finite(mapped_values) == count_not_finite(values) == 3
    mapping = mapping_of(mapped_values)
    assert mapping is not None
    assert mapping.facts == {"not_finite": 3}


def test_a_large_sum_of_finite_numbers_is_finite() -> None:
    assert count_not_finite(torch.full((4,), 3e38)) == 0


def test_the_file_is_closed_with_its_last_tensor(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 2), dtype=np.float32))
    mapped = map_array(tmp_path / "x.npy")
    address, view = mapped.untyped_storage().data_ptr(), mapped[1:]
    del mapped
    gc.collect()
    assert mapping_of(view) is paging._MAPPINGS[address]
    del view
    gc.collect()
    assert address not in paging._MAPPINGS
    opened = [os.readlink(f"/proc/self/fd/{name}") for name in open_files()]
    assert str(tmp_path / "x.npy") not in opened


def test_a_file_that_is_written_again_is_not_read_and_one_that_is_replaced_is(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones((3, 2), dtype=np.float32))
    mapped = map_array(path)
    np.save(tmp_path / "other.npy", np.zeros((3, 2), dtype=np.float32))
    (tmp_path / "other.npy").rename(path)
    assert gather(mapped, torch.tensor([2])).tolist() == [[1.0, 1.0]]
    mapped = map_array(path)
    os.utime(path, ns=(0, 1))
    np.save(path, np.ones((3, 2), dtype=np.float32))
    for read in (lambda: gather(mapped, torch.tensor([2])), lambda: list(blocks(mapped)), lambda: check_file(mapped)):
        with pytest.raises(MarioError, match=r"x\.npy was changed while it was in use\. Load the graph again"):
            read()


def test_nothing_is_unpickled_and_empty_arrays_are_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}, 1], dtype=object))
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        map_array(tmp_path / "objects.npy")
    np.save(tmp_path / "none.npy", np.empty((2, 0), dtype=np.int64))
    assert map_array(tmp_path / "none.npy").shape == (2, 0)
    np.save(tmp_path / "turned.npy", np.asfortranarray(np.ones((3, 2))))
    with pytest.raises(ValueError, match="row-major"):
        map_array(tmp_path / "turned.npy")
