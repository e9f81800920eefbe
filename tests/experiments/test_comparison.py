"""Methods side by side: matched settings, one schedule."""

import pytest

from mario.errors import MarioError
from mario.experiments.comparison import matched_settings, side_by_side
from mario.experiments.results import CASES, VARIANTS, systems, variant_jobs


def test_grace_and_mario_differ_only_in_the_recipe() -> None:
    grace = matched_settings("grace", "good-cbas", "color", "concept")
    mario = matched_settings("mario", "good-cbas", "color", "concept")
    assert set(mario) - set(grace) == {"clusters", "gamma", "prototype_lr"}
    assert all(grace[key] == mario[key] for key in grace)
    control = matched_settings("random-init", "good-cbas", "color", "concept")
    assert (control["probe_epochs"], control["batch_norm"]) == (mario["probe_epochs"], mario["batch_norm"])


def test_every_method_of_a_table_has_the_same_steps_checkpoints_and_pairs() -> None:
    jobs = side_by_side(
        "good-cbas", ["erm", "mario"], domain="color", shift="concept", pairs=[(0, 0), (1, 5)], epochs=3, checkpoints=2
    )
    assert [(job.method, job.split_seed, job.seed) for job in jobs] == [
        ("erm", 0, 0),
        ("mario", 0, 0),
        ("erm", 1, 5),
        ("mario", 1, 5),
    ]
    assert {(job.given["epochs"], job.given["checkpoints"]) for job in jobs} == {(3, 2)}


def test_the_cases_of_the_results_page_are_the_ones_promised() -> None:
    counts = {case.name: len(case.pairs) for case in CASES}
    assert counts["good-cbas-concept"] == 15
    assert all(counts[name] == 5 for name in counts if name.startswith(("good-webkb", "webkb")))
    assert len(variant_jobs()) == 3 * len(VARIANTS)


def test_the_tables_of_systems_have_a_row_for_every_method_and_every_host_with_the_recipe() -> None:
    nodes, graphs = systems("node"), systems("graph")
    assert {"erm", "irm", "eerm", "gae", "vgae", "graphmae", "dgi", "mvgrl", "grace", "rosa", "bgrl", "costa"} < set(
        nodes
    )
    assert {"mario", "costa+mario", "bgrl+mario", "swav+mario", "rosa+mario", "mvgrl+mario", "dgi+mario"} < set(nodes)
    assert "grace+mario" not in nodes, "that is mario"
    assert set(graphs) == {"erm", "graphcl", "graphcl+mario", "random-init", "raw-features"}
    cases = {case.name: case for case in CASES}
    assert cases["systems-good-cbas-concept"].methods == nodes
    assert cases["systems-dd-300-covariate"].methods == graphs
    assert len(cases["systems-amazon-photo-concept"].pairs) == 3


def test_systems_keep_their_own_settings_on_one_schedule() -> None:
    case = next(case for case in CASES if case.name == "systems-good-cbas-covariate")
    runs = {job.method: job.plan().settings for job in case.jobs(["irm", "bgrl", "mario"]) if job.seed == 0}
    assert {(run["epochs"], run["steps_per_epoch"], run["checkpoints"]) for run in runs.values()} == {(20, 10, 10)}
    assert runs["irm"]["penalty"] == 10.0
    assert (runs["bgrl"]["schedule"], runs["bgrl"]["warmup"]) == ("cosine", 10), "500 of 10,000 steps, 10 of 200"
    quick = case.jobs(["irm"], quick=True)
    assert [(job.seed, job.given["epochs"]) for job in quick] == [(0, 2)]
    with pytest.raises(MarioError, match="graphcl embeds graphs"):
        case.jobs(["graphcl"])
