"""Write the figures into the documentation: python -m benchmarks.write [--from benchmarks/out] [--to docs]

Replaces the text between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` in docs/performance.md and docs/scaling.md
with sections generated from the JSON files; the text around them is written by hand. Parts without figures are reported
as not measured, except those that `make benchmark` skips: they are left unchanged.
"""

import argparse
import re
from pathlib import Path

from benchmarks.measuring import OUT, PARTS, ROOT, load
from benchmarks.performance_page import PERFORMANCE
from benchmarks.picture import draw
from benchmarks.scaling_page import SCALING

SKIPPED = ("less_than_exact", "same_run")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--from", dest="where", type=Path, default=OUT)
    options.add_argument("--to", type=Path, default=ROOT / "docs")
    given = options.parse_args()
    figures = {part: found for part in (*PARTS, *SKIPPED) if (found := load(given.where, part)) is not None}
    if not figures:
        raise SystemExit(f"no figures in {given.where}: run `make benchmark` first; nothing was written")
    for name, sections in (("performance.md", PERFORMANCE), ("scaling.md", SCALING)):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for section, render in sections.items():
            if section in SKIPPED and section not in figures:
                continue
            text = between(text, section, render(figures, given.where))
        (given.to / name).write_text(text, encoding="utf-8")
    (given.to / "performance.svg").write_text(draw(figures), encoding="utf-8")
    print(f"wrote {given.to}/performance.md, performance.svg and scaling.md from {', '.join(figures)}")


def between(text: str, name: str, content: str) -> str:
    """Replace the text between the markers of ``name`` with ``content``."""
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"no markers for {name}")
    return pattern.sub(lambda found: f"{found[1]}\n{content.strip()}\n\n{found[2]}", text)


if __name__ == "__main__":
    main()
