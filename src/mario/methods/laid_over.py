"""Classes made by laying a mixin over any method: ``costa+mario``, ``grace+steady``."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from mario.methods.base import Method
from mario.methods.with_settings import documented


def laid_over(
    mixin: type[Method],
    host: type[Method],
    *,
    name: str,
    class_name: str,
    module: str,
    fixed: Mapping[str, tuple[Any, Any, Mapping[str, Any]]] | None = None,
) -> type[Method]:
    """A class with the settings and steps of both; where they share a setting, it has the host's default.

    Args:
        mixin: A subclass of :class:`Method` with its own settings and steps, which come first.
        host: The method below it.
        name: What it is called on the command line.
        class_name: The name of the class, which pickle looks for in ``module``.
        module: The module that finds the class by this name.
        fixed: Settings that the host determines: type, default and metadata of each.
    """
    # The mixin also has the settings that all methods have: without this its defaults would hide the host's.
    shared = {field.name for field in dataclasses.fields(mixin.__mro__[1])}
    fields = {f.name: (f.type, f.default, f.metadata) for f in host.fields() if f.name in shared} | dict(fixed or {})
    body: dict[str, Any] = {
        "__doc__": host.description,
        "__module__": module,
        "__annotations__": {field: kind for field, (kind, _, _) in fields.items()},
    }
    body |= {field: dataclasses.field(default=value, metadata=facts) for field, (_, value, facts) in fields.items()}
    made: type[Method] = type(class_name, (mixin, host), body)
    dataclasses.dataclass(eq=False, repr=False, kw_only=True)(made)
    made.name, made.description = name, host.description
    made.__doc__ = documented(made, host.description)
    return made
