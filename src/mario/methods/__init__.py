"""One file per method, each combining views, encoders and a contrast; the recipe can be laid over any two-view method.

Every method that a module of this package registers is here by the name of its class, ``mario.methods.GRACE``. Methods
of other packages are found if their module is an entry point of the group ``mario.methods``.
"""

from typing import Any

from mario.methods.base import Method
from mario.methods.recipe import MARIO as MARIO, RELEASED, STRONG, Recipe
from mario.methods.registry import REGISTRY, find, register
from mario.methods.saving import load
from mario.methods.settings import parse_setting, setting
from mario.methods.steady import Decision, Steady, WithSteady, seen_by_channels, steady_of
from mario.methods.two_view import DropAndMask, Projecting, Side, TwoView, embeddings
from mario.plugins import discover

discover(__name__, __path__, __name__)

__all__ = [
    "REGISTRY",
    "RELEASED",
    "STRONG",
    "Decision",
    "DropAndMask",
    "Method",
    "Projecting",
    "Recipe",
    "Side",
    "Steady",
    "TwoView",
    "WithSteady",
    "embeddings",
    "find",
    "load",
    "parse_setting",
    "register",
    "seen_by_channels",
    "setting",
    "steady_of",
    *(cls.__name__ for cls in REGISTRY.values()),
]


def __getattr__(name: str) -> Any:
    for cls in REGISTRY.values():  # not the list above: more may be registered since
        if cls.__name__ == name:
            return cls
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
