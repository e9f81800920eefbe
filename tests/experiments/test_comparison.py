"""Methods side by side: matched settings, parallel runs, failures that do not stop the others."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mario.errors import MarioError, RunFailedError
from mario.experiments.comparison import Job, matched_settings, results, run_jobs, side_by_side
from mario.experiments.results import CASES, VARIANTS, systems, variant_jobs

QUICK = {"hidden": 8, "layers": 1, "epochs": 1, "steps_per_epoch": 1, "probe_epochs": 2}


def test_grace_and_mario_differ_only_in_the_recipe() -> None:
    grace = matched_settings("grace", "good-cbas", "color", "concept")
    mario = matched_settings("mario", "good-cbas", "color", "concept")
    assert set(mario) - set(grace) == {"clusters", "gamma", "prototype_lr"}
    assert all(grace[key] == mario[key] for key in grace)
    control = matched_settings("random-init", "good-cbas", "color", "concept")
    assert (control["probe_epochs"], control["batch_norm"]) == (mario["probe_epochs"], mario["batch_norm"])


def test_every_method_of_a_table_has_the_same_steps_checkpoints_and_pairs() -> None:
    jobs = side_by_side(
        "good-cbas", ["erm", "mario"], domain="color", shift="concept", pairs=[(0, 0), (1, 5)], epochs=3, checkpoints=2
    )
    assert [(job.method, job.split_seed, job.seed) for job in jobs] == [
        ("erm", 0, 0),
        ("mario", 0, 0),
        ("erm", 1, 5),
        ("mario", 1, 5),
    ]
    assert {(job.given["epochs"], job.given["checkpoints"]) for job in jobs} == {(3, 2)}


def test_the_cases_of_the_results_page_are_the_ones_promised() -> None:
    counts = {case.name: len(case.pairs) for case in CASES}
    assert counts["good-cbas-concept"] == 15
    assert all(counts[name] == 5 for name in counts if name.startswith(("good-webkb", "webkb")))
    assert len(variant_jobs()) == 3 * len(VARIANTS)


def test_the_tables_of_systems_have_a_row_for_every_method_and_every_host_with_the_recipe() -> None:
    nodes, graphs = systems("node"), systems("graph")
    assert {"erm", "irm", "eerm", "gae", "vgae", "graphmae", "dgi", "mvgrl", "grace", "rosa", "bgrl", "costa"} < set(
        nodes
    )
    assert {"mario", "costa+mario", "bgrl+mario", "swav+mario", "rosa+mario", "mvgrl+mario", "dgi+mario"} < set(nodes)
    assert "grace+mario" not in nodes, "that is mario"
    assert set(graphs) == {"erm", "graphcl", "graphcl+mario", "random-init", "raw-features"}
    cases = {case.name: case for case in CASES}
    assert cases["systems-good-cbas-concept"].methods == nodes
    assert cases["systems-dd-300-covariate"].methods == graphs
    assert len(cases["systems-amazon-photo-concept"].pairs) == 3


def test_systems_keep_their_own_settings_on_one_schedule() -> None:
    case = next(case for case in CASES if case.name == "systems-good-cbas-covariate")
    runs = {job.method: job.plan().settings for job in case.jobs(["irm", "bgrl", "mario"]) if job.seed == 0}
    assert {(run["epochs"], run["steps_per_epoch"], run["checkpoints"]) for run in runs.values()} == {(20, 10, 10)}
    assert runs["irm"]["penalty"] == 10.0
    assert (runs["bgrl"]["schedule"], runs["bgrl"]["warmup"]) == ("cosine", 10), "500 of 10,000 steps, 10 of 200"
    quick = case.jobs(["irm"], quick=True)
    assert [(job.seed, job.given["epochs"]) for job in quick] == [(0, 2)]
    with pytest.raises(MarioError, match="graphcl embeds graphs"):
        case.jobs(["graphcl"])


def test_runs_in_parallel_and_a_failure_stops_no_other(tmp_path: Path) -> None:
    good = [
        Job(dataset="good-cbas", method="random-init", shift="concept", seed=seed, given=QUICK, label="random-init")
        for seed in range(2)
    ]
    bad = Job(
        dataset="good-cbas", method="grace", shift="concept", given={**QUICK, "lr": 1e30, "epochs": 20}, label="grace"
    )
    with pytest.raises(RunFailedError, match=r"1 of 3 runs failed, the first grace with split seed 0 and seed 0"):
        list(run_jobs([good[0], bad, good[1]], tmp_path, workers=2))
    assert [result["seed"] for result in results(good, tmp_path)] == [0, 1]
    assert list(tmp_path.glob("*/error.txt")), "the error stands beside the settings"
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/result.json")}
    for _ in run_jobs(good, tmp_path, workers=2):
        pass
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/result.json")}


def test_a_killed_worker_stops_no_other_and_is_named(tmp_path: Path) -> None:
    long, short = (
        Job(
            dataset="good-cbas",
            method="grace",
            shift="concept",
            seed=seed,
            given={**QUICK, "epochs": epochs},
            label="grace",
        )
        for seed, epochs in ((0, 100_000), (1, 1))
    )
    doomed = long.plan().digest()

    def kill_when_it_works() -> None:
        for _ in run_jobs([long, short], tmp_path, workers=1):
            if (tmp_path / doomed / "log.jsonl").exists():
                for child in multiprocessing.active_children():
                    if not (tmp_path / doomed / "error.txt").exists():
                        os.kill(child.pid, signal.SIGKILL)

    with pytest.raises(RunFailedError, match=r"1 of 2 runs failed.*killed by signal 9"):
        kill_when_it_works()
    assert [result["seed"] for result in results([short], tmp_path)] == [1]


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "mario", "demo", "--out", str(tmp_path), "--seeds", "1", "--epochs", "2000"],
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("runs/*/log.jsonl"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    os.kill(demo.pid, signal.SIGKILL)
    demo.wait()
    time.sleep(2)
    before = {log: log.stat().st_size for log in tmp_path.glob("runs/*/log.jsonl")}
    time.sleep(1)
    assert len(before) >= 2
    assert before == {log: log.stat().st_size for log in tmp_path.glob("runs/*/log.jsonl")}, "a worker still trains"
