"""Settings: what a value may be, what a word on the command line means, and errors that name the field."""

import dataclasses
from typing import Any, Literal

import pytest

from mario.errors import MarioError
from mario.methods.settings import check_settings, parse_setting, setting


@dataclasses.dataclass(kw_only=True)
class Settings:
    width: int = setting(8, low=1, high=100, search=(8, 16), help="a whole number")
    rate: float = setting(0.5, low=0.0, high=1.0)
    loud: bool = setting(False)
    kind: str = setting("gcn", choices=("gcn", "gat"))
    steps: tuple[int, ...] = setting((150,))
    mode: Literal["fast", "slow"] = setting("fast", choices=("fast", "slow"))
    free: float = setting(0.0)

    def __post_init__(self) -> None:
        check_settings(self)


FIELDS = {field.name: field for field in dataclasses.fields(Settings)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("width", 1),
        ("width", 100),
        ("rate", 0.0),
        ("rate", 1.0),
        ("loud", True),
        ("kind", "gat"),
        ("steps", ()),
        ("steps", (1, 2)),
        ("mode", "slow"),
        ("free", -1e30),
    ],
)
def test_allowed_values_stay_as_they_are(name: str, value: Any) -> None:
    assert getattr(Settings(**{name: value}), name) == value


@pytest.mark.parametrize(
    ("name", "given", "kept"), [("rate", 1, 1.0), ("free", -3, -3.0), ("steps", [1, 2], (1, 2)), ("steps", [], ())]
)
def test_values_that_json_writes_differently_are_turned_into_what_is_declared(name: str, given: Any, kept: Any) -> None:
    value = getattr(Settings(**{name: given}), name)
    assert value == kept
    assert type(value) is type(kept)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("width", 0, "width must be at least 1, got 0"),
        ("width", 10**40, "width must be at most 9223372036854775807 in size"),
        ("rate", 10**40, r"rate must be at most 1e\+30 in size"),
        ("free", -1e300, r"free must be at most 1e\+30 in size"),
        ("steps", (1, 2**64), "steps must be at most 9223372036854775807 in size"),
        ("kind", "x" * 500, r"kind must be one of gcn, gat, got 'x+\.\.\.$"),
        ("width", 101, "width must be at most 100, got 101"),
        ("width", 1.5, "width must be a whole number, got 1.5"),
        ("width", "8", "width must be a whole number, got '8'"),
        ("width", True, "width must be a whole number, got True"),
        ("width", None, "width must be a whole number, got None"),
        ("rate", -0.1, "rate must be at least 0.0, got -0.1"),
        ("rate", 2, "rate must be at most 1.0, got 2.0"),
        ("rate", "0.5", "rate must be a number, got '0.5'"),
        ("rate", False, "rate must be a number, got False"),
        ("free", float("nan"), "free must be a finite number, got nan"),
        ("free", float("inf"), "free must be a finite number, got inf"),
        ("loud", 1, "loud must be true or false, got 1"),
        ("loud", "true", "loud must be true or false, got 'true'"),
        ("kind", "sage", "kind must be one of gcn, gat, got 'sage'"),
        ("kind", 3, "kind must be one of gcn, gat, got 3"),
        ("mode", "medium", "mode must be one of fast, slow, got 'medium'"),
        ("steps", 150, "steps must be a list of whole numbers such as 150,300, got 150"),
        ("steps", (1.5,), r"steps must be a list of whole numbers such as 150,300, got \(1.5,\)"),
        ("steps", ["a"], r"steps must be a list of whole numbers such as 150,300, got \('a',\)"),
        ("steps", (True,), r"steps must be a list of whole numbers such as 150,300, got \(True,\)"),
    ],
)
def test_values_that_are_not_allowed_are_named(name: str, value: Any, message: str) -> None:
    with pytest.raises(MarioError, match=message):
        Settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("width", "16", 16),
        ("width", "-3", -3),
        ("rate", "1e-3", 0.001),
        ("rate", "1", 1.0),
        ("kind", "gat", "gat"),
        ("mode", "slow", "slow"),
        ("loud", "true", True),
        ("loud", "Yes", True),
        ("loud", "1", True),
        ("loud", "FALSE", False),
        ("loud", "no", False),
        ("loud", "0", False),
        ("steps", "150", (150,)),
        ("steps", "150,300", (150, 300)),
        ("steps", "[150, 300]", (150, 300)),
        ("steps", "(150,)", (150,)),
        ("steps", "", ()),
    ],
)
def test_words_of_a_command_line(name: str, text: str, value: Any) -> None:
    parsed = parse_setting(FIELDS[name], text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("width", "1.5", "width=1.5: that is not a whole number"),
        ("width", "", "width=: that is not a whole number"),
        ("rate", "fast", "rate=fast: that is not a number"),
        ("loud", "maybe", "loud=maybe: that is not true or false"),
        ("steps", "1,two", "steps=1,two: that is not a list of whole numbers such as 150,300"),
        ("steps", "1.5", "steps=1.5: that is not a list of whole numbers such as 150,300"),
    ],
)
def test_words_that_mean_nothing_are_named(name: str, text: str, message: str) -> None:
    with pytest.raises(MarioError, match=message):
        parse_setting(FIELDS[name], text)


@pytest.mark.parametrize("name", list(FIELDS))
def test_what_is_written_is_read_back(name: str) -> None:
    default = getattr(Settings(), name)
    text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
    assert parse_setting(FIELDS[name], text) == default


def test_a_field_knows_its_facts() -> None:
    facts = FIELDS["width"].metadata
    assert (facts["low"], facts["high"], facts["search"], facts["help"]) == (1, 100, (8, 16), "a whole number")
    assert FIELDS["kind"].metadata["choices"] == ("gcn", "gat")
    assert FIELDS["width"].default == 8


def test_a_number_that_python_does_not_write() -> None:
    with pytest.raises(MarioError, match="loud must be true or false, got a number of thousands of digits"):
        Settings(loud=10**5000)  # type: ignore[arg-type]
    with pytest.raises(MarioError, match="width must be at most 9223372036854775807 in size"):
        Settings(width=10**5000)
