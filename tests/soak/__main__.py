"""Kill processes of `mario reproduce` and `mario tune` at random for some minutes, and check that nothing is lost.

Exit code 0 if nothing was. The last line of the output is a summary in JSON.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import torch

from tests import postgres
from tests.soak.commands import kill_one, left, measure
from tests.soak.lanes import Lane, Reproduce, Tune, TuneInPostgres

GROWTH = 32 * 2**20  # bytes that a process may gain in the second half of its life
TO_FINISH = 1200.0  # seconds for the last rounds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seeds", type=int, default=100, help="of each row of the study")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the kills")
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    torch.set_num_threads(1)  # as the workers, so that the bits are the same
    for number in (signal.SIGTERM, signal.SIGINT):  # the second is ignored in the background of a shell
        signal.signal(number, lambda *_: sys.exit("stopped"))
    with tempfile.TemporaryDirectory(prefix="mario-soak-", ignore_cleanup_errors=True) as name, ExitStack() as held:
        root = Path(name)
        (root / "tmp").mkdir()
        os.environ.update(OMP_NUM_THREADS="1", TMPDIR=str(root / "tmp"), MARIO_CACHE=str(root / "cache"), COLUMNS="120")
        reproduce = Reproduce(root, asked.seeds)
        lanes: list[Lane] = [reproduce, Tune(root, asked.trials, draw)]
        server = None
        if postgres.initdb() and find_spec("psycopg"):
            server = held.enter_context(postgres.running())
            lanes.append(TuneInPostgres(root, asked.trials, draw, server.url))
        reproduce.undisturbed()
        tell(f"{len(reproduce.expected)} runs are done undisturbed; kills begin")
        for lane in lanes:
            lane.begin()
        try:
            kills, own = soak(lanes, asked.minutes, draw, server)
            return conclude(lanes, kills, own, root)
        finally:
            for lane in lanes:
                lane.end()


def soak(
    lanes: list[Lane], minutes: float, draw: random.Random, server: "postgres.Postgres | None"
) -> tuple[Counter[str], list[tuple[int, int]]]:
    """Kills by kind, and bytes and open files of this process over time."""
    kills: Counter[str] = Counter()
    own: list[tuple[int, int]] = []
    began = measured = struck = time.monotonic()
    while time.monotonic() - began < 60 * minutes:
        time.sleep(draw.uniform(0.5, 4.0))
        for lane in lanes:
            lane.step()
        kill_one([command for lane in lanes if not lane.finishing for command in lane.commands], kills, draw)
        now = time.monotonic()
        if now - measured > 20:
            measured = now
            for lane in lanes:
                measure([*lane.commands, lane.last])
            own.append((_bytes(), len(os.listdir("/proc/self/fd"))))
            tell(f"{(now - began) / 60:.0f} min, {kills.total()} kills, rounds {[lane.rounds for lane in lanes]}")
        if server and now - struck > 240:
            struck = now
            server.kill()
            kills["database SIGKILL"] += 1
            for lane in lanes:
                lane.excused |= isinstance(lane, TuneInPostgres)
            time.sleep(draw.uniform(0.0, 5.0))
            server.start()
    return kills, own


def conclude(lanes: list[Lane], kills: Counter[str], own: list[tuple[int, int]], root: Path) -> int:
    """End all rounds, check what is left, and print a summary."""
    rounds = {lane.name: lane.rounds + 1 for lane in lanes}
    deadline = time.monotonic() + TO_FINISH
    for lane in lanes:
        lane.over = True
    while any(lane.rounds < rounds[lane.name] for lane in lanes) and time.monotonic() < deadline:
        for lane in lanes:
            if lane.rounds < rounds[lane.name]:
                lane.step()
        time.sleep(0.5)
    faults = [f"{lane.name}: {fault}" for lane in lanes for fault in lane.faults]
    faults += [f"{lane.name} did not finish its last round" for lane in lanes if lane.rounds < rounds[lane.name]]
    for lane in lanes:
        lane.end()
    sessions = {number for lane in lanes for number in lane.sessions}
    for _ in range(60):
        if not left(sessions):
            break
        time.sleep(1.0)
    faults += [f"still there: {process}" for process in left(sessions)]
    # Python's folders for sockets and PyG's generated modules; a kill leaves them, and they are not ours.
    others = Counter(path.name[:4] for path in (root / "tmp").iterdir())
    faults += [
        f"left in TMPDIR: {count} of {name}..." for name, count in others.items() if name not in ("pymp", "torc")
    ]
    growth = [(grown, lane.name) for lane in lanes for line in lane.memory if (grown := _growth(line)) is not None]
    faults += [f"{name}: a process grew by {grown} bytes" for grown, name in growth if grown > GROWTH]
    if len(own) > 15:
        if own[-1][0] - own[15][0] > GROWTH:
            faults.append(f"the watching process grew from {own[15][0]} to {own[-1][0]} bytes")
        if own[-1][1] > own[15][1] + 5:
            faults.append(f"the watching process has {own[-1][1]} open files, and had {own[15][1]}")
    summary = {
        "kills": dict(sorted(kills.items())),
        "rounds": {lane.name: lane.rounds for lane in lanes},
        "exit codes": {lane.name: dict(lane.ended) for lane in lanes},
        "trials": {lane.name: dict(lane.total) for lane in lanes if isinstance(lane, Tune)},
        "runs per round": [len(lane.expected) for lane in lanes if isinstance(lane, Reproduce)],
        "processes measured": len(growth),
        "largest growth in MiB": round(max((grown for grown, _ in growth), default=0) / 2**20, 1),
        "watching process in MiB": [round(each[0] / 2**20) for each in (own[:1] + own[15:16] + own[-1:])],
        "left in TMPDIR by Python and PyG": dict(others),
        "faults": faults,
    }
    print(json.dumps(summary), flush=True)
    return bool(faults)


def _growth(line: list[tuple[float, int]]) -> int | None:
    """Bytes gained in the second half of the life of a process that lived for three minutes: a leak never ends."""
    begin, end = line[0][0], line[-1][0]
    settled = [size for at, size in line if at >= (begin + end) / 2]
    return settled[-1] - settled[0] if end - begin > 180 else None


def _bytes() -> int:
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


def tell(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
