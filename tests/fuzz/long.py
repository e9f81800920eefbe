"""``make fuzz``: all targets in turn, in processes of their own, until the time is over.

What pytest says about a target that fails goes to ``.fuzz/findings``. ``.fuzz/corpus`` keeps the input, which is tried
first in the next round and the next run, until it is mended.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
HOME = HERE.parents[1]
KEPT = HOME / ".fuzz"
SHARE = 60.0
"""Seconds of a target, in each round."""
PATIENCE = 900.0
"""More seconds after which a target is stopped, if it searches for the smallest input or hangs."""


def targets() -> list[str]:
    """Where the targets are, such as ``test_losses.py::test_info_nce``."""
    found = []
    for path in sorted(HERE.glob("test_*.py")):
        names = re.findall(r"^@fuzz\(.*?^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        found += [f"{path.name}::{name}" for name in names]
    return found


def run(target: str, seconds: float) -> tuple[int | None, int, str]:
    """Exit code (None if it was stopped), number of inputs tried, and what pytest said."""
    with tempfile.TemporaryDirectory() as folder:
        tally, said = Path(folder, "tally"), Path(folder, "said")
        environment = {**os.environ, "MARIO_FUZZ_SECONDS": str(seconds), "MARIO_FUZZ_TALLY": str(tally)}
        command = [sys.executable, "-m", "pytest", "-q", "--timeout=0", "-W", "ignore", f"{HERE}/{target}"]
        with said.open("wb") as file:
            process = subprocess.Popen(
                command, cwd=HOME, env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                code: int | None = process.wait(seconds + PATIENCE)
            except (subprocess.TimeoutExpired, KeyboardInterrupt) as stopped:
                os.killpg(process.pid, signal.SIGKILL)  # the processes that it started, too
                process.wait()
                code = None
                if isinstance(stopped, KeyboardInterrupt):
                    raise
        tried = json.loads(tally.read_text()) if tally.exists() else 0
        return code, tried, said.read_text(encoding="utf-8", errors="replace")


def main(minutes: float) -> int:
    began = time.monotonic()
    every, tried, findings = targets(), 0, 0
    (KEPT / "findings").mkdir(parents=True, exist_ok=True)
    while (rest := began + 60 * minutes - time.monotonic()) > 0:
        share = min(SHARE, max(1.0, rest / len(every)))
        for target in every:
            if time.monotonic() > began + 60 * minutes:
                break
            code, count, said = run(target, share)
            tried += count
            passed = (time.monotonic() - began) / 60
            outcome = "ok" if code == 0 else "stopped: it hangs" if code is None else f"FOUND (exit code {code})"
            print(f"{passed:6.1f} min  {tried:9,} inputs  {target}: {count:,} more, {outcome}", flush=True)
            if code != 0:
                findings += 1
                name = target.replace(".py::", "-")
                (KEPT / "findings" / f"{name}-{findings}.txt").write_text(said, encoding="utf-8")
    print(
        f"{tried:,} inputs of {len(every)} targets in {minutes:g} minutes; {findings} times one failed: {KEPT}/findings"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0))
