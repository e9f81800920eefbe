"""A checkpoint is everything, whole, and the newest that can be read is the one used."""

import copy
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from mario.errors import MarioError
from mario.training import Checkpoint
from mario.training.checkpoint import remove_old


class Net(nn.Module):
    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.linear = nn.Linear(2, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.linear(x))


OPTIMIZERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
}


def steps(net: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator, count: int) -> None:
    for _ in range(count):
        optimizer.zero_grad()
        net(torch.randn(5, 2, generator=generator)).square().sum().backward()
        optimizer.step()


def saved(step: int, folder: Path, net: nn.Module | None = None) -> None:
    net = net or Net()
    optimizer = torch.optim.Adam(net.parameters())
    Checkpoint.capture(step, net, optimizer, [{"epoch": step}], {"best": 0.5}).save(folder)


@pytest.mark.parametrize("kind", list(OPTIMIZERS))
def test_going_on_from_a_file_is_going_on(kind: str, tmp_path: Path) -> None:
    net, generator = Net(), torch.Generator().manual_seed(0)
    optimizer = OPTIMIZERS[kind](net.parameters())
    steps(net, optimizer, generator, 3)
    Checkpoint.capture(3, net, optimizer, [{"epoch": 1, "id_val": 0.25}], {"best": float("inf")}).save(tmp_path)
    state = generator.get_state()
    steps(net, optimizer, generator, 3)

    other = Net()
    again = OPTIMIZERS[kind](other.parameters())
    found = Checkpoint.newest(tmp_path)
    assert found is not None
    assert (found.step, found.records, found.extra) == (3, [{"epoch": 1, "id_val": 0.25}], {"best": float("inf")})
    found.restore(other, again)
    generator.set_state(state)
    steps(other, again, generator, 3)
    for name, tensor in net.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name


def test_a_capture_is_a_copy() -> None:
    net = Net()
    before = copy.deepcopy(net.state_dict())
    optimizer, generator = torch.optim.Adam(net.parameters()), torch.Generator()
    captured = Checkpoint.capture(0, net, optimizer, [], {})
    steps(net, optimizer, generator, 1)
    captured.restore(net, optimizer)
    assert all(torch.equal(net.state_dict()[name], tensor) for name, tensor in before.items())


def test_a_weight_with_two_names_and_a_slice_of_another_tensor(tmp_path: Path) -> None:
    net = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    net[1].weight = net[0].weight
    net.register_buffer("part", torch.arange(6.0).view(2, 3)[:, 1])
    saved(1, tmp_path, net)
    found = Checkpoint.newest(tmp_path)
    assert found is not None
    assert torch.equal(found.tensors["model.1.weight"], net[0].weight)
    assert found.tensors["model.part"].tolist() == [1, 4]


def test_the_newest_two_are_kept(tmp_path: Path) -> None:
    for step in (5, 50, 1000, 999_999):
        saved(step, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["000001000.safetensors", "000999999.safetensors"]


def test_old_ones_are_removed_and_newer_ones_are_not(tmp_path: Path) -> None:
    for step in (5, 50, 1000, 999_999):
        (tmp_path / f"{step:09d}.safetensors").touch()
    remove_old(tmp_path, 1000)  # the newest cannot be read
    assert sorted(int(file.stem) for file in tmp_path.iterdir()) == [50, 1000, 999_999]


def test_no_folder_and_an_empty_one_hold_no_checkpoint(tmp_path: Path) -> None:
    assert Checkpoint.newest(tmp_path / "absent") is None
    assert Checkpoint.newest(tmp_path) is None


def truncate(file: Path, keep: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * keep)])


@pytest.mark.parametrize("keep", [0, 0.01, 0.5, 0.99])
def test_a_truncated_newest_falls_back_to_the_one_before(tmp_path: Path, keep: float) -> None:
    saved(1, tmp_path)
    saved(2, tmp_path)
    truncate(tmp_path / "000000002.safetensors", keep)
    found = Checkpoint.newest(tmp_path)
    assert found is not None
    assert found.step == 1


