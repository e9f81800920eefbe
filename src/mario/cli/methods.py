"""``mario methods``."""

import dataclasses
import json
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from mario.lab.presets import Evaluation
from mario.methods import REGISTRY, find


def list_methods(as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "supervised": cls.supervised,
            "trains": cls.trains,
            "levels": list(cls.levels),
            "recipe_host": cls.host,
            "what": (cls.__doc__ or "").strip().splitlines()[0],
        }
        for name, cls in sorted(REGISTRY.items())
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(Column("method", no_wrap=True), "labels", "embeds", Column("recipe", no_wrap=True), "what")
    for row in rows:
        host = f"{row['name']}+mario" if row["recipe_host"] else ""
        labels = "yes" if row["supervised"] else "no"
        table.add_row(row["name"], labels, ", ".join(f"{level}s" for level in row["levels"]), host, row["what"])
    Console().print(table)


def show_settings(method: str, as_json: bool) -> None:
    """Every setting of ``method``: what ``--set`` takes."""
    rows: list[dict[str, Any]] = [
        {
            "name": field.name,
            "default": field.default,
            "search": field.metadata.get("search"),
            "choices": field.metadata.get("choices"),
            "what": field.metadata["help"],
        }
        for field in (*find(method).fields(), *dataclasses.fields(Evaluation))
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(Column("setting", no_wrap=True), "default", "choices", "searched by tune", "what")
    for row in rows:
        lists = (", ".join(map(str, row[key] or [])) for key in ("choices", "search"))
        table.add_row(row["name"], str(row["default"]), *lists, row["what"])
    Console().print(table)
    Console().print("mario run takes the settings of the dataset before these defaults; result.json has them all")
