"""The benchmarks, which no other test runs, still fit the package."""

import importlib
import pkgutil
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
MODULES = [module.name for module in pkgutil.iter_modules([str(ROOT / "benchmarks")])]


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_can_be_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.__doc__
    command = f"python -m benchmarks.{name}".removesuffix(".__main__")
    assert not hasattr(module, "main") or command in module.__doc__, "it says how to run it"


@pytest.mark.parametrize("large", [False, True], ids=["kept", "made again in the backward"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_step_of_ours_is_a_step_of_the_plain_algorithm(
    sparse: bool, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loss, every gradient, the prototypes and the next weights, in three steps."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    check = importlib.import_module("benchmarks.check")
    if large:
        monkeypatch.setattr("mario.methods.two_view._LARGE", 0)
    for name, gap in check.compare({}, sparse, torch.float64, "projector").items():
        assert gap <= check.TIGHT[name], name


def test_without_figures_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    monkeypatch.setattr(sys, "argv", ["write", "--from", str(tmp_path / "none"), "--to", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"no figures in .*none: run `make benchmark` first; nothing was written"):
        importlib.import_module("benchmarks.write").main()
    assert not list(tmp_path.iterdir())


def test_the_picture_of_performance_is_readable_in_dark_mode_and_has_whiskers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    draw = importlib.import_module("benchmarks.picture").draw
    sizes = (1_000, 2_000)
    one = {"cpu": 1.0, "cpu_all": [0.8, 1.0, 1.3]}
    ours = [{"nodes": n, "wide": False, "ours": {**one, "bytes": 2**10 * n}} for n in sizes]
    once = [{**row, "ours": {**row["ours"], "cpu_all": [1.0]}} for row in ours]  # type: ignore[dict-item]
    epochs = [{"nodes": n, "epoch_wall": n / 10, "peak": 2**29} for n in sizes]
    kinds = {kind: {"batches_per_second": 2.0, "by_round": [1.9, 2.1]} for kind in ("1", "2", "4", "2 apart")}
    alone = kinds | {"2": {"batches_per_second": 2.0, "by_round": [2.4, 1.9]}}
    figures = {"step": {"rows": ours}, "batches": {"rows": epochs}, "ranks": {"kinds": alone}}
    made, without = draw(figures), draw({**figures, "step": {"rows": once}, "ranks": {"kinds": kinds}})
    assert "prefers-color-scheme:dark" in made
    assert "LineCollection" in made
    assert "LineCollection" not in without, "there is no spread of one round"
    for words in ("nodes in the batch", "2 unrelated", "target for 2 ranks: 1.6", "peak memory (right)"):
        assert words in made
    assert "prefers-color-scheme:dark" in (ROOT / "docs" / "performance.svg").read_text(encoding="utf-8")