def test_a_file_that_is_not_ours_falls_back_too(tmp_path: Path) -> None:
    saved(1, tmp_path)
    odd = '{"format": 3, "step": 2, "records": [], "extra": 3}'
    for header in (None, {"mario": "not json"}, {"mario": "[]"}, {"mario": '{"step": 2}'}, {"mario": odd}):
        save_file({"a": torch.zeros(1)}, tmp_path / "000000002.safetensors", header)
        found = Checkpoint.newest(tmp_path)
        assert found is not None
        assert found.step == 1


def test_none_that_can_be_read_is_an_error_with_the_paths(tmp_path: Path) -> None:
    saved(1, tmp_path)
    saved(2, tmp_path)
    for file in tmp_path.iterdir():
        truncate(file, 0.5)
    with pytest.raises(MarioError, match="no checkpoint can be read") as caught:
        Checkpoint.newest(tmp_path)
    for expected in ("000000001.safetensors", "000000002.safetensors", f"Remove {tmp_path} to start this run again"):
        assert expected in str(caught.value)


def test_a_leftover_of_a_killed_write_is_not_a_checkpoint(tmp_path: Path) -> None:
    saved(1, tmp_path)
    (tmp_path / ".000000002.safetensors.abc.part").write_bytes(b"half")
    found = Checkpoint.newest(tmp_path)
    assert found is not None
    assert found.step == 1


def test_another_model_is_an_error(tmp_path: Path) -> None:
    saved(1, tmp_path, Net(width=3))
    found = Checkpoint.newest(tmp_path)
    assert found is not None
    wider = Net(width=4)
    with pytest.raises(MarioError, match="the checkpoint belongs to another model: size mismatch"):
        found.restore(wider, torch.optim.Adam(wider.parameters()))


def test_one_of_another_version_is_refused_and_not_skipped(tmp_path: Path) -> None:
    saved(1, tmp_path)
    older = {"mario": '{"step": 2, "records": [], "extra": {}}'}
    save_file({"generator": torch.Generator().get_state()}, tmp_path / "000000002.safetensors", older)
    with pytest.raises(MarioError, match=rf"000000002.safetensors has format 1, .* or remove {tmp_path} to start"):
        Checkpoint.newest(tmp_path)


def test_a_failed_save_leaves_the_old_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(1, tmp_path)
    saved(2, tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(MarioError, match=r"cannot write .*000000003.safetensors: No space left on device"):
        saved(3, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["000000001.safetensors", "000000002.safetensors"]


def test_files_of_the_user_beside_ours_are_left_alone(tmp_path: Path) -> None:
    theirs = {"best.safetensors": b"mine", "zz.safetensors": b"mine", "1.safetensors": b"mine"}
    for name, content in theirs.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "000000009.safetensors").mkdir()
    for step in (1, 2, 3):
        saved(step, tmp_path)
    found = Checkpoint.newest(tmp_path)
    assert found is not None
    assert found.step == 3
    assert (tmp_path / "000000002.safetensors").is_file()
    assert {name: (tmp_path / name).read_bytes() for name in theirs} == theirs


@pytest.mark.parametrize("header", ["[" * 100_000, "9" * 5000, "{}"], ids=range(3))
def test_a_header_that_cannot_be_read_is_a_damaged_checkpoint(tmp_path: Path, header: str) -> None:
    saved(1, tmp_path)
    save_file({"a": torch.zeros(1)}, tmp_path / "000000002.safetensors", {"mario": header})
    found = Checkpoint.newest(tmp_path)
    assert found is not None
    assert found.step == 1


def test_a_checkpoint_has_the_mode_that_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        saved(1, tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / "000000001.safetensors").stat().st_mode & 0o777 == 0o644
