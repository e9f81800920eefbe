"""Studies as files: what is wrong in one is said in one line."""

from pathlib import Path

import pytest

from mario.errors import MarioError
from mario.lab.studies.read import find_studies, find_study, read_study, study_names
from mario.lab.studies.study import PAPER

GOOD = """
title = "Mine"
rows = ["grace", { label = "wide", method = "grace", given = { hidden_channels = 16 } }]
seeds = 2
cases = [{ dataset = "good-cbas", shift = "covariate", epochs = 3, quick = { epochs = 2 } }]
"""


def test_what_a_case_does_not_say_is_of_the_study_and_then_of_the_schedules() -> None:
    study = read_study("mine", GOOD, "mine.toml")
    case = study.cases[0]
    assert (case.case.domain, case.case.shift, case.case.setting) == ("color", "covariate", "transductive")
    assert (case.schedule.epochs, case.schedule.seeds) == (3, 2)
    assert case.schedule.checkpoints == find_study("table-concept").cases[2].schedule.checkpoints
    assert (case.quick.epochs, case.quick.seeds) == (2, 1)
    assert (study.title, study.reference, study.subject, study.open) == ("Mine", "grace", "mario", False)
    assert [row.paper for row in study.rows] == ["grace", "wide"]


def test_a_schedule_may_be_of_one_shift() -> None:
    text = GOOD.replace("epochs = 3, ", "")
    covariate = read_study("mine", text, "mine.toml").cases[0]
    concept = read_study("mine", text.replace('"covariate"', '"concept"'), "mine.toml").cases[0]
    assert (covariate.schedule.epochs, concept.schedule.epochs) == (100, 60)
    assert covariate.schedule.checkpoints == concept.schedule.checkpoints
    assert covariate.quick.epochs == concept.quick.epochs


def test_a_grid_has_a_row_for_each_point() -> None:
    study = read_study("mine", GOOD + "grid = { tau = [0.2, 0.5], num_layers = [1, 2] }", "mine.toml")
    assert len(study.rows) == 8
    assert study.rows[5].label == "wide, tau=0.2, num_layers=2"
    assert study.rows[5].given == {"hidden_channels": 16, "tau": 0.2, "num_layers": 2}
    assert study.rows[5].paper is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("title =", "titel ="), "unknown key 'titel'; did you mean 'title'"),
        (("seeds =", "color ="), "unknown key 'color'; use title"),
        (("epochs = 3", "epoch = 3"), "a case of mine.toml has an unknown key 'epoch'; did you mean 'epochs'"),
        (("{ epochs = 2 }", "{ rows = 2 }"), "quick in mine.toml has an unknown key 'rows'"),
        (('label = "wide"', 'name = "wide"'), "a row of mine.toml has an unknown key 'name'"),
        (('["grace"', '["grac"'), "there is no method 'grac'.*did you mean 'grace'"),
        (('label = "wide"', 'label = "grace"'), "the row in mine.toml 'grace' appears twice"),
        (
            ("hidden_channels = 16", "hiden_channels = 16"),
            "good-cbas-covariate, wide: grace has no setting 'hiden_channels'; did you mean",
        ),
        (("hidden_channels = 16", "hidden_channels = 0"), "hidden_channels must be at least 1"),
        (('"good-cbas"', '"good-cbs"'), "did you mean 'good-cbas'"),
        (('"good-cbas"', '"proteins-25"'), "grace embeds nodes"),
        (('"covariate"', '"sideways"'), "unknown shift of good-cbas"),
        (("seeds = 2", "seeds = 0"), "seeds in mine.toml must be a whole number of at least 1, got 0"),
        (("epochs = 3", 'epochs = "some"'), "epochs in mine.toml must be a whole number"),
        (("seeds = 2", "seeds = "), "not valid TOML"),
        (("seeds = 2", 'reference = "mario"'), "unknown reference in mine.toml, the name of a row, 'mario'"),
        (("seeds = 2", 'matched = "no"'), "matched in mine.toml must be true or false, got 'no'"),
        (("rows = [", "rows = [] #"), "mine.toml needs rows"),
        (("cases = [", "cases = [] #"), "mine.toml needs cases"),
        (("seeds = 2", "grid = [1]"), "grid in mine.toml must be a table with a list of values for each setting"),
        (("seeds = 2", "grid = { lr = 0.1 }"), "grid in mine.toml must be a table"),
        (("seeds = 2", 'given = "x"'), "given in mine.toml must be a table of settings, got 'x'"),
        (("given = { hidden_channels = 16 }", "given = 3"), "given in mine.toml must be a table of settings, got 3"),
        (("{ epochs = 2 }", "{ seeds = 0 }"), "seeds in mine.toml must be a whole number of at least 1, got 0"),
        (("cases = [", 'cases = ["good-cbas", '), "a case of mine.toml must be a table of dataset"),
        (("seeds = 2", "given = { epochs = 9 }"), "given in mine.toml has epochs: .* give epochs of the case"),
        (('label = "wide"', 'label = ["wide"]'), r"label of a row in mine.toml must be a string, got \['wide'\]"),
        (("epochs = 3", 'rows = "grace"'), "rows in mine.toml must be a list, got 'grace'"),
        (('rows = ["grace"', 'rows = [3, "grace"'), "a row in mine.toml is the name of a method or a table"),
        (("epochs = 3", 'rows = ["mario"]'), "mario"),
        (
            ("cases = [", 'cases = [{ dataset = "good-cbas", shift = "covariate" }, '),
            "case in mine.*appears twice",
        ),
    ],
)
def test_what_is_wrong_is_named(change: tuple[str, str], message: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(MarioError, match=message):
        read_study("mine", GOOD.replace(*change, 1), "mine.toml")


def test_what_a_case_gives_is_not_rescaled() -> None:
    text = GOOD.replace("seeds = 2", "seeds = 2\ngiven = { warmup = 50, patience = 7 }", 1)
    given = read_study("mine", text, "mine.toml").jobs()[0].spec.settings
    assert (given["warmup"], given["patience"]) == (50, 7)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(MarioError, match=r"mine\.toml is not text in UTF-8"):
        find_study(str(tmp_path / "mine.toml"))


def test_studies_are_found_by_name_and_by_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD)
    assert find_study(str(tmp_path / "mine.toml")).name == "mine"
    assert [study.name for study in find_studies(["all", "photo"])] == list(PAPER), "each once"
    assert set(study_names()) > {*PAPER, "demo", "variants"}
    with pytest.raises(MarioError, match=r"no study 'table-concpt'; did you mean 'table-concept'.*ablation.*\.toml"):
        find_study("table-concpt")
    with pytest.raises(MarioError, match="there is no file"):
        find_study(str(tmp_path / "absent.toml"))
    (tmp_path / "photo.toml").write_text(GOOD)
    with pytest.raises(MarioError, match="two studies are called 'photo'"):
        find_studies(["photo", str(tmp_path / "photo.toml")])
