import pytest

import mario


def test_rooms_and_methods_are_there_by_name() -> None:
    for room in (
        "contrast",
        "datasets",
        "encoders",
        "evaluation",
        "lab",
        "graphs",
        "methods",
        "report",
        "training",
        "views",
    ):
        assert mario.__getattr__(room).__name__ == f"mario.{room}"
        assert room in dir(mario)
    assert mario.__getattr__("GRACE") is mario.methods.GRACE
    with pytest.raises(AttributeError, match="no attribute 'cli'"):
        mario.__getattr__("cli")
