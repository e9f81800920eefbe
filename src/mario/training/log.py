"""The log of a run: one JSON object per line."""

import json
from pathlib import Path
from typing import Any

from mario.errors import RunFailedError
from mario.files import write_text


class Log:
    """Appends to ``path``, after removing entries beyond the step at which the run resumes."""

    def __init__(self, path: Path, resume_at: int = 0) -> None:
        self.path = path
        kept = []
        if path.exists():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:
                    continue  # a line cut short by a kill, or damaged by a failing disk
                if isinstance(entry, dict) and entry.get("step", 0) <= resume_at:
                    kept.append(line)
        write_text(path, "".join(f"{line}\n" for line in kept))

    def write(self, entry: dict[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise RunFailedError(f"cannot write {self.path}: {error.strerror}") from error
