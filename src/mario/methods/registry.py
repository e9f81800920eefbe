"""Methods by name."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from mario.errors import MarioError, nearest
from mario.methods.with_settings import WithSettings, documented
from mario.plugins import same_source

if TYPE_CHECKING:
    from mario.methods.base import Method

REGISTRY: dict[str, type["Method"]] = {}
M = TypeVar("M", bound="Method")


def register(name: str) -> Callable[[type[M]], type[M]]:
    """Make a method known by ``name`` to the command line, the tests and the tables."""

    if not isinstance(name, str) or not name:
        raise MarioError(f"the name of a method must be a text, got {name!r}")

    def keep(cls: type[M]) -> type[M]:
        if not isinstance(cls, type) or not issubclass(cls, WithSettings):
            raise MarioError(f"a method is a subclass of mario.methods.Method, got {cls!r}")
        if name in REGISTRY and not same_source(REGISTRY[name], cls):
            raise MarioError(f"a method is already registered as '{name}': {REGISTRY[name].__name__}")
        cls.name, cls.description = name, cls.__doc__ or ""
        cls.__doc__ = documented(cls, cls.description)
        REGISTRY[name] = cls
        return cls

    return keep


def hosts() -> list[str]:
    """The methods that the recipe can be laid over."""
    return sorted(name for name, cls in REGISTRY.items() if cls.host)


def find(name: str) -> type["Method"]:
    """The class of a method by its name: ``grace``, or a method with something laid over it, ``costa+mario+steady``.

    Example:
        >>> from mario.methods import find
        >>> find("costa+mario").__name__, find("costa+mario+steady").__name__
        ('COSTAWithRecipe', 'SteadyCOSTAWithRecipe')
    """
    from mario.methods.recipe import with_recipe  # a method itself, which this registers
    from mario.methods.steady import with_steady

    if not isinstance(name, str):
        raise MarioError(f"a method is found by its name, such as 'grace', got {name!r}")
    over = {"mario": with_recipe, "steady": with_steady}
    base, *laid = name.split("+")
    if base in REGISTRY and all(part in over for part in laid):
        cls = REGISTRY[base]
        for part in laid:
            cls = over[part](cls)
        return cls
    meant = nearest(name, REGISTRY)
    raise MarioError(
        f"there is no method '{name}'; there are {', '.join(sorted(REGISTRY))}, HOST+mario over {', '.join(hosts())}, "
        f"and METHOD+steady over any that learns without labels{meant and f'; {meant}'}"
    )


def systems(level: str) -> tuple[str, ...]:
    """Every registered method that embeds nodes or graphs, then every host with the recipe over it."""
    plain = [name for name, cls in REGISTRY.items() if level in cls.levels]
    return (*plain, *(f"{name}+mario" for name in hosts() if name in plain and name != "grace"))  # that is mario
