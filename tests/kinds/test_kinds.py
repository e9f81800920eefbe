"""Every kind of broken input ends in a clear error or in the right result."""

from collections import Counter

import pytest

from kinds.catalog import AREAS
from kinds.kind import CLEAR, HANDLED, OUTCOMES, Kind, command, outcome
from kinds.running import run_area, table
from mario.errors import MarioError


@pytest.mark.parametrize("area", AREAS)
def test_broken_input(area: str) -> None:
    ended = run_area(area)
    print(table({area: Counter(one.outcome for one in ended)}))
    wrong = [one for one in ended if one.outcome not in (CLEAR, HANDLED)]
    assert not wrong, "\n".join(f"{one.name}: {one.outcome}: {one.said}" for one in wrong[:20])


def test_there_are_as_many_kinds_as_were_tried_before() -> None:
    assert sum(len(kinds()) for kinds in AREAS.values()) >= 823


def refuse() -> object:
    raise MarioError("it is wrong")


def fail() -> object:
    raise KeyError("it")


def test_each_outcome_is_recognized() -> None:
    ends = {
        "clear error": Kind("", refuse),
        "handled": Kind("", lambda: 3, lambda result: result == 3),
        "raw error": Kind("", fail),
        "silently wrong": Kind("", lambda: 3, lambda result: result == 4),
        "needless error": Kind("", refuse, lambda result: True),
    }
    assert {outcome(kind)[0] for kind in ends.values()} == set(ends) == set(OUTCOMES) - {"crash", "hang"}
    for due, kind in ends.items():
        assert outcome(kind)[0] == due
    assert outcome(Kind("", lambda: 3))[0] == "silently wrong"
    assert outcome(Kind("", lambda: command("run", "no-such")))[0] == "clear error"
    assert outcome(Kind("", lambda: open("../beside", "w").close()))[0] == "silently wrong"


def test_a_crash_and_a_hang_end_one_kind_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinds.running.LIMIT", 3.0)
    assert [(one.name, one.outcome) for one in run_area("trials of the runner")] == [
        ("crashes", "crash"),
        ("is refused", CLEAR),
        ("hangs", "hang"),
        ("exits", "raw error"),
        ("is right", HANDLED),
    ]


def test_a_table_counts_all_areas() -> None:
    shown = table({"a": Counter({CLEAR: 2}), "b": Counter({HANDLED: 1, "raw error": 1})})
    assert shown.splitlines()[-1] == "| all | 4 | 2 | 1 | 1 |"
