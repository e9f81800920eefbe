"""What TensorBoard reads back from the folder."""

import sys
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mario.errors import MarioError
from mario.lab.sinks import TensorBoard


def events_in(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0})
    events.Reload()
    return events


def series(folder: Path, name: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in events_in(folder).Scalars(name)]


def test_a_step_is_written_once_however_often_it_comes(tmp_path: Path) -> None:
    for steps in (range(1, 4), range(1, 6), range(1, 6)):
        sink = TensorBoard(tmp_path)
        for step in steps:
            sink.scalars(step, {"train/loss": step / 2} | ({"checkpoint/ood_val": 0.25} if step == 3 else {}))
        sink.scalars(steps[-1], {"train/loss": 99.0})
        sink.close()
    assert series(tmp_path, "train/loss") == [(step, step / 2) for step in range(1, 6)]
    assert series(tmp_path, "checkpoint/ood_val") == [(3, 0.25)]


def test_what_a_kill_cut_off_is_made_good(tmp_path: Path) -> None:
    sink = TensorBoard(tmp_path)
    for step in range(1, 11):
        sink.scalars(step, {"train/loss": 1 / step, "train/lr": 0.5})
    sink.close()
    (file,) = tmp_path.glob("events.*")
    file.write_bytes(file.read_bytes()[:-300])
    assert 0 < len(series(tmp_path, "train/loss")) < 10
    sink = TensorBoard(tmp_path)
    for step in range(1, 11):
        sink.scalars(step, {"train/loss": 1 / step, "train/lr": 0.5})
    sink.close()
    assert series(tmp_path, "train/loss") == [(step, pytest.approx(1 / step)) for step in range(1, 11)]
    assert series(tmp_path, "train/lr") == [(step, 0.5) for step in range(1, 11)]


def test_figures_and_embeddings_are_there_once(tmp_path: Path) -> None:
    figure = Figure(figsize=(1, 0.5), dpi=100)
    z = torch.arange(6.0).view(3, 2)
    for _ in range(2):
        sink = TensorBoard(tmp_path)
        sink.figure("curves", figure)
        sink.embedding("embedding", z, {"class": [0, 1, 0], "split": ["train", "ood_test", "id_val"]})
        sink.close()
    (image,) = events_in(tmp_path).Images("curves")
    assert (image.width, image.height) == (100, 50)
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert config.count("tensor_path") == 1
    (tensors,), (metadata,) = tmp_path.rglob("tensors.tsv"), tmp_path.rglob("metadata.tsv")
    assert [float(x) for x in tensors.read_text().split()] == z.view(-1).tolist()
    assert metadata.read_text().splitlines() == ["class\tsplit", "0\ttrain", "1\tood_test", "0\tid_val"]


def test_without_the_package_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MarioError, match=r"pip install 'mario-gcl\[tensorboard\]'"):
        TensorBoard(tmp_path)
    assert "torchvision" not in sys.modules
