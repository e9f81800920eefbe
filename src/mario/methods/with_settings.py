"""Settings that are checked, read, changed, copied and shown as those of a scikit-learn estimator."""

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Self

from mario.errors import MarioError
from mario.methods.parts import described, is_object
from mario.methods.settings import check_value

if TYPE_CHECKING:
    from sklearn.utils import Tags


class WithSettings:
    """A dataclass whose fields are settings. Assigning a value that is not allowed raises a :class:`MarioError`.

    Whatever ``fit`` learns has a name that ends with an underscore and is no setting.
    """

    name: ClassVar[str] = ""
    supervised: ClassVar[bool] = False

    def check_together(self) -> None:
        """Raise a :class:`MarioError` if settings that are allowed by themselves do not go together."""

    def __setattr__(self, name: str, value: Any) -> None:
        field = _fields(type(self)).get(name)
        if field is None:
            super().__setattr__(name, value)
            return
        # Into the dictionary itself: nn.Module would take an encoder that is a setting for a part of the model.
        own, value = vars(self), check_value(field, value)
        before, own[name] = own.get(name, value), value
        if own.keys() >= _fields(type(self)).keys():  # else the constructor is at work
            try:
                self.check_together()
            except MarioError:
                own[name] = before
                raise

    @classmethod
    def fields(cls) -> tuple["dataclasses.Field[Any]", ...]:
        """The settings that this method has."""
        return tuple(_fields(cls).values())

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        """The method with ``settings``; an unknown name is an error that lists the known ones."""
        known = _fields(cls)
        if not isinstance(settings, dict) or not all(isinstance(name, str) for name in settings):
            raise MarioError(f"settings must be a dict of values by name, got {settings!r}")
        unknown = sorted(settings.keys() - known.keys())
        if unknown:
            raise MarioError(
                f"{cls.name} has no setting {', '.join(map(repr, unknown))}; it has {', '.join(sorted(known))}"
            )
        return cls(**settings)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings by name. ``deep`` is there for scikit-learn; settings have no settings of their own."""
        return {name: getattr(self, name) for name in _fields(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Change settings. If one is unknown or not allowed, none is changed. What was fitted stays until ``fit``."""
        checked = self.from_settings({**self.get_params(), **params})
        vars(self).update({name: getattr(checked, name) for name in params})
        return self

    def settings(self) -> dict[str, Any]:
        """All settings as plain values, such as a file or the name of a run can hold.

        Parts that are left to the method (``views=None``) are not among them. A module or a transform is an error.
        """
        params = self.get_params()
        for name, value in params.items():
            if is_object(value):
                raise MarioError(
                    f"{name} is {described(value)}, an object of Python, which the settings of a run cannot hold: "
                    f"use a name, or fit the method in Python"
                )
        return {name: value for name, value in params.items() if value is not None}

    def __repr__(self) -> str:
        defaults = {name: field.default for name, field in _fields(type(self)).items()}
        changed = {k: v for k, v in self.get_params().items() if v is not defaults[k] and v != defaults[k]}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "in_channels_")

    def __sklearn_tags__(self) -> "Tags":
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        # Labels are a part of the graph: fit takes no y.
        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(two_d_array=False, sparse=True),
        )


def _fields(cls: type) -> dict[str, "dataclasses.Field[Any]"]:
    return {field.name: field for field in dataclasses.fields(cls)}


def documented(cls: type[WithSettings], description: str) -> str:
    """A docstring for ``cls``: its ``description`` with all settings before the example."""
    lines = []
    for field in cls.fields():
        choices = field.metadata.get("choices")
        among = f"; one of {', '.join(choices)}" if choices else ""
        lines.append(f"    {field.name}: {field.metadata.get('help', '')} (default {field.default!r}{among}).")
    text, example, rest = inspect.cleandoc(description).partition("Example:\n")
    return "\n".join([text.rstrip(), "", "Args:", *lines, "", example + rest]).rstrip() + "\n"
