"""Drawing ahead: in order, never further than asked, and no thread outlives its iterator."""

import threading
import time

import pytest

from mario.training.prefetch import prefetched


def at_work() -> int:
    return sum(thread.name == "mario-prefetch" for thread in threading.enumerate())


def eventually(condition: object, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.001)
    return bool(condition())  # type: ignore[operator]


def test_in_order_from_any_step() -> None:
    assert list(prefetched(lambda step: step * 10, range(3, 7))) == [30, 40, 50, 60]
    assert list(prefetched(lambda step: step, range(0))) == []
    assert at_work() == 0


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_never_more_than_ahead_are_drawn_and_not_taken(ahead: int) -> None:
    drawn: list[int] = []

    def draw(step: int) -> int:
        drawn.append(step)
        return step

    batches = prefetched(draw, range(100), ahead)
    for taken in range(1, 10):
        next(batches)
        assert eventually(lambda taken=taken: len(drawn) == taken + ahead)
        time.sleep(0.005)
        assert len(drawn) == taken + ahead
    batches.close()
    assert at_work() == 0


def test_drawing_and_taking_overlap() -> None:
    began = threading.Event()

    def draw(step: int) -> int:
        if step == 1:
            began.set()
        return step

    batches = prefetched(draw, range(3))
    next(batches)
    assert began.wait(5), "the next batch is drawn before it is asked for"
    batches.close()


def test_an_error_comes_where_its_batch_would_have() -> None:
    def draw(step: int) -> int:
        if step == 2:
            raise KeyError("two")
        return step

    batches = prefetched(draw, range(5))
    assert [next(batches), next(batches)] == [0, 1]
    with pytest.raises(KeyError, match="two"):
        next(batches)
    assert at_work() == 0


def test_closed_in_the_middle_of_a_draw_it_waits_for_it() -> None:
    inside, go = threading.Event(), threading.Event()

    def draw(step: int) -> int:
        if step:
            inside.set()
            go.wait(5)
        return step

    batches = prefetched(draw, range(5))
    next(batches)
    assert inside.wait(5)
    threading.Timer(0.05, go.set).start()
    batches.close()
    assert at_work() == 0


def test_dropped_without_closing_it_ends_too() -> None:
    batches = prefetched(lambda step: step, range(1000))
    next(batches)
    assert at_work() == 1
    del batches
    assert eventually(lambda: at_work() == 0)
