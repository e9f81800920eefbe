"""Names of methods, encoders and settings without torch: read from the source, for completion and for advice."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

_CLASS = re.compile(
    r"(?:^@register\(\"([^\"]+)\"\)\n(?:@.*\n)*)?^class (\w+)\(([^)]*)\):\n((?:[ \t].*\n|\n)*)", re.MULTILINE
)


@cache
def methods() -> dict[str, tuple[str, ...]]:
    """Every registered method of this package, and what can be laid over it: ``mario``, ``steady``.

    Example:
        >>> methods()["grace"], methods()["erm"]
        (('mario', 'steady'), ())
    """
    classes: dict[str, tuple[list[str], str]] = {}
    registered: dict[str, str] = {}
    for text in _sources("methods"):
        for name, cls, bases, body in _CLASS.findall(text):
            classes[cls] = [base.strip() for base in bases.split(",")], body
            if name:
                registered[name] = cls

    def order(cls: str) -> list[str]:
        """As Python looks names up: a class comes after all classes that inherit from it."""
        found = [cls, *(one for base in classes[cls][0] if base in classes for one in order(base))]
        return [one for place, one in enumerate(found) if one not in found[place + 1 :]]

    def fact(cls: str, name: str) -> bool:
        said = (
            re.search(rf"^    {name}: ClassVar\[bool\] = (\w+)", classes[one][1], re.MULTILINE) for one in order(cls)
        )
        return next((one[1] == "True" for one in said if one), False)

    return {
        name: (("mario",) if fact(cls, "host") else ()) + (() if fact(cls, "supervised") else ("steady",))
        for name, cls in sorted(registered.items())
    }


def encoders() -> list[str]:
    """The names that ``--encoder`` takes.

    Example:
        >>> encoders()
        ['gcn', 'sage', 'gat', 'gin']
    """
    found = re.search(r"^ENCODERS\b.*=\s*\{([^}]*)\}", "\n".join(_sources("encoders")), re.MULTILINE)
    return re.findall(r"\"(\w+)\":", found[1]) if found else []


def settings() -> frozenset[str]:
    """The names that ``--set`` takes, of any method.

    Example:
        >>> {"epochs", "hidden_channels", "probe_epochs"} <= settings()
        True
    """
    texts = [*_sources("methods"), *_sources("lab/presets")]
    return frozenset(re.findall(r"^    (\w+): .*= setting\(", "\n".join(texts), re.MULTILINE))


def _sources(room: str) -> Iterator[str]:
    folder = files("mario").joinpath(*room.split("/"))
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_file() and entry.name.endswith(".py"):
            yield entry.read_text(encoding="utf-8")
