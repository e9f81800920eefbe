"""Any value of any setting is refused with one MarioError, or is in its range; huge ones end no process."""

import dataclasses
import math
import warnings
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import numpy as np
import torch
from hypothesis import assume, example, strategies as st
from torch import nn

import mario
from fuzz.apart import apart
from fuzz.targets import attempt, fuzz
from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.presets.settings import Evaluation
from mario.lab.spec import RunSpec
from mario.methods import REGISTRY, find
from mario.methods.registry import hosts
from methods.tiny import tiny_graph
from methods.tiny_graphs import tiny_graph_set

METHODS = sorted({*REGISTRY, *(f"{name}+mario" for name in hosts())})
FIELDS = sorted({(name, field.name) for name in METHODS for field in find(name).fields()})
HUGE = (2**31, 10**8, 10**9, 10**12, 2**62, 2**63, 10**30, 10**400)

numbers = st.one_of(
    st.integers(-3, 10),
    st.integers(),
    st.sampled_from(HUGE).flatmap(lambda n: st.sampled_from((n, -n))),
    st.floats(),
    st.sampled_from((0.0, 0.5, 1.0, 1e-300, 1e300, 5e-324)),
)
words = st.one_of(
    st.sampled_from(
        ("gcn", "gat", "sage", "gin", "full", "linear", "mean", "info_nce", "steps", "cosine", "auto", "", "1")
    ),
    st.text(max_size=20),
)
values: st.SearchStrategy[Any] = st.one_of(
    numbers,
    words,
    st.none(),
    st.booleans(),
    st.lists(st.one_of(numbers, st.booleans(), words), max_size=3),
    st.lists(numbers, max_size=3).map(tuple),
    st.dictionaries(words, numbers, max_size=2),
    st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=2), max_leaves=4),
    st.sampled_from((np.int64(3), np.float64(0.5), np.bool_(True), np.ones(2), b"x", 1j, {1}, range(3), object())),
    st.sampled_from((torch.tensor(3), torch.ones(2), nn.Linear(2, 2), nn.Linear, int, "x" * 10_000)),
)


def in_range(field: "dataclasses.Field[Any]", value: Any) -> bool:
    """Whether ``value`` is of the declared type, finite, within the bounds and one of the choices."""
    kinds = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
    if NoneType in kinds and value is None:
        return True
    if nn.Module in kinds and isinstance(value, nn.Module):
        return True
    if field.metadata.get("check"):
        return value is None
    kind = get_origin(kinds[0]) or kinds[0]
    facts = field.metadata
    sound = isinstance(value, kind) and (kind is bool) == isinstance(value, bool)
    sound = sound and (kind is not float or math.isfinite(value))
    sound = sound and (kind is not tuple or all(type(part) is int for part in value))
    sound = sound and (not facts.get("choices") or value in list(facts["choices"]))
    sound = sound and (facts.get("low") is None or value >= facts["low"])
    return bool(sound and (facts.get("high") is None or value <= facts["high"]))


@fuzz(examples=200, which=st.sampled_from(FIELDS), value=values)
@example(which=("grace", "lr"), value=10**400)
@example(which=("swav", "views"), value="x" * 10_000)
def test_three_ways_to_set_a_value_agree(which: tuple[str, str], value: Any) -> None:
    method, name = which
    cls = find(method)
    field = next(field for field in cls.fields() if field.name == name)
    by_constructor = attempt(lambda: cls(**{name: value}))
    one, other = cls(), cls()
    before = getattr(one, name)
    by_params = attempt(lambda: one.set_params(**{name: value}))
    by_assignment = attempt(lambda: setattr(other, name, value))
    refused = isinstance(by_constructor, MarioError)
    assert refused == isinstance(by_params, MarioError) == isinstance(by_assignment, MarioError)
    if refused:
        assert getattr(one, name) is before or getattr(one, name) == before
        assert getattr(other, name) is before or getattr(other, name) == before
        return
    assert in_range(field, getattr(by_constructor, name))
    for model in (one, other):
        kept = getattr(model, name)
        assert kept is getattr(by_constructor, name) or kept == getattr(by_constructor, name)
    repr(one)


