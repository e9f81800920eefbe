"""How long a person waits before anything happens: CPU and wall time of fresh interpreters.

python -m benchmarks.startup [--quick]
"""

import os
import statistics
import subprocess
import sys
import time

from benchmarks.measuring import ROOT, parser, save

COMMANDS = {
    "python alone": ["-c", "pass"],
    "mario --help": ["-m", "mario", "--help"],
    "import mario": ["-c", "import mario"],
    "mario.MARIO": ["-c", "import mario; mario.MARIO"],
    "import torch": ["-c", "import torch"],
    "import torch_geometric": ["-c", "import torch_geometric"],
}


def once(command: list[str]) -> tuple[float, float]:
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"python {' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start


def main() -> None:
    given = parser(__doc__).parse_args()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for round_ in range(2 if given.quick else 8):
        for name, command in COMMANDS.items():
            took = once(command)
            if round_:  # the first finds cold files
                times[name].append(took)
    figures = {
        name: {"cpu": statistics.median(t[0] for t in taken), "wall": statistics.median(t[1] for t in taken)}
        for name, taken in times.items()
    }
    print({name: f"{1e3 * both['cpu']:.0f} ms" for name, both in figures.items()})
    save(given, "startup", {"commands": figures})


if __name__ == "__main__":
    main()
