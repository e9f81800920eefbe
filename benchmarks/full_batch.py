"""Peak memory of a whole run with full batches: coauthor-cs, 18,333 nodes and 6,805 sparse features.

    MARIO_DATA=FOLDER python -m benchmarks.full_batch [--quick] [--methods grace mario] [--steps 2]

Each run is the real command in a child process of its own; its peak is what the kernel says of that child. Without the
dataset there is nothing to measure, and no figures are left.
"""

import time

from benchmarks.measuring import GIB, mario_run, parser, save
from mario.datasets import find


def measure(method: str, steps: int) -> tuple[float, float]:
    """Peak resident memory in GiB and wall time in seconds of one run."""
    words = ["--domain", "word", "--shift", "concept", "--method", method, "--threads", "2"]
    for setting in (f"epochs={steps}", "checkpoints=1", "probe_epochs=20"):
        words += ["--set", setting]
    began = time.monotonic()
    _, peak = mario_run("coauthor-cs", *words)
    return peak / GIB, time.monotonic() - began


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--methods", nargs="+", default=["grace", "mario"])
    options.add_argument("--steps", type=int, default=2)
    given = options.parse_args()
    if find("coauthor-cs").where() == "absent":
        print("coauthor-cs is not here: set MARIO_DATA to a folder that holds Coauthor/CS (docs/data.md)")
        return
    rows = []
    for method in given.methods[:1] if given.quick else given.methods:
        peak, seconds = measure(method, 1 if given.quick else given.steps)
        rows.append({"method": method, "peak_gib": peak, "wall": seconds})
        print(f"{method}: {peak:.2f} GiB, {seconds:.0f} s", flush=True)
    save(given, "full_batch", {"steps": given.steps, "rows": rows})


if __name__ == "__main__":
    main()
