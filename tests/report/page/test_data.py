"""The JSON of the page: no tag can close its element, nothing in it is not JSON."""

import json

import numpy as np

from made_up import changed, collected
from mario.report.maps import MapData
from mario.report.page.data import embedded, looks_data, map_group, runs_data


def test_what_is_embedded_has_no_tag_and_comes_back() -> None:
    value = {"a": "</script><!--", "b": [1.5, float("inf"), None], "c": (True, "é ")}
    text = embedded(value)
    assert "<" not in text
    assert json.loads(text) == {"a": "</script><!--", "b": [1.5, None, None], "c": [True, "é "]}


def test_scores_are_flat_and_settings_shared() -> None:
    made = collected({"good-cbas-concept": {"mario": [0.5, 0.6]}})
    settings = ({"tau": 0.5}, {"tau": 0.1})
    groups = ({"T1": 0.25}, {})
    made = changed(made, lambda job, _: {"settings": settings[job.spec.seed], "groups": groups[job.spec.seed]})
    data = runs_data(made.frame)
    assert [run["settings"] for run in data["runs"]] == [0, 1]
    assert data["settings"] == [{"tau": 0.5}, {"tau": 0.1}]
    assert data["runs"][0]["scores"]["groups.T1"] == 0.25
    assert data["runs"][0]["facts"]["ood_test_chosen_on"] == "ood_val"
    assert data["runs"][0]["scores"]["last_ood_test"] == 0.2222
    assert "encoder" not in data["runs"][0]["facts"], "a fact that a run does not have"
    assert not any("oracle" in name for name in data["runs"][0]["scores"]), "what was chosen on test labels stays out"
    assert data["runs"][0]["facts"]["split_seed"] == 0
    assert data["runs"][0]["studies"] == [{"study": "table-concept", "case": "good-cbas-concept", "label": "mario"}]


def test_nodes_of_several_maps_are_kept_once() -> None:
    place = np.arange(3)
    one = MapData(place + 7, np.eye(3)[:, :2], place, place, place, place, np.ones((5, 3)), np.ones((5, 3)), "graph")
    group = map_group("case", "", {"a": one, "b": one})
    assert (group["node"], group["domain_name"], group["unit"]) == ([7, 8, 9], "domain", "graph")
    assert [found["label"] for found in group["maps"]] == ["a", "b"]
    assert "node" not in group["maps"][0]
    assert group["two"] == ["a", "b"]
    assert map_group("case", "", {"a": one, "b": one, "c": one}, ("a", None))["two"] == ["a"]


def test_sets_have_a_mark_each() -> None:
    sets = looks_data()["sets"]
    assert [one["key"] for one in sets] == ["train", "id_val", "id_test", "ood_val", "ood_test"]
    assert len({one["marker"] for one in sets}) == len({one["color"] for one in sets}) == 5
