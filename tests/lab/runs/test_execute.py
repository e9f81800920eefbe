"""A run in its folder: complete, resumable after `kill -9`, and blind to test labels until it has chosen."""

import itertools
import json
import os
import random
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

import forked
from elliptic_files import write_elliptic
from mario.errors import MarioError
from mario.evaluation import LiblinearProbe, LinearProbe, LogisticProbe, evaluate
from mario.graphs.fingerprint import fingerprint
from mario.lab.case import Case
from mario.lab.frame import frame
from mario.lab.presets import split_settings
from mario.lab.presets.file import read_preset
from mario.lab.result import RunResult
from mario.lab.runs.execute import execute, finish, load_data, probe_seed
from mario.lab.spec import RunSpec
from mario.methods import GRACE, RandomInit, load

SMALL = {"hidden_channels": 16, "num_layers": 2, "epochs": 12, "steps_per_epoch": 4, "clusters": 5, "probe_epochs": 5}
SMALL |= {"checkpoints": 4, "roots": 200}


def plan(method: str = "mario", **given: Any) -> tuple[RunSpec, Any]:
    known = SMALL if method == "mario" else {k: v for k, v in SMALL.items() if k != "clusters"}
    run = RunSpec.plan(Case.find("good-cbas", shift="concept"), method, given={**known, **given})
    return run, load_data(run)


def test_the_folder_of_a_run(tmp_path: Path) -> None:
    run, data = plan()
    found = finish(run, data, tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert found.to_dict() == result
    assert {"settings.json", "result.json", "log.jsonl", "model.safetensors", "checkpoint"} <= {
        entry.name for entry in (tmp_path / "run").iterdir()
    }
    for key in ("dataset", "domain", "shift", "split_seed", "setting", "method", "seed", "scores"):
        assert key in result
    assert (result["dataset"], result["domain"], result["shift"]) == ("good-cbas", "color", "concept")
    assert {"id_test", "ood_test", "ood_test_by_id_val"} <= result["scores"].keys()
    assert result["checkpoints"] == len(result["curve"]) == 4
    assert result["ranks"] == 1
    assert [point["step"] for point in result["curve"]] == [12, 24, 36, 48]
    best = max(result["curve"], key=lambda point: point["ood_val"])
    assert result["scores"]["ood_test"] == best["ood_test"]
    assert result["scores"]["oracle"]["allowed_for_claims"] is False
    steps = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in steps if "loss" in entry] == list(range(1, 49))
    logged = {key for entry in steps for key in entry}
    assert {"alignment", "worst_case_alignment", "uniformity", "cmi_loss", "clusters_used", "lr"} <= logged


def test_what_another_process_has_ended_meanwhile_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, data = plan("random-init")
    finish(run, data, tmp_path / "run")
    result = tmp_path / "run" / "result.json"
    text = result.read_text()
    result.unlink()

    @contextmanager
    def alone_after_another(folder: Path) -> Iterator[None]:
        result.write_text(text)
        yield

    monkeypatch.setattr("mario.lab.runs.execute.alone_in", alone_after_another)
    assert list(execute(run, data, tmp_path / "run")) == []


def test_a_shift_that_the_dataset_has_not_is_told_before_anything_is_loaded() -> None:
    with pytest.raises(MarioError, match=r"unknown shift of good-cbas 'concpt'.*did you mean 'concept'"):
        Case.find("good-cbas", shift="concpt")
    with pytest.raises(MarioError, match="unknown domain of good-cbas"):
        Case.find("good-cbas", domain="colour")
    with pytest.raises(MarioError, match="unknown setting"):
        Case.find("good-cbas", setting="inductve")


def test_a_done_run_is_not_repeated_and_another_is_refused(tmp_path: Path) -> None:
    run, data = plan("random-init")
    finish(run, data, tmp_path / "run")
    assert list(execute(run, data, tmp_path / "run")) == []
    other, data = plan("random-init", hidden_channels=8)
    with pytest.raises(MarioError, match=r"differs in hidden_channels \(16 there, 8 requested\)"):
        finish(other, data, tmp_path / "run")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("...")
    with pytest.raises(MarioError, match="not from a run of mario"):
        finish(run, data, tmp_path / "mine")


def test_what_a_kill_leaves_half_written_is_no_obstacle(tmp_path: Path) -> None:
    run, data = plan("random-init")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".settings.json.abc.part").write_text("{")
    assert finish(run, data, tmp_path / "run").spec == run