texts = st.one_of(numbers.map(str), words, st.lists(numbers.map(str), max_size=3).map(",".join), st.text(max_size=8))


@fuzz(
    examples=100,
    which=st.sampled_from([*FIELDS, *(("grace", field.name) for field in dataclasses.fields(Evaluation))]),
    text=texts,
)
def test_a_text_of_the_command_line(which: tuple[str, str], text: str) -> None:
    method, name = which
    cls = find(method)
    assume("node" in cls.levels)
    spec = attempt(lambda: RunSpec.plan(Case.find("good-cbas"), method, given={name: text}))
    if isinstance(spec, MarioError):
        return
    fields = {field.name: field for field in (*cls.fields(), *dataclasses.fields(Evaluation))}
    value = spec.settings.get(name)
    assert in_range(fields[name], tuple(value) if isinstance(value, list) else value)
    assert RunSpec.from_dict(spec.to_dict()).digest == spec.digest
    assert len(spec.digest) == 16


@fuzz(examples=30, name=st.text(max_size=12), value=values)
def test_an_unknown_name_is_refused(name: str, value: Any) -> None:
    assume(name not in {field.name for field in mario.GRACE.fields()})
    assert isinstance(attempt(lambda: mario.GRACE().set_params(**{name: value})), MarioError)
    assert isinstance(attempt(lambda: mario.GRACE.from_settings({name: value})), MarioError)


QUICK = {"epochs": 1, "steps_per_epoch": 1, "hidden_channels": 4, "num_layers": 2, "roots": 4}
LASTING = ("epochs", "steps_per_epoch", "patience", "warmup")
"""Their number is how long training takes, which may be long."""


def fit(method: str, settings: dict[str, Any]) -> None:
    cls = find(method)
    graph = tiny_graph(nodes=20) if "node" in cls.levels else tiny_graph_set(graphs=6)
    model = cls(**{**QUICK, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(graph).transform(graph)


def settings_of(name: str) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """A method, one or two of whose settings are as large, or as small, as they may be or larger."""
    fields = [field for field in find(name).fields() if field.name not in LASTING and field.name != "compiled"]
    return st.lists(st.sampled_from(fields), min_size=1, max_size=2, unique_by=lambda field: field.name).flatmap(
        lambda chosen: st.tuples(
            st.just(name), st.fixed_dictionaries({field.name: extremes(field) for field in chosen})
        )
    )


def extremes(field: "dataclasses.Field[Any]") -> st.SearchStrategy[Any]:
    facts, kinds = field.metadata, get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
    if facts.get("choices"):
        return st.sampled_from(list(facts["choices"]))
    if kinds[0] is bool:
        return st.booleans()
    ends = [end for end in (facts.get("low"), facts.get("high")) if end is not None]
    if kinds[0] is int:
        return st.sampled_from((*ends, 1, 2, 3, 100, 10**6, *HUGE))
    if kinds[0] is float:
        return st.sampled_from((*ends, 1e-6, 0.5, 1.0, 1e6, 1e30, 1e300))
    if get_origin(kinds[0]) is tuple and not facts.get("check"):
        return st.sampled_from(((), (0,), (-5, 10**30), (1, 1, 1)))
    return st.none()


@fuzz(examples=8, seconds=60, given=st.sampled_from(METHODS).flatmap(settings_of))
@example(given=("grace", {"hidden_channels": 10**8, "num_layers": 1}))
@example(given=("costa", {"ratio": 1e6}))
@example(given=("mario", {"epsilon": 1e300}))
def test_a_model_with_extreme_settings_is_refused_or_trained(given: tuple[str, dict[str, Any]]) -> None:
    ended = apart(fit, *given, seconds=50)
    assert ended == "done" or ended.startswith("refused: "), ended
