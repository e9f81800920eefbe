"""What sinks are given: every step once, in order, with the scores of its checkpoint."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab import results
from mario.lab.result import CurvePoint
from mario.lab.sinks import followed
from mario.training import Epoch


class Recording:
    """A sink that keeps everything and passes over nothing."""

    def __init__(self) -> None:
        self.given: list[tuple[int, dict[str, float]]] = []

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        self.given.append((step, dict(values)))

    def figure(self, name: str, figure: Any) -> None: ...
    def embedding(self, name: str, z: Any, metadata: Any) -> None: ...
    def close(self) -> None: ...


def write_log(folder: Path, entries: list[dict[str, Any]]) -> None:
    fresh = folder / "fresh"
    fresh.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    fresh.replace(folder / "log.jsonl")


def line(step: int) -> dict[str, Any]:
    return {"step": step, "lr": 0.1, "loss": float(step)}


def train_line(step: int) -> dict[str, float]:
    return {"train/lr": 0.1, "train/loss": float(step)}


def test_the_log_the_diagnostics_and_the_scores_of_a_step_come_together(tmp_path: Path) -> None:
    def training() -> Iterator[Epoch]:
        write_log(tmp_path, [line(1), line(2)])
        yield Epoch(1, 2, {"loss": 1.5}, pause=False)
        with (tmp_path / "log.jsonl").open("a") as log:
            log.write(json.dumps(line(3)) + "\n" + json.dumps(line(4)) + "\n")
            log.write(json.dumps({"step": 4, "epoch": 2, "uniformity": -1.0}) + "\n")
        yield Epoch(2, 4, {"loss": 3.5}, pause=True, record={"ood_val": 0.5})

    sinks = [Recording(), Recording()]
    assert [epoch.number for epoch in followed(training(), tmp_path, sinks)] == [1, 2]
    last = {**train_line(4), "diagnostics/uniformity": -1.0, "checkpoint/ood_val": 0.5}
    expected = [(1, train_line(1)), (2, train_line(2)), (3, train_line(3)), (4, last)]
    assert sinks[0].given == sinks[1].given == expected


def test_after_a_resume_each_step_comes_once_and_in_order(tmp_path: Path) -> None:
    write_log(tmp_path, [line(step) for step in range(1, 8)])  # a kill came at step 7, the checkpoint is of step 4

    def training() -> Iterator[Epoch]:
        for number in (1, 2):
            record = {"epoch": number, "step": 2 * number, "ood_val": number / 10}
            yield Epoch(number, 2 * number, {}, pause=True, record=record)
        write_log(tmp_path, [line(step) for step in range(1, 7)])
        yield Epoch(3, 6, {"loss": 5.5}, pause=False)
        write_log(tmp_path, [line(step) for step in range(1, 9)])
        yield Epoch(4, 8, {"loss": 7.5}, pause=True, record={"ood_val": 0.4})

    sink = Recording()
    assert len(list(followed(training(), tmp_path, [sink]))) == 4
    scores = {2: 0.1, 4: 0.2, 8: 0.4}
    expected = [
        (step, train_line(step) | ({"checkpoint/ood_val": scores[step]} if step in scores else {}))
        for step in range(1, 9)
    ]
    assert sink.given == expected


def test_a_run_that_was_done_before_is_given_whole(tmp_path: Path) -> None:
    write_log(tmp_path, [line(1), line(2)])
    done = results.result(results.spec(), curve=(CurvePoint(2, {"ood_val": 0.5, "align_mean": 0.1}),))
    (tmp_path / "result.json").write_text(json.dumps(done.to_dict()))
    sink = Recording()
    assert list(followed(iter([]), tmp_path, [sink])) == []
    scores = {"checkpoint/ood_val": 0.5, "checkpoint/align_mean": 0.1}
    assert sink.given == [(1, train_line(1)), (2, train_line(2) | scores)]


def test_a_line_that_is_half_written_waits_for_its_other_half(tmp_path: Path) -> None:
    def training() -> Iterator[Epoch]:
        write_log(tmp_path, [line(1)])
        with (tmp_path / "log.jsonl").open("a") as log:
            log.write('{"step": 2, "lo')
        yield Epoch(1, 1, {}, pause=False)
        with (tmp_path / "log.jsonl").open("a") as log:
            log.write('ss": 2.0}\n')
        yield Epoch(2, 2, {}, pause=False)

    sink = Recording()
    list(followed(training(), tmp_path, [sink]))
    assert sink.given == [(1, train_line(1)), (2, {"train/loss": 2.0})]


def test_without_sinks_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("no JSON\n")
    epoch = Epoch(1, 1, {}, pause=True)
    assert list(followed(iter([epoch]), tmp_path, [])) == [epoch]
