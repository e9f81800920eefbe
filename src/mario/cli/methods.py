"""``mario methods``."""

import json
from typing import Any

from rich.console import Console
from rich.table import Table

from mario.methods import REGISTRY


def list_methods(as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "supervised": cls.supervised,
            "trains": cls.trains,
            "recipe_host": bool(getattr(cls, "host", False)),
            "what": (cls.__doc__ or "").strip().splitlines()[0],
        }
        for name, cls in sorted(REGISTRY.items())
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table("method", "labels", "recipe", "what")
    for row in rows:
        host = f"{row['name']}+mario" if row["recipe_host"] else ""
        table.add_row(row["name"], "yes" if row["supervised"] else "no", host, row["what"])
    Console().print(table)
