"""The log of a run: one JSON object per line."""

import json
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.files import append_line, write_text
from mario.untrusted import open_file, parse_json


class Log:
    """Appends to ``path``, after removing entries beyond the step at which the run resumes."""

    def __init__(self, path: Path, resume_at: int = 0) -> None:
        self.path = path
        kept = []
        if path.exists():
            with open_file(path) as file:
                lines = file.read().decode(errors="replace").splitlines()
            for line in lines:
                try:
                    entry = parse_json(line, str(path), finite=False)
                except MarioError:
                    continue  # a line cut short by a kill, or damaged by a failing disk
                step = entry.get("step", 0) if isinstance(entry, dict) else None
                if isinstance(step, int) and step <= resume_at:
                    kept.append(line)
        write_text(path, "".join(f"{line}\n" for line in kept))

    def write(self, entry: dict[str, Any]) -> None:
        append_line(self.path, json.dumps(entry))
