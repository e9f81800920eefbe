"""The memory settings of our own processes, observed from outside."""

import subprocess
import sys

import pytest

from mario.lab.process import return_freed_memory

# Frees every second of 40 blocks of 8 MiB once glibc has been taught to keep blocks of that size, and prints what is
# resident. Kept ones stay between, so that the heap could not shrink.
SCRIPT = """
import sys, torch
from pathlib import Path
from mario.lab.process import return_freed_memory
if sys.argv[1] == "told":
    assert return_freed_memory()
del sys.modules["mario"]
for _ in range(3):
    first = torch.ones(2**23 // 4 + 10**6); del first  # glibc raises its bound when a mapped block is freed
blocks = [torch.ones(2**23 // 4) for _ in range(40)]
del blocks[::2]
print(int(Path("/proc/self/statm").read_text().split()[1]) * 4096 // 2**20)
"""


@pytest.mark.skipif(not return_freed_memory(), reason="this C library has no mallopt, or the environment decides")
def test_what_is_freed_between_other_blocks_leaves_the_process() -> None:
    told, plain = (
        int(subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True).stdout)
        for how in ("told", "plain")
    )
    assert told < plain - 100