def test_two_processes_cannot_share_a_folder(tmp_path: Path) -> None:
    run, data = plan("random-init")
    first = execute(run, data, tmp_path / "run")
    next(first)
    with pytest.raises(MarioError, match="another process is working"):
        finish(run, data, tmp_path / "run")
    first.close()
    finish(run, data, tmp_path / "run")


def test_a_host_with_the_recipe_is_known_by_one_name() -> None:
    case = Case.find("good-cbas")
    assert RunSpec.plan(case, "grace+mario").digest == RunSpec.plan(case, "mario").digest


def test_many_graphs_are_chosen_on_ood_val_and_reported_by_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIO_UNVERIFIED", "1")
    root = write_elliptic(tmp_path / "data", nodes=12)
    small = {"hidden_channels": 8, "num_layers": 2, "epochs": 3, "checkpoints": 3, "roots": 20}
    run = RunSpec.plan(Case.find("elliptic"), "grace", given=small)
    result = finish(run, load_data(run, root), tmp_path / "run")
    best = max((point.scores for point in result.curve), key=lambda scores: scores["ood_val"])
    assert result.scores.groups == {f"T{k}": best[f"T{k}"] for k in range(1, 10)}
    assert result.scores.ood_test == best["ood_test"]
    assert result.scores.chosen_on == {"ood_test": "ood_val"}


def test_the_hash_is_of_the_complete_settings() -> None:
    digests = {plan()[0].digest, plan(gamma=0.2)[0].digest, plan("grace")[0].digest}
    assert len(digests) == 3
    assert plan()[0].digest == plan(gamma=0.1)[0].digest, "the default written out is the same run"


def test_test_labels_are_out_of_reach_of_training_and_selection(tmp_path: Path) -> None:
    """With all test labels replaced by wrong ones, the model is the same to the bit and so is the choice."""
    run, data = plan("erm")
    honest = finish(run, data, tmp_path / "honest")
    poisoned = data.clone()
    tests = data.id_test_mask | data.ood_test_mask
    poisoned.y = torch.where(tests, (data.y + 1) % 4, data.y)
    other = finish(run, poisoned, tmp_path / "poisoned")
    assert (tmp_path / "honest" / "model.safetensors").read_bytes() == (
        tmp_path / "poisoned" / "model.safetensors"
    ).read_bytes()
    for key in ("id_val", "ood_val"):
        assert getattr(honest.scores, key) == getattr(other.scores, key)
        assert [point.scores[key] for point in honest.curve] == [point.scores[key] for point in other.curve]
    assert honest.scores.ood_test != other.scores.ood_test, "the scores do read them, after the choice"


def test_every_method_is_evaluated_equally_often(tmp_path: Path) -> None:
    counts = set()
    for method in ("erm", "grace", "mario", "random-init", "raw-features"):
        run, data = plan(method, epochs=4)
        counts.add(finish(run, data, tmp_path / method).checkpoints)
    assert counts == {4}


def test_what_does_not_train_is_embedded_once_for_all_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, data = plan("random-init")
    transform, embedded = RandomInit.transform, []
    monkeypatch.setattr(RandomInit, "transform", lambda *args: embedded.append(1) or transform(*args))
    curve = finish(run, data, tmp_path / "run").curve
    assert len(embedded) == 1
    model = load(tmp_path / "run" / "model.safetensors")
    for point in curve:
        alone = evaluate(model, data, probe=LinearProbe(epochs=5 * 10), seed=run.seed + 7919 * point.step)
        assert alone == pytest.approx({name: point.scores[name] for name in alone})
    assert len({point.scores["train"] for point in curve}) > 1, "each checkpoint has a probe of its own"


@pytest.mark.parametrize("method", ["erm", "mario"])
def test_invariance_is_measured_at_every_checkpoint_where_asked_for(method: str, tmp_path: Path) -> None:
    run, data = plan(method, epochs=2, checkpoints=2, steps_per_epoch=2, invariance=True)
    curve = [point.to_dict() for point in finish(run, data, tmp_path / "asked").curve]
    assert all(0 <= point["align_mean"] <= point["align_worst"] <= 4 for point in curve)
    assert curve[0]["align_mean"] != curve[1]["align_mean"]
    run, data = plan(method, epochs=2, checkpoints=2, steps_per_epoch=2)
    plain = [point.to_dict() for point in finish(run, data, tmp_path / "plain").curve]
    assert plain == [{k: v for k, v in point.items() if not k.startswith("align")} for point in curve]


