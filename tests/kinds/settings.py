"""Bad values of every setting, in Python and as text."""

import dataclasses
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any, get_args, get_origin

import numpy as np
import torch
from torch import nn

import mario
from kinds.graphs import INF, NAN, fitted, model, sound
from kinds.kind import Kind, refused, same
from mario.encoders import GCN
from mario.lab.presets import complete_settings, parse_given, settings_of
from mario.lab.presets.settings import Evaluation
from mario.methods import REGISTRY, Method, find, register
from mario.methods.settings import parse_setting
from mario.views import DropEdges

VALUES: dict[Any, dict[str, Any]] = {
    int: {
        "a fraction": 2.5,
        "a whole float": 2.0,
        "a text": "3",
        "a bool": True,
        "NaN": NAN,
        "a list": [3],
        "a tensor": torch.tensor(3),
        "a numpy number": np.float32(3.0),
        "a class": int,
    },
    float: {
        "a text": "0.5",
        "a bool": True,
        "NaN": NAN,
        "infinity": INF,
        "a list": [0.5],
        "a tensor": torch.tensor(0.5),
        "bytes": b"0.5",
        "a complex number": 1j,
    },
    bool: {"1": 1, "a text": "true", "a list": [True], "0.0": 0.0, "a tensor": torch.tensor(True)},
    str: {"a typo": "gnc", "empty": "", "a number": 3, "bytes": b"gcn", "a list": ["gcn"], "in capitals": "GCN"},
    tuple: {"a text": "150", "a fraction": (1.5,), "a bool": (True,), "a number": 150, "None in it": (None,)},
}
TEXTS: dict[Any, tuple[str, ...]] = {
    int: ("", "x", "1.5", "1e3", "0x10", "nan", "1,2", "--1", "1 2", "9" * 5000, "true", "None"),
    float: ("", "x", "1,5", "nan", "inf", "-inf", "1e999", "0.1.2", "true", "None", "1e"),
    bool: ("", "x", "2", "-1", "on", "None", "0.0", "truefalse"),
    str: ("", "x", "GCN ", "../gcn", "3"),
    tuple: ("x", "1.5", "1;2", "nan", "1,,x", "9" * 5000),
}


def kinds() -> list[Kind]:
    return [*_values(), *_texts(), *_together(), *_parts(), *_names()]


def kind_of(field: "dataclasses.Field[Any]") -> Any:
    declared = field.type
    if isinstance(declared, UnionType):
        declared = get_args(declared)[0]
    return get_origin(declared) or declared


def optional(field: "dataclasses.Field[Any]") -> bool:
    return isinstance(field.type, UnionType) and type(None) in get_args(field.type)


def own_fields() -> Iterator[tuple[type[Method], "dataclasses.Field[Any]"]]:
    """Every setting once: with the class that declares it first."""
    seen: set[tuple[str, str]] = set()
    for cls in REGISTRY.values():
        for field in cls.fields():
            declared = next(base for base in cls.__mro__ if field.name in vars(base).get("__annotations__", {}))
            if (declared.__name__, field.name) not in seen and kind_of(field) in VALUES:
                seen.add((declared.__name__, field.name))
                yield cls, field


def _values() -> Iterator[Kind]:
    for cls, field in own_fields():
        values: dict[str, Any] = dict(VALUES[kind_of(field)])
        if not optional(field):
            values["None"] = None
        if field.metadata.get("check") is not None:
            continue
        for end, step in (("low", -1), ("high", 1)):
            if field.metadata.get(end) is not None:
                values[f"beyond its {end} end"] = type(field.default)(field.metadata[end] + step)
        for fault, value in values.items():
            if value in ("GCN", "gnc", "") and not field.metadata.get("choices"):
                continue
            name = field.name
            yield refused(f"{fault} for {cls.__name__}({name})", lambda cls=cls, n=name, v=value: cls(**{n: v}))
        for fault, value in list(values.items())[:2]:
            name = field.name
            yield refused(
                f"{fault} for set_params({name}) of {cls.__name__}",
                lambda cls=cls, n=name, v=value: cls().set_params(**{n: v}),
            )
            yield refused(
                f"{fault} assigned to {name} of {cls.__name__}",
                lambda cls=cls, n=name, v=value: setattr(cls(), n, v),
            )
    for field in dataclasses.fields(Evaluation):
        for fault, value in VALUES[kind_of(field)].items():
            yield refused(f"{fault} for Evaluation({field.name})", lambda n=field.name, v=value: Evaluation(**{n: v}))


