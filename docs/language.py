"""Find marks of stilted English in the prose of the project; ``make lint`` runs it.

The list has phrases that our texts used where plain English has a usual word. Comments, docstrings and messages in code
are prose too.
"""

import re
import subprocess
import sys
from pathlib import Path

SUFFIXES = (".py", ".md", ".toml", ".j2", ".js", ".cff", ".yml")
PLACES = (
    "src",
    "docs",
    "benchmarks",
    "examples",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Makefile",
    "mkdocs.yml",
)
SKIPPED = ("docs/language.py", "docs/report/")

_THING = (
    r"(node|graph|run|step|epoch|dataset|method|edge|row|case|machine|rank|second|process|feature|domain|column|split)"
)
_COUNTED = (
    r"(row|vector|step|second|label|class|entry|line|table|seed|pair|byte|bool|int64|run|file|folder|card|entries)s?"
)
MARKS = {
    r"\b(would|will|may|might) do\b(?! (so|the|it|this|that|something|anything))": "name what to use",
    r"\btold apart\b|\btells? apart\b": "distinguish",
    r"\bcould not be had\b|\bcan be had\b": "was not available",
    r"\bat hand\b": "available, or delete it",
    r"\bwhoever\b": "anyone who, or the caller",
    r"\bthereby\b": "so",
    r"\bstands? (at|in|beside|here|there|still|on|left|right|between|above|below)\b": "is",
    rf"\b{_COUNTED} an? {_THING}\b": "per",
    r"\bless (the|that|those) (paper|best|mean|score|host|value)": "minus",
    r"\bours less\b": "minus",
    r"\b(dear|dearer|dearest)\b": "expensive",
    r"optimis|normalis|neighbour|colour|\bcentre|behaviour|licence": "American spelling",
    r"generalis|initialis|labelled\b(?!by)|catalogue": "American spelling",
}


def main() -> int:
    listed = subprocess.run(["git", "ls-files", *PLACES], capture_output=True, text=True, check=True).stdout.split("\n")
    names = [name for name in listed if name.endswith(SUFFIXES) or name == "Makefile"]
    found = 0
    for name in names:
        if not name or name.startswith(SKIPPED) or not Path(name).is_file():
            continue
        for number, line in enumerate(Path(name).read_text(encoding="utf-8").split("\n"), 1):
            for mark, instead in MARKS.items():
                if match := re.search(mark, line, re.IGNORECASE):
                    found += 1
                    print(f"{name}:{number}: '{match.group()}' (write: {instead}): {line.strip()[:120]}")
    print(f"{len(names)} files, {found} marks of stilted English")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
