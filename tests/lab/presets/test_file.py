"""Files of settings: what is written is read back, and what is not understood is refused by name."""

import json
from pathlib import Path

import pytest

from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.presets.file import read_preset, write_preset
from mario.lab.spec import RunSpec


@pytest.mark.parametrize("name", ["best.toml", "best.json"])
def test_what_is_written_plans_the_same_run(tmp_path: Path, name: str) -> None:
    run = RunSpec.plan(
        Case.find("good-cbas", shift="covariate"), "mario", given={"lr": 1e-5, "milestones": (5, 7), "gamma": 0.3}
    )
    write_preset(tmp_path / name, run.to_dict(), comment="found by hand\nin the dark")
    read = read_preset(tmp_path / name)
    assert (read.dataset, read.method, read.domain, read.shift, read.setting) == (
        "good-cbas",
        "mario",
        "color",
        "covariate",
        "transductive",
    )
    assert RunSpec.plan(run.case, "mario", given=read.of("mario")).digest == run.digest


def test_the_settings_of_a_run_are_such_a_file(tmp_path: Path) -> None:
    run = RunSpec.plan(Case.find("good-cbas"), "grace", seed=3)
    (tmp_path / "settings.json").write_text(json.dumps(run.to_dict()))
    assert read_preset(tmp_path / "settings.json").of("grace") == run.to_dict()["settings"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "", "read from .toml or .json"),
        ("a.toml", "lr = 1", "needs a table"),
        ("a.toml", "lr == 1", "not valid TOML"),
        ("a.json", "{", "not valid JSON"),
        ("a.toml", "metod = 'mario'\n[settings]\nlr = 1", "has 'metod' beside its settings"),
        ("a.toml", "method = 3\n[settings]\nlr = 1", "method must be a word, got 3"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(MarioError, match=message):
        read_preset(tmp_path / name)


def test_an_unknown_setting_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[settings]\ngama = 0.1\n")
    with pytest.raises(MarioError, match=r"a\.toml: mario has no setting 'gama'; did you mean 'gamma'\?"):
        read_preset(tmp_path / "a.toml").of("mario")
    with pytest.raises(MarioError, match="there is no file"):
        read_preset(tmp_path / "b.toml")
