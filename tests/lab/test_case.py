"""Cases: their defaults and their names."""

from dataclasses import replace

from mario.lab.case import Case


def test_defaults_are_those_of_the_dataset() -> None:
    assert [str(Case.find(dataset)) for dataset in ("good-cbas", "amazon-photo", "elliptic")] == [
        "good-cbas, color, concept, transductive",
        "amazon-photo, environment, concept, inductive",
        "elliptic, time, label, inductive",
    ]
    assert Case.find("elliptic", setting="transductive").setting == "transductive"


def test_names_have_what_is_not_the_default() -> None:
    cbas = Case.find("good-cbas")
    assert cbas.name == "good-cbas-concept"
    assert replace(cbas, setting="inductive").name == "good-cbas-concept-inductive"
    assert Case.find("webkb", shift="covariate", domain="texas").name == "webkb-texas-covariate"
    assert Case.find("good-cora").name == "good-cora-word-concept"
    assert Case("gone", "a", "concept", "inductive").name == "gone-a-concept-inductive"
