"""A model's file is read with care: it runs no code, asks for no more than it holds, and every fault is one error."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import mario
from mario.methods import GRACE

from .tiny import tiny_graph


@pytest.fixture
def path(tmp_path: Path) -> Path:
    model = GRACE(hidden_channels=8, num_layers=2, epochs=1, steps_per_epoch=1, roots=10).fit(tiny_graph())
    model.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def rewrite(path: Path, header: str | None = None, **changes: Any) -> None:
    """Write the same weights with another header; ``changes`` replace its values, or those of its settings."""
    with safe_open(path, framework="pt") as file:
        found = json.loads(file.metadata()["mario"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, value in changes.items():
        (found["settings"] if name in found["settings"] else found)[name] = value
    save_file(tensors, path, {"mario": json.dumps(found) if header is None else header})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_channels": 10**5}, "asks for a network of .* numbers and holds"),
        ({"hidden_channels": 10**12}, "hidden_channels must be at most 1000000"),
        ({"num_layers": 10**9}, "num_layers must be at most 1000"),
        ({"num_layers": 1000}, "asks for a network of more than"),
        ({"in_channels": 10**11}, "in_channels is 100000000000, but no weight is that large"),
        ({"in_channels": -1}, "in_channels is -1"),
        ({"in_channels": "4"}, "in_channels is '4'"),
        ({"num_classes": True}, "num_classes is True"),
        ({"edge_channels": 10**12}, "edge_channels is"),
        ({"method": ["grace"]}, r"method is \['grace'\]"),
        ({"method": None}, "method is None"),
        ({"settings": 3}, "another version of mario, or it is damaged"),
    ],
)
def test_a_header_that_does_not_fit_its_weights(path: Path, changes: dict[str, Any], message: str) -> None:
    rewrite(path, **changes)
    with time_limit(20), pytest.raises(mario.MarioError, match=message):
        mario.load(path)


@pytest.mark.parametrize(
    "header", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "[]", "3", '"text"', "{}"], ids=range(7)
)
def test_a_header_that_is_no_description(path: Path, header: str) -> None:
    rewrite(path, header)
    with pytest.raises(mario.MarioError, match="damaged"):
        mario.load(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    with time_limit(5), pytest.raises(mario.MarioError, match="it is not a regular file"):
        mario.load(tmp_path / "model.safetensors")


def test_loading_leaves_the_generator_alone_and_building_is_not_counted_afterwards(path: Path) -> None:
    before = torch.get_rng_state()
    mario.load(path)
    assert torch.equal(torch.get_rng_state(), before)
    torch.nn.ModuleList(torch.nn.Identity() for _ in range(20_000))


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_a_file_has_the_mode_that_the_umask_says(path: Path, umask: int, mode: int) -> None:
    model = mario.load(path)
    before = os.umask(umask)
    try:
        model.save(path.parent / "again.safetensors")
    finally:
        os.umask(before)
    assert (path.parent / "again.safetensors").stat().st_mode & 0o777 == mode
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["again.safetensors", "model.safetensors"]
