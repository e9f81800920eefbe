"""Whatever the bytes of a table are, `mario graph build` writes a sound graph or says one thing, and leaves nothing."""

import warnings

import pytest
from hypothesis import strategies as st

from fuzz.damage import Changes, changes, damaged
from fuzz.tables import build, sound
from fuzz.targets import fuzz


@pytest.mark.parametrize("name", sorted(sound()))
def test_sound_files(name: str) -> None:
    assert build(name, sound()[name])


@fuzz(examples=60, seconds=30, name=st.sampled_from(sorted(sound())), done=changes)
def test_damaged_tables(name: str, done: Changes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        build(name, damaged(sound()[name], done))
