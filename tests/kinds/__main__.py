"""``python -m tests.kinds [AREA [TEXT]]``: count how all kinds of broken input end, or list those of one area."""

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinds.catalog import AREAS
from kinds.kind import CLEAR, HANDLED
from kinds.running import run_area, table

if __name__ == "__main__":
    chosen, text = sys.argv[1:2] or list(AREAS), "".join(sys.argv[2:3])
    counts = {}
    for area in chosen:
        ended = run_area(area)
        counts[area] = Counter(one.outcome for one in ended)
        for one in ended:
            if one.outcome not in (CLEAR, HANDLED) or (text and text in one.name) or one.seconds > 1:
                print(f"{area}: {one.name}: {one.outcome} ({one.seconds} s): {one.said}", flush=True)
        print(f"{area}: {sum(one.seconds for one in ended):.0f} s", flush=True)
    print(table(counts))
