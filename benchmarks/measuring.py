"""Measuring: CPU time in turns, peak memory in a child process, figures as JSON."""

import argparse
import contextlib
import ctypes
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUT = Path(__file__).resolve().parent / "out"
MIB = 2**20
GIB = 2**30
PARTS = (
    "limits",
    "contrast",
    "step",
    "cbas",
    "messages",
    "probe",
    "sampling",
    "startup",
    "full_batch",
    "batches",
    "ranks",
    "million",
)
"""What `python -m benchmarks` measures, in this order."""


def parser(doc: str | None) -> argparse.ArgumentParser:
    """The options of every part; a part adds its own."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="small sizes and few rounds: seconds, not minutes")
    made.add_argument("--out", type=Path, default=None, help="folder of the JSON (benchmarks/out, or out/quick)")
    return made


def folder(given: argparse.Namespace) -> Path:
    return given.out or (OUT / "quick" if given.quick else OUT)


def save(given: argparse.Namespace, part: str, figures: Mapping[str, Any]) -> None:
    """Write the figures of a part atomically, with where and when they were measured."""
    where = folder(given)
    where.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"part": part, "quick": given.quick, "machine": machine(), **figures}, indent=1)
    path = where / f"{part}.json"
    half = path.with_suffix(f".part{os.getpid()}")
    half.write_text(text + "\n", encoding="utf-8")
    half.replace(path)
    print(f"{part}: {path}", flush=True)


def load(where: Path, part: str) -> dict[str, Any] | None:
    path = where / f"{part}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def machine() -> dict[str, Any]:
    import torch

    cpu = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = next((int(line.split()[1]) * 1024 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory": memory,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "commit": commit.stdout.strip() or "?",
        "date": time.strftime("%Y-%m-%d"),
        "load": round(os.getloadavg()[0], 1),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


# CPU time ---------------------------------------------------------------------------------------------------------


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of this process, all threads; it excludes other processes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def in_turns(
    work: Mapping[str, Callable[[], object]], rounds: int, *, warm_up: bool = True, at_least: float = 0.0
) -> dict[str, list[float]]:
    """CPU seconds of each candidate, taking turns in every round, so that a slow minute meets all of them.

    Work shorter than ``at_least`` seconds is repeated within a round until it has taken that long.
    """
    repeats = dict.fromkeys(work, 1)
    if warm_up:
        for name, do in work.items():
            do()
            if at_least:
                took = max(cpu_seconds(do), 1e-6)
                repeats[name] = max(1, round(at_least / took))
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, do in work.items():
            start = time.process_time()
            for _ in range(repeats[name]):
                do()
            times[name].append((time.process_time() - start) / repeats[name])
    return times


def medians(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in times.items()}


# Memory -----------------------------------------------------------------------------------------------------------


def resident(line: str) -> int:
    """Bytes of VmRSS, resident now, or of VmHWM, the most there was; ru_maxrss would count the parent's memory too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{line}:")[1].split()[0]) * 1024


def forget_peak() -> int:
    """Return freed memory, reset the peak if the system allows it, and return the resident bytes."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    # If refused, the peak is that of the whole process; inputs are small in comparison.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def in_child(module: str, *arguments: object, threads: int = 1, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The last line, as JSON, that ``python -m MODULE ARGUMENTS`` prints in a child process."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    surroundings = {**os.environ, "OMP_NUM_THREADS": str(threads), **(env or {})}
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def mario_run(dataset: str, *words: object) -> tuple[dict[str, Any], int]:
    """The result of ``mario run`` in a child process, and its peak bytes as reported by the kernel."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "run"
        command = [sys.executable, "-m", "mario", "run", dataset, "--quiet", "--out", str(home), *map(str, words)]
        _, status, usage = os.wait4(subprocess.Popen(command).pid, 0)
        if status:
            sys.exit(f"{' '.join(command)} failed")
        return json.loads((home / "result.json").read_text(encoding="utf-8")), usage.ru_maxrss * 1024
