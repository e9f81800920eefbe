"""`compiled=True` with the C++ that torch makes of it; tests/methods/test_base.py has the same without a compiler."""

import shutil
from pathlib import Path

import pytest
import torch
import torch._inductor.config

import mario
from methods.tiny import tiny_graph

COMPILER = next((name for name in ("g++", "clang++", "c++") if shutil.which(name)), None)


@pytest.mark.skipif(COMPILER is None, reason="torch.compile needs a C++ compiler, and there is none")
@pytest.mark.skipif(" " in torch.__path__[0], reason="torch.compile fails where torch's folder has a space in its name")
def test_compiled_rows_give_the_same_loss_and_gradients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(torch._inductor.config, "compile_threads", 1)
    found = []
    for compiled in (False, True):
        model = mario.GRACE(hidden_channels=6, num_layers=1, compiled=compiled)
        graph = model.prepare(tiny_graph(), device="cpu")
        # A bias before batch norm has no gradient but rounding, which in float32 differs from machine to machine.
        graph.x = graph.x.double()
        model.double().train()
        figures = model.step(graph, torch.Generator().manual_seed(0))
        found.append((figures["loss"], {name: p.grad for name, p in model.named_parameters()}))
    assert list(tmp_path.rglob("*.so")), "nothing was compiled"
    (plain, gradients), (fast, others) = found
    assert fast == pytest.approx(plain, rel=1e-12)
    for name, gradient in gradients.items():
        torch.testing.assert_close(others[name], gradient, rtol=1e-9, atol=1e-12, msg=name)
