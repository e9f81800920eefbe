"""Methods by name."""

from mario.errors import MarioError, nearest
from mario.methods.base import REGISTRY, Method, hosts
from mario.methods.recipe import with_recipe


def find(name: str) -> type[Method]:
    """The class of a method by its name: ``grace``, ``mario``, or a host with the recipe, ``costa+mario``."""
    base, plus, recipe = name.partition("+")
    if base in REGISTRY and not plus:
        return REGISTRY[base]
    if base in REGISTRY and recipe == "mario":
        return with_recipe(REGISTRY[base])
    meant = nearest(name, REGISTRY)
    over = ", ".join(hosts())
    raise MarioError(
        f"there is no method '{name}'; there are {', '.join(sorted(REGISTRY))}, and HOST+mario over {over}"
        f"{meant and f'; {meant}'}"
    )


def systems(level: str) -> tuple[str, ...]:
    """Every registered method that embeds nodes or graphs, then every host with the recipe over it."""
    plain = [name for name, cls in REGISTRY.items() if level in cls.levels]
    return (*plain, *(f"{name}+mario" for name in hosts() if name in plain and name != "grace"))  # that is mario
