"""Specs: their layout on disk and their digest."""

import json

import pytest

from lab import results
from mario.errors import MarioError
from mario.lab.spec import RunSpec

WRITTEN = {
    "dataset": "good-cbas",
    "domain": "color",
    "shift": "concept",
    "setting": "transductive",
    "split_seed": 0,
    "method": "grace",
    "seed": 1,
    "settings": {"encoder": "gcn", "lr": 0.01, "milestones": [150]},
}


def test_a_spec_is_written_and_read() -> None:
    spec = results.spec(1, split_seed=0)
    assert spec.to_dict() == WRITTEN
    assert list(spec.to_dict()) == list(WRITTEN)
    assert RunSpec.from_dict(json.loads(json.dumps(WRITTEN))) == spec
    assert spec == results.spec(1, split_seed=0, milestones=(150,)), "tuples and lists are the same setting"


def test_the_digest_names_the_content() -> None:
    spec = results.spec(1, split_seed=0)
    assert spec.digest == "8ed375098aad288e", "folders of earlier runs have this name"
    assert spec.digest == RunSpec.from_dict(WRITTEN).digest
    others = {results.spec(2).digest, results.spec(1).digest, results.spec(1, split_seed=0, lr=0.1).digest}
    assert len({spec.digest, *others}) == 4


def test_what_is_not_a_spec_is_refused() -> None:
    with pytest.raises(MarioError, match=r"settings\.json must be an object, got \[1\]"):
        RunSpec.from_dict([1], "settings.json")
    with pytest.raises(MarioError, match=r"settings\.json has no 'settings'"):
        RunSpec.from_dict({key: WRITTEN[key] for key in WRITTEN if key != "settings"}, "settings.json")
