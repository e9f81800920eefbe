"""Peak memory of a whole run with full batches: coauthor-cs, 18,333 nodes and 6,805 sparse features.

    MARIO_DATA=FOLDER .venv/bin/python benchmarks/full_batch.py [--methods grace mario] [--steps 2]

Each run is the real command in a child process of its own; its peak is what the kernel says of that child.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

from mario.graphs.catalogue import CATALOGUE
from mario.graphs.files import locate

LIMIT_GIB = 3.0


def measure(method: str, steps: int) -> tuple[float, float]:
    """Peak resident memory in GiB and wall time in seconds of one run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "mario", "run", "coauthor-cs", "--domain", "word", "--shift", "concept"]
        command += ["--method", method, "--threads", "1", "--quiet", "--out", os.path.join(folder, "run")]
        for setting in (f"epochs={steps}", "checkpoints=1", "probe_epochs=20"):
            command += ["--set", setting]
        began = time.monotonic()
        child = subprocess.Popen(command)
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            sys.exit(f"{' '.join(command)} failed")
    return usage.ru_maxrss / 2**20, time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=["grace", "mario"])
    parser.add_argument("--steps", type=int, default=2)
    arguments = parser.parse_args()
    if locate(CATALOGUE["coauthor-cs"]) is None:
        print("coauthor-cs is not here: set MARIO_DATA to a folder that holds Coauthor/CS (docs/data.md)")
        return
    print(f"| method | full-batch steps | peak GiB | below {LIMIT_GIB} GiB | s |\n|---|---:|---:|---|---:|")
    for method in arguments.methods:
        peak, seconds = measure(method, arguments.steps)
        print(
            f"| {method} | {arguments.steps} | {peak:.2f} | {'yes' if peak < LIMIT_GIB else 'NO'} | {seconds:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
