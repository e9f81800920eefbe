"""One file a method, each the wiring of views, encoders and contrast; the recipe makes MARIO of any that contrasts."""

from mario.methods.base import REGISTRY, Method, register
from mario.methods.controls import RandomInit, RawFeatures
from mario.methods.erm import ERM
from mario.methods.grace import GRACE
from mario.methods.recipe import MARIO, RELEASED, Recipe
from mario.methods.registry import find, load
from mario.methods.settings import parse_setting, setting
from mario.methods.two_view import TwoView

__all__ = [
    "ERM",
    "GRACE",
    "MARIO",
    "REGISTRY",
    "RELEASED",
    "Method",
    "RandomInit",
    "RawFeatures",
    "Recipe",
    "TwoView",
    "find",
    "load",
    "parse_setting",
    "register",
    "setting",
]
