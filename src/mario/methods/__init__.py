"""One file a method, each the wiring of views, encoders and contrast; the recipe makes MARIO of any that contrasts.

Whatever a module of this package registers is found here by its class's name, ``mario.methods.GRACE``. Methods of other
packages are found too, if they name the module that registers them as an entry point of the group ``mario.methods``.
"""

import warnings
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any

from mario.methods.base import REGISTRY, Method, register
from mario.methods.recipe import MARIO as MARIO, RELEASED, Recipe
from mario.methods.registry import find, load
from mario.methods.settings import parse_setting, setting
from mario.methods.two_view import DropAndMask, Side, TwoView, embeddings

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
for _point in entry_points(group=__name__):
    try:
        _point.load()
    except Exception as error:  # one broken plug-in must not take all methods with it
        warnings.warn(f"methods of {_point.value} are left out: {error}", UserWarning, stacklevel=2)

__all__ = [
    "REGISTRY",
    "RELEASED",
    "DropAndMask",
    "Method",
    "Recipe",
    "Side",
    "TwoView",
    "embeddings",
    "find",
    "load",
    "parse_setting",
    "register",
    "setting",
    *(cls.__name__ for cls in REGISTRY.values()),
]


def __getattr__(name: str) -> Any:
    for cls in REGISTRY.values():  # not the list above: others may have registered theirs since
        if cls.__name__ == name:
            return cls
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
