"""Figures into the documentation: python -m benchmarks.write [--from benchmarks/out] [--to docs]

The text between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` in docs/performance.md and docs/scaling.md is
written anew from the JSON; the text around it is written by hand. A part that has not been measured says so; one that
`make benchmark` leaves out then stays as it is.
"""

import argparse
import re
from pathlib import Path

from benchmarks.measuring import OUT, PARTS, ROOT, load
from benchmarks.performance_page import PERFORMANCE
from benchmarks.picture import draw
from benchmarks.scaling_page import SCALING

LEFT_OUT = ("less_than_exact", "same_run")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--from", dest="where", type=Path, default=OUT)
    options.add_argument("--to", type=Path, default=ROOT / "docs")
    given = options.parse_args()
    figures = {part: found for part in (*PARTS, *LEFT_OUT) if (found := load(given.where, part)) is not None}
    if not figures:
        raise SystemExit(f"there are no figures in {given.where}: make benchmark measures them; nothing was written")
    for name, sections in (("performance.md", PERFORMANCE), ("scaling.md", SCALING)):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for section, render in sections.items():
            if section in LEFT_OUT and section not in figures:
                continue
            text = between(text, section, render(figures, given.where))
        (given.to / name).write_text(text, encoding="utf-8")
    (given.to / "performance.svg").write_text(draw(figures), encoding="utf-8")
    print(f"{given.to}/performance.md, performance.svg and scaling.md, from {', '.join(figures)}")


def between(text: str, name: str, content: str) -> str:
    """``text`` with ``content`` between the markers of ``name``."""
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"there are no markers for {name}")
    return pattern.sub(lambda found: f"{found[1]}\n{content.strip()}\n\n{found[2]}", text)


if __name__ == "__main__":
    main()
