"""All parts, one after the other: python -m benchmarks [--quick] [--only PART ...] [--seeds 5]

First the check that reference and ours are the same mathematics; it has to pass. A part that fails is named at the
end and the others go on. ``python -m benchmarks.write`` then puts the figures into the documentation.
"""

import os
import subprocess
import sys
import time

from benchmarks.measuring import PARTS, ROOT, parser


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    options.add_argument("--seeds", type=int, default=0, help="runs on GOOD-CBAS whose accuracies are compared")
    options.add_argument("--jobs", type=int, default=1, help="how many of those at once")
    options.add_argument("--large", action="store_true", help="InfoNCE of 100,000 nodes as well (minutes)")
    options.add_argument("--unchecked", action="store_true", help="leave out the check that comes first")
    given = options.parse_args()
    shared = (["--quick"] if given.quick else []) + (["--out", str(given.out)] if given.out else [])
    own = {
        "contrast": ["--large"] if given.large else [],
        "cbas": ["--seeds", str(given.seeds), "--jobs", str(given.jobs)],
    }
    # One thread unless a part says otherwise: what is compared is work, not how it is spread.
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    failed = []
    if not given.unchecked:
        print("== check", flush=True)
        if subprocess.run([sys.executable, "-m", "benchmarks.check"], cwd=ROOT, env=env).returncode:
            sys.exit("the reference and ours differ: nothing was measured")
    began = time.monotonic()
    for part in given.only:
        print(f"== {part} ({(time.monotonic() - began) / 60:.1f} minutes so far)", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{part}", *shared, *own.get(part, [])]
        if subprocess.run(command, cwd=ROOT, env=env).returncode:
            failed.append(part)
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
