"""``mario methods``: all methods, or all settings of one."""

import json
from typing import Annotated, Any

import typer

from mario.cli.listing import print_listing, say
from mario.cli.options import AsJson, complete_method
from mario.cli.starting import starting


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
    from rich.table import Column

    with starting("importing the methods, and torch with them"):
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
    columns = [Column(name, no_wrap=True) for name in ("method", "labels", "recipe")]
    cells = [
        [
            row["name"],
            "yes" if row["supervised"] else "no",
            f"{row['name']}+mario" if row["recipe_host"] else "",
            ", ".join(f"{level}s" for level in row["levels"]),
            row["what"],
        ]
        for row in rows
    ]
    print_listing(
        [*columns, Column("embeds"), Column("what", min_width=30)], cells, spare=("embeds", "recipe", "labels")
    )


def show_settings(method: str, as_json: bool) -> None:
    """Every setting of ``method``: the names that ``--set`` takes."""
    from rich.table import Column

    with starting(f"importing {method}, and torch with it"):
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
    cells = [[row["name"], str(row["default"]), _about(row)] for row in rows]
    columns = [Column("setting", no_wrap=True), Column("default"), Column("what", min_width=20)]
    print_listing(columns, cells)
    say("`mario run` prefers the preset of the dataset to these defaults; result.json has all settings.")


def _about(row: dict[str, Any]) -> str:
    """What a setting is, the names that it takes, and the values that are tried."""
    parts = [row["what"]]
    if row["choices"]:
        parts.append(f"one of {', '.join(map(str, row['choices']))}")
    if row["search"]:
        parts.append(f"tune tries {', '.join(map(str, row['search']))}")
    return "; ".join(parts)
