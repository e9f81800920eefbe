"""What every method has: here, `compiled`, and that a model is saved under the name of its own class."""

import sys
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import mario
from mario.errors import MarioError
from mario.methods import GRACE

from .tiny import tiny_graph


def noticing(calls: list[int], finish: Callable[[int, Tensor], Tensor], layer: int, h: Tensor) -> Tensor:
    calls.append(layer)
    return finish(layer, h)


def test_compiled_rows_give_the_same_loss_gradients_and_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    # torch traces and runs what it traced; the C++ that it can make of that is for tests/integration.
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    monkeypatch.setenv("CXX", sys.executable)  # whatever there is: nothing is compiled
    calls: list[int] = []
    models = []
    for compiled in (False, True):
        model = mario.MARIO(hidden_channels=6, num_layers=2, clusters=3, compiled=compiled)
        graph = model.prepare(tiny_graph(), device="cpu")
        if compiled:
            spy = partial(noticing, calls, model.encoder_._compiled_finish)
            monkeypatch.setattr(model.encoder_, "_compiled_finish", spy)
        model.train()
        figures = model.step(graph, torch.Generator().manual_seed(0))
        models.append((figures, model, model.transform(tiny_graph())))
    (plain, model, z), (fast, compiled_model, z_fast) = models
    assert fast == plain
    assert set(calls) == {0, 1}, "both layers go through what was compiled"
    for (name, p), q in zip(model.named_parameters(), compiled_model.parameters(), strict=True):
        assert (p.grad is None and q.grad is None) or torch.equal(p.grad, q.grad), name
    assert torch.equal(z, z_fast)


def test_without_a_compiler_there_is_a_word_before_anything_is_trained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    GRACE(hidden_channels=6, num_layers=1, epochs=1, compiled=True).place(
        4, 0
    )  # a model that was trained elsewhere can be loaded
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(mario.MarioError, match=r"needs a C\+\+ compiler and there is none: install g\+\+"):
        GRACE(hidden_channels=6, num_layers=1, epochs=1, compiled=True).fit(tiny_graph())


def test_a_class_without_a_name_of_its_own_is_not_saved_as_another(tmp_path: Path) -> None:
    class Mine(GRACE):
        pass

    model = Mine(hidden_channels=8, num_layers=1, epochs=1, steps_per_epoch=1).fit(tiny_graph())
    with pytest.raises(mario.MarioError, match=r"register Mine to save it: .*not as 'grace', which is another class"):
        model.save(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


SMALL = {"hidden_channels": 8, "num_layers": 1, "epochs": 2, "steps_per_epoch": 1}


def fit_and_wait(folder: Path, ready: Any, go_on: Any) -> None:
    torch.set_num_threads(1)

    def wait(epoch: object) -> None:
        ready.set()
        go_on.wait(60)

    GRACE(**SMALL).fit(tiny_graph(), folder=folder, callback=wait)


def test_two_trainings_in_one_folder_at_once_are_refused(tmp_path: Path) -> None:
    context = get_context("spawn")
    ready, go_on = context.Event(), context.Event()
    first = context.Process(target=fit_and_wait, args=(tmp_path, ready, go_on))
    first.start()
    try:
        assert ready.wait(60)
        with pytest.raises(mario.MarioError, match=f"another process is working on {tmp_path}/checkpoint: wait for it"):
            GRACE(**SMALL).fit(tiny_graph(), folder=tmp_path)
    finally:
        go_on.set()
        first.join(60)
    assert first.exitcode == 0
    alone = GRACE(**SMALL).fit(tiny_graph()).transform(tiny_graph())
    assert torch.equal(GRACE(**SMALL).fit(tiny_graph(), folder=tmp_path).transform(tiny_graph()), alone)


def test_a_callback_that_raises_leaves_the_folder_free(tmp_path: Path) -> None:
    def stop(epoch: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # the traceback, kept here, holds the frames of fit
        GRACE(**SMALL).fit(tiny_graph(), folder=tmp_path, callback=stop)
    GRACE(**SMALL).fit(tiny_graph(), folder=tmp_path)


def test_another_default_type_is_another_training(tmp_path: Path) -> None:
    GRACE(**SMALL).fit(tiny_graph(), folder=tmp_path)
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(mario.MarioError, match=r"dtype is torch\.float32 there and torch\.float64"):
            GRACE(**SMALL).fit(tiny_graph(), folder=tmp_path)
    finally:
        torch.set_default_dtype(torch.float32)


def test_an_embedding_that_is_not_finite_is_an_error() -> None:
    data = tiny_graph()
    model = mario.ERM(hidden_channels=4, epochs=1, batch_norm=False).fit(data)
    huge = tiny_graph()
    huge.x = torch.full_like(huge.x, 3e38)
    with torch.no_grad():
        next(model.encoder_.parameters()).add_(100)
    with pytest.raises(MarioError, match=r"the result would hold \d+ NaN or infinite entries: scale data.x"):
        model.transform(huge)
    wide = tiny_graph()
    wide.x = wide.x.double() * 1e300
    with pytest.raises(MarioError, match=r"data.x holds .* entries that are infinite as torch.float32"):
        model.transform(wide)
    with torch.no_grad():
        model.head_.weight[0, 0] = torch.nan
    with pytest.raises(MarioError, match=r"the model's head_.weight is not finite, train it again"):
        model.predict(data)
    with torch.no_grad():
        next(model.encoder_.parameters()).fill_(torch.nan)
    with pytest.raises(MarioError, match=r"the model's encoder_.* is not finite, train it again"):
        model.transform(data)


def test_features_that_are_too_large_for_batch_norm_are_an_error() -> None:
    huge = tiny_graph()
    huge.x = huge.x * 1e25
    model = mario.GRACE(hidden_channels=4, epochs=1).fit(huge)
    with pytest.raises(MarioError, match=r"running_var is not finite: data.x is too large to be normalized; scale it"):
        model.transform(huge)


@pytest.mark.parametrize("setting", ["Inductive", "inductive ", "", 1])
def test_a_setting_that_is_not_known_does_not_show_all_nodes(setting: object) -> None:
    data = tiny_graph()
    data.setting = setting
    for call in (mario.training_graph, mario.RandomInit(epochs=1).fit):
        with pytest.raises(MarioError, match=r"unknown data.setting"):
            call(data)
    data.setting, data.visible_mask = None, data.train_mask
    for call in (mario.training_graph, mario.RandomInit(epochs=1).fit):
        with pytest.raises(MarioError, match=r"visible_mask needs data.setting"):
            call(data)


def test_features_that_require_gradients_collect_none() -> None:
    data = tiny_graph()
    data.x.requires_grad_()
    with pytest.raises(MarioError, match=r"data.x requires gradients"):
        mario.MARIO(epochs=1).fit(data)


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_training_resumes_with_gradients_turned_off(tmp_path: Path, off: type[torch.no_grad]) -> None:
    def model() -> mario.MARIO:
        return mario.MARIO(hidden_channels=8, epochs=3, steps_per_epoch=2, roots=20, clusters=4, prototype_steps=3)

    data = tiny_graph()
    due = model().fit(data).transform(data)
    with off():
        model().fit(data, folder=tmp_path, callback=lambda epoch: epoch.number == 2)
        assert torch.equal(model().fit(data, folder=tmp_path).transform(data), due)
