"""The log of a run: one JSON object a line."""

import json
from pathlib import Path
from typing import Any

from mario.files import write_whole


class Log:
    """Appends to ``path``; what was logged after the step at which a run resumes is dropped first."""

    def __init__(self, path: Path, resume_at: int = 0) -> None:
        self.path = path
        kept = []
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:
                    continue  # the line that a kill cut short
                if entry.get("step", 0) <= resume_at:
                    kept.append(line)
        text = "".join(f"{line}\n" for line in kept)
        write_whole(path, lambda name: Path(name).write_text(text, encoding="utf-8") and None)

    def write(self, entry: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
