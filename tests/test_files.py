"""A file is whole or absent, whatever fails while it is written."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from mario.errors import MarioError
from mario.files import locked, remove_parts, write_json, write_tensors, write_text, write_whole
from mario.untrusted import read_json, read_safetensors


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "kept.json"
    path.write_text("old")
    return path


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may grow beyond ``size`` bytes: the kernel itself refuses the write, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_writes_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "value.json"
    value = {"ε": [1, 2.5, None], "name": "Veličković"}
    write_json(path, value)
    assert read_json(path) == value
    assert "Veličković" in path.read_text(encoding="utf-8")
    assert names(path.parent) == ["value.json"]


def test_replaces_what_is_there(old: Path) -> None:
    write_text(old, "new")
    assert old.read_text() == "new"
    assert names(old.parent) == ["kept.json"]
    assert old.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("failure", [RuntimeError("boom"), KeyboardInterrupt()])
def test_a_failing_writer_leaves_the_old_file_and_nothing_else(old: Path, failure: BaseException) -> None:
    def write(name: str) -> None:
        Path(name).write_text("half a fi")
        raise failure

    with pytest.raises(type(failure)):
        write_whole(old, write)
    assert old.read_text() == "old"
    assert names(old.parent) == ["kept.json"]


def test_the_old_file_is_there_while_the_new_one_is_written(old: Path) -> None:
    def write(name: str) -> None:
        Path(name).write_text("new")
        assert old.read_text() == "old"
        assert Path(name).parent == old.parent  # a rename is atomic within one file system only

    write_whole(old, write)
    assert old.read_text() == "new"


@pytest.mark.parametrize("call", ["os.open", "os.fsync", "os.replace"])
def test_a_disk_that_fills_up_at_any_point(old: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(call, full)
    with pytest.raises(MarioError, match=f"cannot write {old}: No space left on device; the previous file is kept"):
        write_text(old, "new")
    monkeypatch.undo()
    assert old.read_text() == "old"
    assert names(old.parent) == ["kept.json"]


def test_a_device_that_is_full(old: Path) -> None:
    def write(name: str) -> None:
        with open("/dev/full", "w") as file:
            file.write("x")

    with pytest.raises(MarioError, match=f"cannot write {old}: No space left on device"):
        write_whole(old, write)
    assert old.read_text() == "old"
    assert names(old.parent) == ["kept.json"]


def test_text_that_does_not_fit(old: Path) -> None:
    with room_for(1000), pytest.raises(MarioError, match=f"cannot write {old}: File too large"):
        write_text(old, "x" * 5000)
    assert old.read_text() == "old"
    assert names(old.parent) == ["kept.json"]


def test_tensors_that_do_not_fit(old: Path) -> None:
    # safetensors does not raise an OSError here but an error of its own.
    with room_for(1000), pytest.raises(MarioError, match=f"cannot write {old}: .*File too large"):
        write_whole(old, lambda name: save_file({"a": torch.zeros(5000)}, name))
    assert old.read_text() == "old"
    assert names(old.parent) == ["kept.json"]


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    with pytest.raises(MarioError, match=f"cannot write {tmp_path / 'folder'}: "):
        write_text(tmp_path / "folder", "new")
    assert names(tmp_path) == ["folder"]


def test_a_file_in_the_place_of_the_folder(old: Path) -> None:
    with pytest.raises(MarioError, match=f"cannot write {old / 'inner.json'}: "):
        write_text(old / "inner.json", "new")
    assert old.read_text() == "old"


def test_a_value_that_is_not_json_touches_nothing(old: Path) -> None:
    with pytest.raises(TypeError):
        write_json(old, {"a": object()})
    assert old.read_text() == "old"


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MarioError, match=f"there is no file {tmp_path / 'no.json'}"):
        read_json(tmp_path / "no.json")
    with pytest.raises(MarioError, match=f"cannot read {tmp_path}: Is a directory"):
        read_json(tmp_path)


@pytest.mark.parametrize("content", [b'{"a": 1', b"", b"\xff\xfe", b"[" * 100_000, b"9" * 5000], ids=range(5))
def test_reading_what_is_not_json(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(MarioError, match=f"{path} is not valid JSON .*; remove it"):
        read_json(path, "remove it")


def test_the_folder_is_flushed_after_the_rename(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda fd: flushed.append(os.readlink(f"/proc/self/fd/{fd}")) or fsync(fd))
    monkeypatch.setattr("os.replace", lambda *names: flushed.append("renamed") or replace(*names))
    write_text(old, "new")
    assert [flushed[0].endswith(".part"), *flushed[1:]] == [True, "renamed", str(old.parent)]


def test_a_folder_that_cannot_be_flushed(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, codes = os.fsync, [errno.EINVAL, errno.EIO]

    def failing(number: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{number}"):
            raise OSError(codes[0], os.strerror(codes[0]))
        fsync(number)

    monkeypatch.setattr("os.fsync", failing)
    write_text(old, "flushed by a filesystem that cannot flush folders")
    codes.pop(0)
    with pytest.raises(MarioError, match="Input/output error; the new file is there but may not survive"):
        write_text(old, "new")
    assert old.read_text() == "new"
    assert names(old.parent) == ["kept.json"]


def test_leftovers_of_killed_writes(tmp_path: Path) -> None:
    for name in (".result.json.1f.part", ".settings.json.1f.part", ".error.txt.2e.part", "mine.part", ".lock"):
        (tmp_path / name).write_text("half")
    remove_parts(tmp_path)
    assert names(tmp_path) == [".lock", "mine.part"]
    remove_parts(tmp_path / "absent")


def test_a_lock_is_waited_for_as_long_as_said(tmp_path: Path) -> None:
    said = f"another process is working on {tmp_path}/file"
    with locked(tmp_path / "file"), pytest.raises(MarioError, match=said), locked(tmp_path / "file", patience=0.05):
        pass
    with locked(tmp_path / "file", patience=0.05):
        pass


def test_tensors_are_the_same_bytes_each_time_and_a_changed_bit_is_noticed(tmp_path: Path) -> None:
    for number in range(8):  # safetensors writes the texts of a header in any order
        write_tensors(tmp_path / f"{number}", {"a": torch.arange(5.0), "é": torch.ones(())}, {"mario": '{"b": "é"}'})
    contents = {(tmp_path / f"{number}").read_bytes() for number in range(8)}
    assert len(contents) == 1
    about, tensors = read_safetensors(tmp_path / "0", "mario")
    assert about == {"b": "é"}
    assert tensors["a"].tolist() == [0, 1, 2, 3, 4]
    (content,) = contents
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 2
        (tmp_path / "0").write_bytes(damaged)
        with pytest.raises(MarioError):
            read_safetensors(tmp_path / "0", "mario")