def _texts() -> Iterator[Kind]:
    grace = {field.name: field for field in find("grace").fields()}
    chosen = {int: "epochs", float: "lr", bool: "batch_norm", str: "encoder", tuple: "milestones"}
    for declared, texts in TEXTS.items():
        name = chosen[declared]
        for text in texts:
            yield refused(
                f"the text {text[:20]!r} for {name}",
                lambda n=name, t=text: find("grace")(**{n: parse_setting(grace[n], t)}),
            )
            yield refused(
                f"the text {text[:20]!r} for {name} of a run",
                lambda n=name, t=text: complete_settings("grace", "good-cbas", "color", "concept", {n: t}),
            )
    yield same("digits of another script", lambda: parse_setting(grace["epochs"], "١٢"), lambda: 12)
    yield same("a plus sign", lambda: parse_setting(grace["epochs"], "+3"), lambda: 3)
    yield same("spaces around a number", lambda: parse_setting(grace["lr"], " 0.5 "), lambda: 0.5)
    yield refused("a part of Python as text", lambda: parse_setting(grace["views"], "x"))


def _together() -> Iterator[Kind]:
    huge = {"hidden_channels": 10**9, "num_layers": 10**6}
    for name, value in huge.items():
        for method in ("RandomInit", "GRACE", "MARIO", "ERM", "GAE", "VGAE", "DGI", "MVGRL", "BGRL"):
            given = {name: value}
            yield refused(f"a huge {name} of {method}", lambda m=method, g=given: model(m, **g).fit(sound()))
    sizes = {"hidden_channels": 10**30, "epochs": 10**30, "roots": 10**30}
    for name, value in sizes.items():
        given = {name: value}
        yield refused(f"{name} of 10**30", lambda g=given: model("GRACE", sampling="random_walk", **g).fit(sound()))
    yield refused("a learning rate that diverges", lambda: model("GRACE", lr=1e38, epochs=20).fit(sound()))
    yield refused("an unknown setting", lambda: mario.GRACE.from_settings({"hiden": 3}))
    yield refused("an unknown setting of set_params", lambda: mario.GRACE().set_params(hiden=3))
    yield refused("an unknown setting of a run", lambda: parse_given({"hiden": "3"}, settings_of("grace"), "grace"))
    yield refused("settings that are None", lambda: mario.GRACE.from_settings(None))
    yield refused("settings that are a list", lambda: mario.GRACE.from_settings([("lr", 1.0)]))
    yield refused("a setting whose name is a number", lambda: mario.GRACE.from_settings({3: 4}))

    def kept() -> object:
        model = mario.GRACE(lr=0.5)
        try:
            model.set_params(lr=0.1, epochs="x")
        except mario.MarioError:
            return model.lr
        return None

    yield same("one bad setting of two", kept, lambda: 0.5)


class _Wide(nn.Module):
    def forward(self, x: Any, edge_index: Any) -> Any:
        return x.new_ones(3, 2)


class _Says(nn.Module):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.value(x) if callable(self.value) else self.value


class _Raises(nn.Module):
    def forward(self, x: Any, edge_index: Any) -> Any:
        raise ZeroDivisionError("in the user's own encoder")


