"""The real command line, as a person types it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

import dying
from elliptic_files import write_elliptic
from forked import mario, start
from mario.cli import app
from two_ranks import on_two_ranks

QUICK = [
    "--set",
    "hidden_channels=16",
    "--set",
    "num_layers=2",
    "--set",
    "clusters=5",
    "--set",
    "probe_epochs=5",
    "--threads",
    "1",
]


def real(*words: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """A process that imports everything itself, where that is the point."""
    command = [sys.executable, "-m", "mario", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_help_does_not_import_torch() -> None:
    script = "import sys; sys.argv = ['mario', '--help']\nfrom mario.cli import main\n"
    script += "try: main()\nexcept SystemExit: pass\nsys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, "mario --help imported torch or numpy"
    assert "run" in done.stdout
    assert "demo" in done.stdout


def test_run_writes_the_folder_and_says_so(tmp_path: Path) -> None:
    words = ["run", "good-cbas", "--shift", "concept", "--method", "mario", "--seed", "0", "--out", "runs/one"]
    done = real(*words, *QUICK, "--set", "epochs=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ood_test" in done.stdout
    result = json.loads((tmp_path / "runs" / "one" / "result.json").read_text())
    assert (result["method"], result["seed"], result["split_seed"]) == ("mario", 0, 0)
    again = mario(*words, *QUICK, "--set", "epochs=2", cwd=tmp_path)
    assert again.returncode == 0
    assert "was done already" in again.stdout


def test_run_with_the_logistic_probe(tmp_path: Path) -> None:
    words = [
        "run",
        "good-cbas",
        "--method",
        "mario",
        "--out",
        "logistic",
        "--set",
        "epochs=2",
        "--set",
        "probe=logistic",
    ]
    done = mario(*words, *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "logistic" / "result.json").read_text())
    assert set(result["scores"]["calibration"]) == {"id_test", "ood_test"}
    for point in result["curve"]:
        assert {"ood_test_by_id_val", "calibration_id_test", "calibration_ood_test"} <= point.keys()
    best = max(result["curve"], key=lambda point: point["id_val"])
    assert result["scores"]["ood_test_by_id_val"] == best["ood_test_by_id_val"]


def test_run_on_many_graphs_shows_a_score_for_each_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIO_UNVERIFIED", "1")
    root = write_elliptic(tmp_path / "data", nodes=12)
    words = [
        "run",
        "elliptic",
        "--method",
        "erm",
        "--encoder",
        "sage",
        "--set",
        "hidden_channels=8",
        "--set",
        "epochs=2",
    ]
    done = mario(
        *words, "--root", str(root), "--out", "one", cwd=tmp_path, env={"MARIO_CACHE": str(tmp_path / "cache")}
    )
    assert done.returncode == 0, done.stderr
    assert "time, label, inductive" in done.stdout
    shown = {
        line.split("│")[1].strip(): line.split("│")[3].strip()
        for line in done.stdout.splitlines()
        if "│" in line and "%" in line
    }
    assert shown == dict.fromkeys(("ood_test", *(f"T{k}" for k in range(1, 10))), "ood_val")
    scores = json.loads((tmp_path / "one" / "result.json").read_text())["scores"]
    assert list(scores["groups"]) == [f"T{k}" for k in range(1, 10)]
    assert scores["ood_test"] == pytest.approx(sum(scores["groups"].values()) / 9)


def test_without_out_the_folder_is_named_by_the_hash(tmp_path: Path) -> None:
    done = mario("run", "good-cbas", "--method", "raw-features", "--set", "epochs=1", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert len(folder.name) == 16


def test_killed_and_started_again_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    short = ["--set", "epochs=10", "--set", "roots=200"]
    words = ["run", "good-cbas", "--shift", "concept", *QUICK, *short, "-q", "--out"]
    assert mario(*words, str(tmp_path / "whole")).returncode == 0
    process = start("dying", *words, str(tmp_path / "killed"), said=tmp_path, env={**os.environ, "BEYOND": "0"})
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not (tmp_path / "killed" / "result.json").exists()
    assert mario(*words, str(tmp_path / "killed")).returncode == 0
    same = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert same[0] == same[1]


ON_RANKS = ["run", "good-cbas", "--shift", "concept", *QUICK, "--set", "epochs=6", "--set", "checkpoints=3"]
ON_RANKS += ["--set", "roots=100", "-q", "--out"]


def train_whole(rank: int, folder: str) -> None:
    sys.argv = ["mario", *ON_RANKS, folder]
    app(standalone_mode=False)


@pytest.fixture
def torchrun(tmp_path: Path) -> Iterator[Callable[..., ForkServerProcess]]:
    """Starts a run of two ranks in a folder, one of which is killed."""
    started: list[ForkServerProcess] = []

    def begin(folder: str, beyond: int, *options: str) -> ForkServerProcess:
        words = ["--standalone", "--nproc-per-node", "2", *options, dying.__file__, *ON_RANKS]
        env = {**os.environ, "OMP_NUM_THREADS": "1", "BEYOND": str(beyond)}
        said = tmp_path / "said" / str(len(started))
        started.append(start("torch.distributed.run", *words, str(tmp_path / folder), said=said, env=env))
        return started[-1]

    yield begin
    for process in started:
        process.terminate()  # torchrun ends its ranks then
        process.join()


def spoken(tmp_path: Path, number: int) -> str:
    return "".join((tmp_path / "said" / str(number) / name).read_text() for name in ("out", "err"))


def test_a_rank_that_is_killed_stops_the_job_and_a_restart_ends_with_the_same_bits(
    torchrun: Callable[..., ForkServerProcess], tmp_path: Path
) -> None:
    killed = torchrun("killed", 0)
    on_two_ranks(train_whole, str(tmp_path / "whole"))
    killed.join(timeout=120)
    said = spoken(tmp_path, 0)
    assert killed.exitcode not in (0, None)
    # Which of the two comes first, the closed connection or torchrun's signal, is chance.
    lost = r"mario: error: rank lost (at|while rank 0 evaluated) step \d+: rank 0 of 2 (lost the conn|was told to end)"
    assert len(re.findall(lost, said)) == 1, said
    assert "torchrun --max-restarts resumes from the checkpoint" in said
    assert not (tmp_path / "killed" / "result.json").exists()

    again = torchrun("killed", 20, "--max-restarts", "1")
    again.join(timeout=120)
    assert again.exitcode == 0, spoken(tmp_path, 1)
    assert len(re.findall(lost, spoken(tmp_path, 1))) == 1, spoken(tmp_path, 1)
    same = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert same[0] == same[1]
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("whole", "killed")]
    assert results[0]["scores"] == results[1]["scores"]
    assert [result["ranks"] for result in results] == [2, 2]


def test_ctrl_c_is_one_line_and_exit_code_130(tmp_path: Path) -> None:
    words = ["run", "good-cbas", *QUICK, "--set", "epochs=5000", "-q", "--out", str(tmp_path / "run")]
    # A shell starts what runs in its background with SIGINT ignored, and its children inherit that.
    process = subprocess.Popen(
        [sys.executable, "-m", "mario", *words],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 240  # seconds where nothing else runs, and many times that where much does
    log = tmp_path / "run" / "log.jsonl"
    while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert log.exists()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "repeat the same command" in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "good-cbs"], "did you mean 'good-cbas'"),
        (["run", "good-cbas", "--method", "gracee"], "there is no method 'gracee'"),
        (["run", "good-cbas", "--method", "erm+mario"], "two views"),
        (["run", "good-cbas", "--shift", "sideways"], "covariate"),
        (["run", "elliptic", "--shift", "concept"], "unknown shift of elliptic 'concept'; use one of label"),
        (["run", "elliptic"], "EllipticBitcoin/raw/elliptic_txs_features.csv"),
        (["run", "good-cbas", "--set", "epoch=3"], "did you mean 'epochs'"),
        (["run", "good-cbas", "--set", "epochs"], "NAME=VALUE"),
        (["run", "good-cbas", "--set", "lr=-1"], "lr must be at least 0"),
        (["run", "good-cbas", "--device", "tpu"], "auto, cpu or cuda"),
        (["run", "good-cbas", "--encoder", "cnn"], "encoder must be one of gcn"),
        (["run", "good-cora"], "good-cbas needs no files"),
        (["run", "good-cora", "--root", "/nonexistent"], "is not a folder"),
        (["run"], "Missing argument"),
        (["fly"], "No such command"),
        (["reproduce", "nothing"], "there is no study 'nothing'"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(words: list[str], message: str, tmp_path: Path) -> None:
    offline = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "MARIO_CACHE": str(tmp_path)}
    done = mario(*words, cwd=tmp_path, env={**offline, "MARIO_DATA": ""})
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback() -> None:
    done = mario("run", "good-cbs", "--debug")
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_methods_lists_all_and_marks_hosts() -> None:
    rows = {row["name"]: row for row in json.loads(mario("methods", "--json").stdout)}
    assert {"erm", "grace", "mario", "random-init", "raw-features"} <= rows.keys()
    assert rows["grace"]["recipe_host"]
    assert not rows["erm"]["recipe_host"]


def test_methods_shows_every_setting_of_one() -> None:
    rows = {row["name"]: row for row in json.loads(mario("methods", "mario", "--json").stdout)}
    assert rows["gamma"]["default"] == 0.1
    assert 0.5 in rows["gamma"]["search"]
    assert (rows["encoder"]["search"], rows["encoder"]["choices"]) == (None, ["gcn", "sage", "gat", "gin"])
    assert all(row["what"] for row in rows.values())


def test_demo_compares_and_writes_one_page(tmp_path: Path) -> None:
    done = mario("demo", "--out", "here", "--seeds", "1", "--epochs", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "here" / "index.html").read_text(encoding="utf-8")
    for word in ("mario", "grace", "erm", "raw-features", "random-init", "91.28", "<svg"):
        assert word in page
    assert "index.html" in done.stdout
    again = mario("demo", "--out", "here", "--seeds", "1", "--epochs", "1", cwd=tmp_path)
    assert again.returncode == 0, "a second demo in a row finds its runs done"
