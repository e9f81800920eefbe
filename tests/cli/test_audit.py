"""``mario audit`` as a person types it."""

import json
from pathlib import Path

import pytest

from audit.worlds import world
from forked import mario
from mario.datasets import save_dataset


def saved(folder: Path, seed: int, nodes: int = 300, income: float = 0.0) -> Path:
    data = world(seed, nodes)
    data.x[:, 1] += income
    data.region = data.domain_id
    del data.domain_id
    return save_dataset(data, folder, domains="region")


def test_says_what_shifts_between_domains(tmp_path: Path) -> None:
    done = mario("audit", "good-cbas", "--shift", "covariate", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "columns shift between" in done.stdout
    assert "domain read from features" in done.stdout


def test_says_that_nothing_shifts(tmp_path: Path) -> None:
    old, new = saved(tmp_path / "old", 3), saved(tmp_path / "new", 4)
    done = mario("audit", str(old), str(new), "--domain", "region", "--shift", "no_shift", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "No shift found between the graph and the new one" in done.stdout


def test_json_has_everything(tmp_path: Path) -> None:
    old, new = saved(tmp_path / "old", 3), saved(tmp_path / "new", 4, income=-2)
    done = mario("audit", str(old), str(new), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["against"]["shifts"] == ["income"]
    assert told["graph"]["nodes"] == told["new"]["nodes"] == 300
    assert told["verdict"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing-like-it"], "unknown dataset 'nothing-like-it'"),
        (["good-cbas", "nowhere"], "unknown dataset 'nowhere'"),
        (["good-cbas", "wide"], "the new graph has 6 features, and good-cbas has 4"),
    ],
)
def test_wrong_input_is_one_clear_line(tmp_path: Path, words: list[str], said: str) -> None:
    words = [str(saved(tmp_path / "wide", 1)) if word == "wide" else word for word in words]
    done = mario("audit", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
