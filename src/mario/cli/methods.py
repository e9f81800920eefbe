"""``mario methods``: all methods, or all settings of one."""

import json
from typing import Annotated, Any

import typer

from mario.cli.options import AsJson, complete_method


def methods(
    name: Annotated[
        str | None, typer.Argument(help="Show the settings of this method.", autocompletion=complete_method)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List all methods, with the hosts of the recipe marked, or all settings of one."""
    if name is None:
        list_methods(as_json)
    else:
        show_settings(name, as_json)


def list_methods(as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Column, Table

    from mario.methods import REGISTRY

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
    """Every setting of ``method``: the names that ``--set`` takes."""
    from rich.console import Console
    from rich.table import Column, Table

    from mario.lab.presets import settings_of

    rows: list[dict[str, Any]] = [
        {
            "name": field.name,
            "default": field.default,
            "search": field.metadata.get("search"),
            "choices": list(choices) if (choices := field.metadata.get("choices")) is not None else None,
            "what": field.metadata["help"],
        }
        for field in settings_of(method).values()
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(Column("setting", no_wrap=True), "default", "choices", "searched by tune", "what")
    for row in rows:
        lists = (", ".join(map(str, row[key] or [])) for key in ("choices", "search"))
        table.add_row(row["name"], str(row["default"]), *lists, row["what"])
    Console().print(table)
    Console().print("mario run prefers the preset of the dataset to these defaults; result.json has all settings")
