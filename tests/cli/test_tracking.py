"""`mario run --tensorboard` and `--wandb`: what is there is what the run's own files say."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lab.sinks.test_weights_and_biases import Fake, wandb  # noqa: F401 (a fixture)
from mario import cli
from mario.errors import MarioError
from mario.lab.runs import execute
from mario.training import Epoch

SMALL = {
    "hidden_channels": 8,
    "num_layers": 1,
    "epochs": 3,
    "steps_per_epoch": 3,
    "roots": 100,
    "clusters": 3,
    "probe_epochs": 2,
    "checkpoints": 2,
    "invariance": True,
}


@pytest.fixture(autouse=True)
def _quick_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mario.report.maps.tsne", lambda z: z[:, :2])


def run(folder: Path, **where: Any) -> None:
    settings = [f"{name}={value}" for name, value in SMALL.items()]
    cli.run.run("good-cbas", "mario", shift="concept", settings=settings, out=folder, device="cpu", quiet=True, **where)


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    (place,) = folder.iterdir()
    assert place.name.startswith("mario-good-cbas-concept-")
    events = EventAccumulator(str(place), size_guidance={"scalars": 0})
    events.Reload()
    assert set(events.Tags()["images"]) <= {"map", "curves", "invariance"}
    return {name: [(e.step, e.value) for e in events.Scalars(name)] for name in events.Tags()["scalars"]}


def written(folder: Path) -> dict[str, list[tuple[int, Any]]]:
    """The same from log.jsonl and result.json."""
    found: dict[str, list[tuple[int, Any]]] = {}
    lines = [json.loads(text) for text in (folder / "log.jsonl").read_text().splitlines()]
    kinds = [("diagnostics" if "epoch" in entry else "train", entry) for entry in lines]
    kinds += [("checkpoint", point) for point in json.loads((folder / "result.json").read_text())["curve"]]
    for kind, entry in kinds:
        for name, value in entry.items():
            if name not in ("step", "epoch"):
                found.setdefault(f"{kind}/{name}", []).append((entry["step"], pytest.approx(value, rel=1e-6)))
    return found


def test_a_run_that_was_stopped_ends_with_each_scalar_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = execute.execute

    def stopped(*args: Any, **options: Any) -> Iterator[Epoch]:
        for epoch in whole(*args, **options):
            yield epoch
            if epoch.number == 2:
                raise KeyboardInterrupt

    with monkeypatch.context() as here:
        here.setattr(execute, "execute", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "run", tensorboard=tmp_path / "tb")
    half = scalars(tmp_path / "tb")
    assert [step for step, _ in half["train/loss"]] == [1, 2, 3, 4, 5, 6]
    assert [step for step, _ in half["checkpoint/ood_val"]] == [6]
    for _ in range(2):  # the second time the run is done already
        run(tmp_path / "run", tensorboard=tmp_path / "tb")
        found = scalars(tmp_path / "tb")
        assert found == written(tmp_path / "run")
    names = {"train/loss", "train/lr", "diagnostics/alignment", "checkpoint/ood_test", "checkpoint/align_worst"}
    assert names <= set(found)


def test_a_sink_may_lie_in_the_folder_of_its_run(tmp_path: Path) -> None:
    run(tmp_path / "run", tensorboard=tmp_path / "run")
    (place,) = (tmp_path / "run").glob("mario-good-cbas-concept-*")
    assert any(place.glob("events*"))
    assert (tmp_path / "run" / "result.json").exists()


def test_no_sink_is_opened_for_a_run_that_is_refused(wandb: Fake, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "letter.txt").write_text("dear")
    with pytest.raises(MarioError, match="contains files that are not from a run of mario"):
        run(tmp_path / "run", tensorboard=tmp_path / "tb", wandb="shifts")
    assert not (tmp_path / "tb").exists()
    assert wandb.asked == []


def test_both_sinks_are_given_the_same_and_pictures_at_the_end(wandb: Fake, tmp_path: Path) -> None:  # noqa: F811
    run(tmp_path / "run", tensorboard=tmp_path / "tb", wandb="shifts")
    assert scalars(tmp_path / "tb") == written(tmp_path / "run")

    (place,) = (tmp_path / "tb").iterdir()
    events = EventAccumulator(str(place))
    events.Reload()
    assert sorted(events.Tags()["images"]) == ["curves", "invariance", "map"]
    header, *rows = next(place.rglob("metadata.tsv")).read_text().splitlines()
    assert header.split("\t") == ["class", "domain", "split", "prediction", "node"]
    assert len(rows) == len(next(place.rglob("tensors.tsv")).read_text().splitlines()) == 700
    assert {row.split("\t")[2] for row in rows} == {"train", "id_val", "id_test", "ood_val", "ood_test"}

    (asked,) = wandb.asked
    assert asked["config"]["settings"]["clusters"] == 3
    sent: dict[str, list[tuple[int, float]]] = {}
    for step, values in wandb.next.logged:
        for name, value in values.items():
            if step is not None:
                sent.setdefault(name, []).append((step, value))
    assert sent == written(tmp_path / "run")
    shown = [name for step, values in wandb.next.logged if step is None for name in values]
    assert sorted(shown) == ["curves", "embedding", "invariance", "map"]
    assert wandb.next.finished