def test_a_run_is_judged_by_the_probe_that_it_names(tmp_path: Path) -> None:
    found = {}
    for probe in ("linear", "optimum", "liblinear", "logistic"):
        run, data = plan("random-init", epochs=1, checkpoints=1, probe=probe)
        found[probe] = finish(run, data, tmp_path / probe).curve[0]
        model = load(tmp_path / probe / "model.safetensors")
        kinds = {
            "linear": LinearProbe(epochs=5 * 10),
            "optimum": LinearProbe(solver="optimum"),
            "liblinear": LiblinearProbe(),
            "logistic": LogisticProbe(),
        }
        by_hand = evaluate(model, data, probe=kinds[probe], seed=probe_seed(run, found[probe].step))
        assert found[probe].scores == by_hand
    assert len({str(scores) for scores in found.values()}) == 4


def test_a_resumed_run_with_the_logistic_probe_has_the_same_scores(tmp_path: Path) -> None:
    run, data = plan(epochs=4, checkpoints=4, probe="logistic")
    whole = finish(run, data, tmp_path / "whole")
    for epoch in execute(run, data, tmp_path / "stopped"):
        if epoch.number == 2:
            break
    assert finish(run, data, tmp_path / "stopped").curve == whole.curve
    assert set(whole.scores.calibration or {}) == {"id_test", "ood_test"}
    (row,) = frame([whole]).to_dict("records")
    for name in ("id_test", "ood_test"):
        (chosen,) = (point for point in whole.curve if point.step == whole.chosen_step(name))
        assert row[f"calibration_{name}"] == chosen.scores[f"calibration_{name}"]


def _carry_on(folder: str, kill_at: int = 0, after: float = 0.0) -> None:
    """A run; some moments after its step ``kill_at``, the process is killed."""
    torch.set_num_threads(1)
    run, data = plan(hidden_channels=8, epochs=4, steps_per_epoch=5, roots=50, checkpoints=2)
    made = itertools.count(1)

    def count(*_: object) -> None:
        if next(made) == kill_at:
            threading.Timer(after, os.kill, (os.getpid(), signal.SIGKILL)).start()

    register_optimizer_step_post_hook(count)
    finish(run, data, Path(folder))


def test_killed_at_ten_random_moments_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    def carry_on(folder: Path, *kill: float) -> int | None:
        process = forked.context().Process(target=_carry_on, args=(str(folder), *kill))
        process.start()
        process.join()
        return process.exitcode

    assert carry_on(tmp_path / "whole") == 0
    expected = (tmp_path / "whole" / "model.safetensors").read_bytes()
    scores = json.loads((tmp_path / "whole" / "result.json").read_text())["scores"]
    draw = random.Random(0)
    killed = 0
    for attempt in range(10):
        folder = tmp_path / str(attempt)
        killed += carry_on(folder, draw.randint(1, 20), draw.uniform(0, 0.02)) == -signal.SIGKILL
        assert carry_on(folder) == 0
        assert (folder / "model.safetensors").read_bytes() == expected
        assert json.loads((folder / "result.json").read_text())["scores"] == scores
    assert killed >= 7, "too few of the kills came before the end to show anything"


def test_a_stopped_run_goes_on_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0  # moves between epochs and nowhere else
    monkeypatch.setattr("time.monotonic", lambda: clock)
    monkeypatch.setattr("time.process_time", lambda: 2 * clock)
    run, data = plan()
    for epoch in execute(run, data, tmp_path / "run"):
        clock += 1
        if epoch.number == 7:
            break
    began, resumed = clock, []
    for epoch in execute(run, data, tmp_path / "run"):
        clock += 1
        resumed.append(epoch.number)
    assert resumed[:3] == [3, 6, 7], "pauses already done, then the first epoch after the last checkpoint"
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    spent = 6 + clock - began  # epoch 6 is saved when it has been told
    assert (result["seconds"], result["cpu_seconds"]) == (spent, 2 * spent), "of both sessions"


def half_done(run: RunSpec, data: Any, folder: Path) -> Path:
    """A run that was stopped after its first checkpoint."""
    epochs = execute(run, data, folder)
    while not (folder / "checkpoint").exists():
        next(epochs)
    epochs.close()
    return folder


def other_data(data: Any) -> Any:
    """``data`` with one edge less, as after a file was mended."""
    other = data.clone()
    other.edge_index = data.edge_index[:, :-1]
    return other


def test_a_run_knows_its_data(tmp_path: Path) -> None:
    run, data = plan("random-init")
    result = finish(run, data, tmp_path / "run")
    assert result.data == fingerprint(data) == json.loads((tmp_path / "run/result.json").read_text())["data"]
    assert json.loads((tmp_path / "run/settings.json").read_text())["data"] == result.data
    assert run.digest == RunSpec.from_dict(result.to_dict()).digest, "the data is not part of the digest"
    with pytest.raises(MarioError, match=rf"run on other data: the fingerprint of good-cbas is {result.data} there"):
        finish(run, other_data(data), tmp_path / "run")
    finish(run, other_data(data), tmp_path / "other")


