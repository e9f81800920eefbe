"""Options and arguments that several verbs share. This module does not import torch."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mario.cli import names
from mario.datasets import CATALOG, find
from mario.errors import MarioError

MOST_THREADS = max(64, os.cpu_count() or 1)
"""With thousands of threads, torch crashes or never begins."""

MOST_SEEDS = 10_000


def complete_method(incomplete: str) -> list[str]:
    """Names of methods; after a whole name also what can be laid over it, ``grace+mario+steady``."""
    found = []
    for name, over in names.methods().items():
        laid = [f"{name}+{part}" for part in over] + ([f"{name}+mario+steady"] if len(over) > 1 else [])
        found += [name, *(laid if incomplete.startswith(name) else [])]
    return sorted(name for name in found if name.startswith(incomplete))


def complete_dataset(incomplete: str) -> list[str]:
    return [name for name in CATALOG if name.startswith(incomplete)]


def complete_shift(ctx: typer.Context, incomplete: str) -> list[str]:
    return _of_dataset(ctx, "shifts", incomplete)


def complete_domain(ctx: typer.Context, incomplete: str) -> list[str]:
    return _of_dataset(ctx, "domains", incomplete)


def complete_setting(incomplete: str) -> list[str]:
    return [name for name in ("transductive", "inductive") if name.startswith(incomplete)]


def complete_encoder(incomplete: str) -> list[str]:
    return [name for name in names.encoders() if name.startswith(incomplete)]


def _of_dataset(ctx: typer.Context, fact: str, incomplete: str) -> list[str]:
    """The shifts or domains of the dataset on the command line, or of all datasets."""
    card = CATALOG.get(str(ctx.params.get("dataset") or ctx.params.get("graph") or ctx.params.get("name")))
    cards = CATALOG.values() if card is None else [card]
    known = dict.fromkeys(value for card in cards for value in getattr(card, fact))
    return [value for value in known if value.startswith(incomplete)]


def known_dataset(ctx: typer.Context, name: str) -> str:
    """``name``, or the error about it at once: no verb has imported torch yet."""
    if not ctx.resilient_parsing:
        find(name)
    return name


Dataset = Annotated[
    str,
    typer.Argument(
        help="Dataset: see `mario data list`, or a folder with a graph.toml.",
        autocompletion=complete_dataset,
        callback=known_dataset,
    ),
]
Shift = Annotated[
    str | None,
    typer.Option(
        help="covariate, concept, no_shift or label: see `mario data show DATASET`.", autocompletion=complete_shift
    ),
]
Domain = Annotated[
    str | None,
    typer.Option(help="The attribute that shifts: see `mario data show DATASET`.", autocompletion=complete_domain),
]
Setting = Annotated[
    str | None,
    typer.Option(
        help="transductive, or inductive: training sees no test node. The default depends on the dataset.",
        autocompletion=complete_setting,
    ),
]
Encoder = Annotated[str | None, typer.Option(help="gcn, sage, gat or gin.", autocompletion=complete_encoder)]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Override a setting of `mario methods METHOD`; repeatable."),
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Root = Annotated[
    Path | None, typer.Option(help="Folder of raw files to search before $MARIO_DATA and the user's cache.")
]
Workers = Annotated[int, typer.Option(min=1, max=1024, help="Runs at once, one thread each.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Anonymous = Annotated[
    bool,
    typer.Option(
        "--anonymous", envvar="MARIO_ANONYMOUS", help="Leave the platform and paths out of results and pages."
    ),
]
Documents = Annotated[list[Path] | None, typer.Option(help="Markdown file whose tables are updated; repeatable.")]


def assignments(
    texts: Sequence[str] | None, option: str = "--set", example: str = "epochs=20", form: str = "NAME=VALUE"
) -> dict[str, str]:
    """Names and values from texts such as ``epochs=20``.

    Example:
        >>> assignments(["epochs=20", "lr = 0.1"])
        {'epochs': '20', 'lr': '0.1'}
    """
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise MarioError(f"{option} takes {form} such as {example}, got '{text}'")
        found[name.strip()] = value.strip()
    return found


def given_settings(texts: Sequence[str] | None, encoder: str | None) -> dict[str, str]:
    """The settings of ``--set`` and ``--encoder``."""
    return {**assignments(texts), **({"encoder": encoder} if encoder is not None else {})}


def size(option: str, text: str) -> int:
    """Bytes from a text such as ``2g``, ``500m`` or ``4GiB``.

    Example:
        >>> size("--memory", "2g"), size("--memory", "1.5 MiB")
        (2147483648, 1572864)
    """
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) *([kmgt])(?:i?b)?", text.strip().lower())
    if not found or float(found[1]) == 0:
        raise MarioError(f"{option} takes a size such as 2g or 500m, got '{text[:40]}'")
    return int(float(found[1]) * 2 ** (10 * ("kmgt".index(found[2]) + 1)))


def listed(texts: Sequence[str] | None) -> list[str]:
    """Names separated by commas, in one or more texts."""
    return [name.strip() for text in texts or () for name in text.split(",") if name.strip()]