def _parts() -> Iterator[Kind]:
    encoders: dict[str, Callable[[], Any]] = {
        "the class GCN": lambda: GCN,
        "a function": lambda: lambda x, edge_index: x,
        "a module that wants more": lambda: nn.Bilinear(3, 3, 2),
        "a module of another width": lambda: GCN(7, hidden_channels=2),
        "a module that returns None": lambda: _Says(None),
        "a module that returns a list": lambda: _Says([1.0]),
        "a module that returns fewer rows": lambda: _Says(lambda x: x[:-1] * 1.0),
        "a module that returns a vector": lambda: _Says(lambda x: x.sum(1)),
        "a module that returns whole numbers": lambda: _Says(lambda x: x.long()),
        "a module that returns NaN": lambda: _Says(lambda x: x * NAN),
    }
    for fault, made in encoders.items():
        for name in ("RandomInit", "GRACE", "MARIO"):
            yield refused(
                f"{fault} as the encoder of {name}",
                lambda made=made, name=name: getattr(mario, name)(
                    encoder=made(), epochs=1, steps_per_epoch=1, sampling="full"
                ).fit_transform(sound()),
            )
    views: dict[str, Callable[[], Any]] = {
        "one view": lambda: DropEdges(0.5),
        "three views": lambda: (DropEdges(0.5),) * 3,
        "no views": lambda: (),
        "classes of views": lambda: (DropEdges, DropEdges),
        "texts": lambda: ("drop", "mask"),
        "a view that returns None": lambda: (DropEdges(0.5), lambda data: None),
        "a view that returns a tensor": lambda: (DropEdges(0.5), lambda data: data.x),
    }
    for fault, made in views.items():
        for name in ("GRACE", "MARIO", "BGRL"):
            yield refused(
                f"{fault} as the views of {name}", lambda made=made, n=name: model(n, views=made()).fit(sound())
            )
    for fault, made in {"a text": lambda: "mlp", "a class": lambda: nn.Linear, "a number": lambda: 3}.items():
        yield refused(f"{fault} as a projector", lambda made=made: model("GRACE", projector=made()).fit(sound()))
    yield refused("a projector of another width", lambda: model("GRACE", projector=nn.Linear(9, 2)).fit(sound()))
    yield refused("settings with a module as text", lambda: model(encoder=GCN(3)).settings())


def _names() -> Iterator[Kind]:
    names = {"a typo": "grcae", "empty": "", "None": None, "a number": 3, "two plus": "grace+mario+mario"}
    names |= {"no host": "+mario", "a host without views": "erm+mario", "a class": mario.GRACE, "a list": ["grace"]}
    for fault, name in names.items():
        yield refused(f"{fault} as a method", lambda n=name: find(n))
    yield refused("a class that is no method", lambda: register("mine")(dict))
    yield refused("a name that is taken", lambda: register("grace")(type("GRACE", (mario.ERM,), {})))
    yield refused("a name that is no text", lambda: register(3)(type("Mine", (mario.ERM,), {})))
    yield same("grace+mario", lambda: find("grace+mario"), lambda: find("mario"))
    yield refused("a model that is not fitted", lambda: model().transform(sound()))
    yield refused("a model that is not fitted, saved", lambda: model().save("a.safetensors"))
    yield refused("an unknown name of mario", lambda: _attribute("GRACIE"))

    def broken() -> object:
        made = model().fit(sound())
        with torch.no_grad():
            next(made.parameters()).fill_(NAN)
        return made.transform(sound())

    yield refused("weights that are NaN", broken)
    yield same(
        "settings changed after fit",
        lambda: fitted(hidden_channels=4).set_params(hidden_channels=9).transform(sound()),
        lambda: model(hidden_channels=4).fit_transform(sound()),
    )


def _attribute(name: str) -> object:
    try:
        return getattr(mario, name)
    except AttributeError as error:
        raise mario.MarioError(str(error)) from None  # what Python itself asks of an attribute that is not there
