"""What Weights & Biases is sent, by a module that stands in for it."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

from mario.errors import MarioError, RunFailedError
from mario.lab.sinks import WeightsAndBiases


class Run:
    def __init__(self, step: int = 0, resumed: bool = False) -> None:
        self.step, self.resumed = step, resumed
        self.logged: list[tuple[int | None, dict[str, Any]]] = []
        self.finished = False

    def log(self, values: dict[str, Any], step: int | None = None) -> None:
        self.logged.append((step, values))

    def finish(self) -> None:
        self.finished = True


class Fake(ModuleType):
    def __init__(self) -> None:
        super().__init__("wandb")
        self.asked: list[dict[str, Any]] = []
        self.next = Run()

    def init(self, **asked: Any) -> Run:
        self.asked.append(asked)
        return self.next

    def Image(self, figure: Figure) -> tuple[str, Figure]:  # noqa: N802 (W&B's name)
        return "image", figure

    def Table(self, columns: list[str], data: list[list[Any]]) -> tuple[str, list[str], list[list[Any]]]:  # noqa: N802
        return "table", columns, data


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return fake


def start(folder: Path) -> WeightsAndBiases:
    return WeightsAndBiases("shifts", folder, id="abc", name="mario-good-cbas", config={"seed": 3})


def test_a_run_has_its_settings_its_scalars_and_an_end(wandb: Fake, tmp_path: Path) -> None:
    sink = start(tmp_path)
    sink.scalars(1, {"train/loss": 0.5})
    sink.scalars(2, {"train/loss": 0.25, "checkpoint/ood_val": 0.75})
    sink.close()
    assert wandb.asked == [
        {"project": "shifts", "id": "abc", "name": "mario-good-cbas", "config": {"seed": 3}, "resume": "allow"}
    ], "and no mode: WANDB_MODE decides"
    assert wandb.next.logged == [(1, {"train/loss": 0.5}), (2, {"train/loss": 0.25, "checkpoint/ood_val": 0.75})]
    assert wandb.next.finished


def test_figures_and_embeddings(wandb: Fake, tmp_path: Path) -> None:
    figure = Figure()
    for _ in range(2):
        sink = start(tmp_path)
        sink.figure("curves", figure)
        sink.embedding("embedding", torch.eye(2), {"class": [4, 5], "split": ["train", "ood_test"]})
    rows = [[4, "train", 1.0, 0.0], [5, "ood_test", 0.0, 1.0]]
    assert wandb.next.logged == [
        (None, {"curves": ("image", figure)}),
        (None, {"embedding": ("table", ["class", "split", "z0", "z1"], rows)}),
    ]


def test_an_offline_run_that_goes_on_is_sent_no_step_twice(wandb: Fake, tmp_path: Path) -> None:
    first = start(tmp_path)
    for step in (1, 2, 3):
        first.scalars(step, {"train/loss": 0.5})
    # No close: a kill.
    wandb.next = Run()
    second = start(tmp_path)
    for step in (1, 2, 3, 4):
        second.scalars(step, {"train/loss": 0.5})
    assert [step for step, _ in wandb.next.logged] == [4]


def test_an_online_run_is_asked_for_its_last_step(wandb: Fake, tmp_path: Path) -> None:
    wandb.next = Run(step=3, resumed=True)  # the next step that it would log
    sink = start(tmp_path)
    for step in (1, 2, 3, 4):
        sink.scalars(step, {"train/loss": 0.5})
    assert [step for step, _ in wandb.next.logged] == [3, 4]


def test_a_run_that_is_refused_says_what_to_do(wandb: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise ValueError("api_key not configured\n(no-tty)")

    monkeypatch.setattr(wandb, "init", refuse)
    with pytest.raises(RunFailedError, match=r"shifts \(api_key not configured\): use WANDB_MODE=offline to keep it"):
        start(tmp_path)


@pytest.mark.parametrize("there", [None, ModuleType("wandb")], ids=["absent", "a-folder-of-that-name"])
def test_without_the_package_one_line_says_what_to_install(
    there: ModuleType | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", there)
    with pytest.raises(MarioError, match=r"pip install 'mario-gcl\[wandb\]'"):
        start(tmp_path)
