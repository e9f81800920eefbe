"""A verb that takes settings: an unknown option that is the name of a setting is answered with ``--set``."""

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand


class Verb(TyperCommand):
    """A command with ``--set``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse ``args``; ``--epochs 3`` is an error that names ``--set epochs=3``."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", None)
            if isinstance(option, str) and (advice := _advice(option, given)):
                error.message = f"No such option: {option}. {advice}"  # type: ignore[attr-defined]
                error.possibilities = None  # type: ignore[attr-defined]
            raise


def _advice(option: str, given: Sequence[str]) -> str:
    from mario.cli.names import settings

    name = option.lstrip("-").replace("-", "_")
    if name not in settings():
        return ""
    value = "VALUE"
    for place, word in enumerate(given):
        if word.startswith(f"{option}="):
            value = word.partition("=")[2]
        elif word == option and place + 1 < len(given) and not given[place + 1].startswith("--"):
            value = given[place + 1]
    return f"{name} is a setting: use --set {name}={value}"
