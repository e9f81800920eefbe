"""Temporary files in place of memory: the same numbers, no names on disk, one message when there is no room."""

import errno
import gc
import os
import tempfile
from pathlib import Path

import pytest
import torch

from mario.errors import MarioError, RunFailedError
from mario.graphs.paging import blocks, check_file, count_not_finite, gather, mapping_of, release
from mario.graphs.scratch import Scratch, read_numbers, scratch_for, write_numbers


def test_only_under_a_scratch_that_is_too_small() -> None:
    assert scratch_for(10**12) is None
    with Scratch(memory=100) as outer:
        assert scratch_for(100) is None
        assert scratch_for(101) is outer
        with Scratch(memory=1000):
            assert scratch_for(101) is None
        assert scratch_for(101) is outer
    assert scratch_for(10**12) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("columns", "memory", "panels"), [(5, 2**20, 1), (20, 1, 3), (16, 30 * 8 * 8, 2), (3, 1, 1)])
def test_panels_hold_a_matrix(
    dtype: torch.dtype, columns: int, memory: int, panels: int, generator: torch.Generator, tmp_path: Path
) -> None:
    matrix = torch.randn(30, columns, generator=generator, dtype=dtype)
    stored = Scratch(tmp_path).panels(30, columns, dtype, memory=memory * dtype.itemsize // 8 or 1)
    assert len(stored) == panels
    for first in (10, 20, 0):
        stored.write(slice(first, first + 10), matrix[first : first + 10])
    assert torch.equal(stored.read(slice(7, 23)), matrix[7:23])
    assert torch.equal(torch.cat([stored.panel(number) for number in range(len(stored))], 1), matrix)
    stored.write_panel(panels - 1, slice(3, 5), torch.zeros(2, columns, dtype=dtype)[:, stored.parts[-1]])
    assert torch.equal(
        stored.read(slice(3, 5))[:, stored.parts[-1]], torch.zeros(2, columns, dtype=dtype)[:, stored.parts[-1]]
    )
    assert torch.equal(stored.read(slice(5, 30)), matrix[5:])
    assert not list(tmp_path.iterdir())


def test_a_tensor_on_disk_is_a_tensor(generator: torch.Generator, tmp_path: Path) -> None:
    x = torch.randn(500, 7, generator=generator)
    stored = Scratch(tmp_path / "new").tensor(500, 7, torch.float32)
    for rows in torch.arange(500).split(100):
        stored[rows] = x[rows]
        release(stored)
    assert type(stored) is torch.Tensor
    assert torch.equal(stored, x)
    assert mapping_of(stored) is mapping_of(stored[5:]) is not None
    assert torch.equal(gather(stored, torch.tensor([3, 499, 0])), x[[3, 499, 0]])
    assert torch.equal(torch.cat([block.clone() for block in blocks(stored, rows=99)]), x)
    assert not list((tmp_path / "new").iterdir())


def test_it_may_be_changed_and_is_looked_at_again(tmp_path: Path) -> None:
    stored = Scratch(tmp_path).tensor(4, 2, torch.float32)
    stored.fill_(1.0)
    assert count_not_finite(stored) == 0
    stored[2, 1] = torch.nan
    check_file(stored)
    assert count_not_finite(stored) == 1


def test_the_file_is_gone_with_the_tensor(tmp_path: Path) -> None:
    maps = Path("/proc/self/maps")
    if not maps.is_file():
        pytest.skip("this system does not list mapped files")
    stored = Scratch(tmp_path).tensor(4, 2, torch.float32)
    assert str(tmp_path) in maps.read_text()
    del stored
    gc.collect()
    assert str(tmp_path) not in maps.read_text()


def test_no_room_is_said_before_anything_is_written(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    for make in (scratch.tensor, lambda rows, columns, dtype: scratch.panels(rows, columns, dtype, memory=2**20)):
        with pytest.raises(
            RunFailedError, match=r"GiB free, and [\d,.]+ GiB are needed: free some space, or name another"
        ):
            make(10**9, 10**6, torch.float32)


def test_a_disk_that_fills_up_is_one_message(tmp_path: Path) -> None:
    with tempfile.TemporaryFile(dir=tmp_path) as file, open("/dev/full", "wb") as full:
        write_numbers(file, 8, torch.tensor([1.0, 2.0]))
        assert read_numbers(file, 8, torch.zeros(2)).tolist() == [1.0, 2.0]
        with pytest.raises(RunFailedError, match="has 4 of 8 bytes at 12"):
            read_numbers(file, 12, torch.zeros(2))
        with pytest.raises(RunFailedError, match=os.strerror(errno.ENOSPC)):
            write_numbers(full, 0, torch.ones(2**20))


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(MarioError, match="memory must be an integer of at least 1"):
        Scratch(memory=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailedError, match="cannot use "):
        Scratch(tmp_path / "file").tensor(1, 1, torch.float32)