def test_a_result_from_before_data_was_recorded_is_of_unknown_data(tmp_path: Path) -> None:
    run, data = plan("random-init")
    written = finish(run, data, tmp_path / "run").to_dict()
    del written["data"]
    (tmp_path / "run/result.json").write_text(json.dumps(written))
    assert finish(run, other_data(data), tmp_path / "run").data is None
    assert RunResult.read(tmp_path / "run").to_dict() == written


def test_a_half_done_run_refuses_other_data(tmp_path: Path) -> None:
    run, data = plan("grace")
    folder = half_done(run, data, tmp_path / "run")
    with pytest.raises(MarioError, match="run on other data"):
        finish(run, other_data(data), folder)
    settings = json.loads((folder / "settings.json").read_text())
    (folder / "settings.json").write_text(json.dumps({k: v for k, v in settings.items() if k != "data"}))
    with pytest.raises(MarioError, match="another training: data is "):  # the checkpoint knows it too
        finish(run, other_data(data), folder)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    run, data = plan("grace")
    other = replace(run, seed=1)
    half_done(run, data, tmp_path / "0")
    half_done(other, data, tmp_path / "1")
    shutil.copytree(tmp_path / "1/checkpoint", tmp_path / "0/checkpoint", dirs_exist_ok=True)
    with pytest.raises(MarioError, match="holds a checkpoint of another training: seed is 1 there and 0 here"):
        finish(run, data, tmp_path / "0")


def test_the_folder_of_a_run_is_none_for_fit(tmp_path: Path) -> None:
    run, data = plan("grace")
    finish(run, data, tmp_path / "run")
    with pytest.raises(MarioError, match="holds a checkpoint of another training"):
        GRACE(**split_settings("grace", run.settings)[0].settings()).fit(data, folder=tmp_path / "run")
    said = "another training: dataset is good-cbas there and None here, seed is 0 there and 7 here"
    with pytest.raises(MarioError, match=said):
        GRACE(epochs=3).fit(data, seed=7, folder=tmp_path / "run")


def test_another_number_of_threads_is_said_and_recorded(tmp_path: Path) -> None:
    run, data = plan("grace")
    folder = half_done(run, data, tmp_path / "run")
    torch.set_num_threads(2)
    try:
        with pytest.warns(UserWarning, match="continues under another environment: threads is 1 before and 2 now"):
            result = finish(run, data, folder)
    finally:
        torch.set_num_threads(1)
    assert result.environment["threads"] == 2
    assert [before["threads"] for before in result.environment["earlier"]] == [1]
    assert "earlier" not in finish(run, data, tmp_path / "straight").environment


def test_another_precision_of_products_is_said_and_recorded(tmp_path: Path) -> None:
    run, data = plan("grace")
    folder = half_done(run, data, tmp_path / "run")
    torch.set_float32_matmul_precision("medium")
    try:
        with pytest.warns(UserWarning, match="matmul_precision is highest before and medium now"):
            result = finish(run, data, folder)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert result.environment["matmul_precision"] == "medium"
    assert [before["matmul_precision"] for before in result.environment["earlier"]] == ["highest"]


def test_what_may_change_bits_is_in_the_result(tmp_path: Path) -> None:
    run, data = plan("random-init")
    found = finish(run, data, tmp_path / "run").environment
    versions = {"mario", "python", "torch", "torch_geometric", "numpy", "scipy", "scikit_learn"}
    modes = {"threads", "instructions", "device", "matmul_precision", "deterministic", "mkldnn", "platform"}
    assert found.keys() == versions | modes


def test_a_preset_may_be_the_settings_of_a_run(tmp_path: Path) -> None:
    run, data = plan("random-init")
    finish(run, data, tmp_path / "run")
    assert read_preset(tmp_path / "run/settings.json").method == "random-init"


def test_leftovers_of_a_kill_are_removed_on_the_next_start(tmp_path: Path) -> None:
    run, data = plan("grace")
    folder = half_done(run, data, tmp_path / "run")
    left = [folder / ".model.safetensors.0123.part", folder / "checkpoint/.000000012.safetensors.0123.part"]
    old = folder / ".settings.json.0123.part"
    for part in (*left, old):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    finish(run, data, folder)
    assert not list(folder.rglob("*.part"))
