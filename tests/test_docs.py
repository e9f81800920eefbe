"""The Python in README and docs runs as it stands, with fewer steps."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

import mario

HOME = Path(__file__).parent.parent
SHORTER = {
    "epochs=20": "epochs=1",
    "range(200)": "range(2)",
    "tau=0.2)": "tau=0.2, epochs=1)",
    "steps=50": "steps=1",
    "steps=20": "steps=1",
}


def run_blocks(file: str, names: dict[str, Any], after: str = "") -> dict[str, Any]:
    text = (HOME / file).read_text(encoding="utf-8")
    text = text[text.index(after) :]
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        for long, short in SHORTER.items():
            block = block.replace(long, short)
        exec(compile(block, file, "exec"), names)
    return names


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    encoder, projector = mario.encoders.GCN(4, hidden_channels=300, num_layers=1), torch.nn.Linear(300, 300)
    optimizer = torch.optim.Adam([*encoder.parameters(), *projector.parameters()])
    names = {"encoder": encoder, "projector": projector, "optimizer": optimizer}
    found = run_blocks("README.md", names)
    assert found["z"].shape == (700, 300)
    assert found["loss"].isfinite()
    assert torch.equal(mario.load("model.safetensors").transform(found["data"]), found["z"])


def test_first_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = run_blocks("docs/index.md", {})
    assert sorted(found["score"]) == ["id_test", "id_val", "ood_test", "ood_val", "train"]
    assert found["projector"].weight.grad.abs().sum() > 0


def test_your_own_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    generator = torch.Generator().manual_seed(0)
    mine = Data(
        x=torch.rand(300, 8, generator=generator),
        edge_index=torch.randint(300, (2, 900), generator=generator),
        y=torch.arange(300) % 3,
        year=2000 + torch.randint(20, (300,), generator=generator),
    )
    found = run_blocks("docs/data.md", {"my_data": mine}, after="## Your own graph")
    assert (tmp_path / "mine.safetensors").exists()
    early = mario.graphs.split_graph(mine, domain="year", shift="covariate", rule=found["early"])
    assert mine.year[early.train_mask].max() < mine.year[early.ood_test_mask].min()


@pytest.mark.parametrize("page", ["docs/columns.md", "docs/own-graphs.md"])
def test_what_is_printed(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_blocks(page, {})
    shown = re.findall(r"^```text\n(.*?)^```", (HOME / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert capsys.readouterr().out == shown[0]


def test_embedder() -> None:
    found = run_blocks("docs/embedder.md", {})
    assert len(found["z"]) == 700
    assert found["model"].score(found["X"], found["y"]) > 0.9


def test_splits_of_your_own() -> None:
    found = run_blocks("docs/splits.md", {})
    assert found["data"].domain_names == ["Bern", "Oslo", "Rome"]
    assert found["facts"].part("ood_test").nodes == 100
