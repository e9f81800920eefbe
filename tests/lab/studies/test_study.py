"""The studies of the paper: which runs they take, on which schedule, and what they share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.results import CBAS
from mario.lab.studies.paper import cells
from mario.lab.studies.plan import Plan, make_plan
from mario.lab.studies.read import find_study, read_study, study_names
from mario.lab.studies.study import PAPER, Study, matched_settings
from mario.methods import GRACE, REGISTRY, RELEASED, find

SMALL = ("good-cbas", "good-webkb", "webkb")
LARGE = ("good-twitch", "coauthor-cs")
TABLE = ["erm", "irm", "eerm", "gae", "vgae", "graphmae", "dgi", "mvgrl", "grace", "rosa", "bgrl", "costa", "swav"]
TABLE += ["mario"]
CONTROLS = ["raw-features", "random-init"]


@pytest.fixture(scope="module")
def studies() -> dict[str, Study]:
    return {name: find_study(name) for name in study_names()}


@pytest.fixture(scope="module")
def plans(studies: dict[str, Study]) -> dict[str, Plan]:
    return {name: make_plan(study) for name, study in studies.items()}


@pytest.fixture(scope="module")
def quick(studies: dict[str, Study]) -> dict[str, Plan]:
    return {name: make_plan(study, quick=True) for name, study in studies.items()}


def digests(plan: Plan, case: str, label: str) -> list[str]:
    return [job.spec.digest for c in plan.cases if c.name == case for job in c.jobs if job.label == label]


def test_every_table_and_figure_of_the_paper_is_a_study(studies: dict[str, Study]) -> None:
    assert len(PAPER) == 15
    assert {studies[name].paper for name in PAPER} == {
        *(f"Table {n}" for n in (2, 3, 4, 5, 7, 8)),
        *(f"Figure {n}" for n in (3, 4, 5, 6, 7, 8, 10, 15)),
        "Figures 9 and 11 to 14",
    }
    assert all(study.paper == "" for name, study in studies.items() if name not in PAPER)


@pytest.mark.parametrize("name", ["table-concept", "table-covariate"])
def test_the_two_great_tables_have_all_rows_with_five_seeds_and_few_on_large_graphs(
    name: str, plans: dict[str, Plan]
) -> None:
    assert {case.case.dataset for case in plans[name].cases} == {*SMALL, *LARGE, "good-cora"}
    assert sum(case.case.dataset == "coauthor-cs" for case in plans[name].cases) == 2, "word and degree"
    for case in plans[name].cases:
        labels = {run.label for run in case.jobs}
        pairs = {(run.spec.split_seed, run.spec.seed) for run in case.jobs}
        if case.case.dataset in SMALL:
            assert labels == {*TABLE, *CONTROLS}
            assert pairs == {(i, i) for i in range(5)}
        else:
            assert labels == {"erm", "grace", "costa", "mario", *CONTROLS}
            assert pairs == {(i, i) for i in range(3)}
        assert case.asked == len(pairs)


def test_where_the_split_is_one_draw_only_the_seed_changes(plans: dict[str, Plan]) -> None:
    photo = plans["photo"].cases[0]
    assert {(run.spec.split_seed, run.spec.seed) for run in photo.jobs} == {(0, i) for i in range(5)}
    assert {run.label for run in photo.jobs} == {*TABLE, *CONTROLS}


def test_the_other_studies_ask_for_what_the_paper_shows(plans: dict[str, Plan]) -> None:
    def shape(name: str) -> dict[str, tuple[int, int]]:
        return {c.name: (len({run.label for run in c.jobs}), c.asked) for c in plans[name].cases}

    assert shape("ablation") == {
        "good-cora-word-concept": (4, 3),
        "good-cora-degree-concept": (4, 3),
        "good-cbas-concept": (4, 5),
        "good-twitch-concept": (4, 3),
        "good-webkb-concept": (4, 5),
    }
    assert shape("encoders") == {"good-cbas-concept": (9, 5), "good-webkb-concept": (9, 5)}
    assert shape("other-methods") == {"good-webkb-concept": (4, 5), "good-cbas-concept": (4, 5)}
    assert shape("sensitivity") == {"good-webkb-concept": (25, 3)}
    assert shape("graph-classification") == dict.fromkeys(
        ("proteins-25-covariate", "dd-200-covariate", "dd-300-covariate"), (5, 5)
    )
    for shift in ("concept", "covariate"):
        names = (f"good-webkb-{shift}-inductive", f"good-cbas-{shift}-inductive")
        assert shape(f"inductive-{shift}") == dict.fromkeys(names, (5, 5))
        assert all(case.case.setting == "inductive" for case in plans[f"inductive-{shift}"].cases)
    assert shape("label-rates") == {"elliptic-label": (0, 0)}


def test_every_cell_of_the_papers_tables_has_a_row(plans: dict[str, Plan]) -> None:
    # On the large graphs a few rows stand for all.
    few = {"good-twitch", "good-cora"}
    asked = {
        (plan.paper, case.case.dataset, case.case.domain, run.paper, run.spec.settings["encoder"])
        for plan in plans.values()
        for case in plan.cases
        for run in case.jobs
    }
    for cell in cells():
        if cell.dataset not in few or cell.figure.table == "Table 4":
            assert (cell.figure.table, cell.dataset, cell.domain, cell.method, cell.encoder) in asked


def test_all_rows_of_a_case_have_the_same_steps_and_checkpoints(plans: dict[str, Plan], quick: dict[str, Plan]) -> None:
    for form in (plans, quick):
        for name in PAPER:
            for case in form[name].cases:
                keys = ("epochs", "steps_per_epoch", "checkpoints")
                found = {tuple(run.spec.settings[key] for key in keys) for run in case.jobs}
                assert len(found) == (1 if case.jobs else 0), (name, case.name)


def test_a_dataset_under_a_shift_has_one_schedule_in_all_studies(plans: dict[str, Plan]) -> None:
    found: dict[tuple[str, str], set[int]] = {}
    for name in PAPER:
        for case in plans[name].cases:
            found.setdefault((case.case.dataset, case.case.shift), set()).update(
                run.spec.settings["epochs"] * run.spec.settings["steps_per_epoch"] for run in case.jobs
            )
    assert all(len(steps) <= 1 for steps in found.values()), found


def test_methods_keep_their_own_settings_and_what_they_count_in_steps_is_scaled() -> None:
    jobs = find_study("table-covariate").jobs(datasets=["good-cbas"], methods=["irm", "bgrl", "swav"], seeds=1)
    runs = {job.label: job.spec.settings for job in jobs}
    steps = {run["epochs"] * run["steps_per_epoch"] for run in runs.values()}.pop()
    assert runs["irm"]["penalty"] == 10.0
    assert runs["bgrl"]["schedule"] == "cosine"
    assert runs["bgrl"]["warmup"] == 500 * steps // 10_000, "500 of its own 10,000 steps"
    assert runs["swav"]["centers_wait"] == max(1, round(10 * steps / 5_000))


def test_milestones_and_patience_are_scaled_and_what_a_row_says_itself_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = "schedule = 'steps'\nmilestones = [500, 800]\npatience = 20\nepochs = 100\nsteps_per_epoch = 10"
    (tmp_path / "grace.toml").write_text(f"[good-cbas]\n{own}\n")
    monkeypatch.setattr(GRACE, "presets_file", tmp_path / "grace.toml")
    text = """
    epochs = 20
    rows = ["grace", { label = "later", method = "grace", given = { milestones = [150] } }]
    cases = [{ dataset = "good-cbas", seeds = 1 }]
    """
    first, later = (job.spec.settings for job in read_study("mine", text, "mine.toml").jobs())
    assert (first["milestones"], first["patience"]) == ([100, 160], 4)
    assert later["milestones"] == [150]


def test_studies_share_runs(plans: dict[str, Plan], quick: dict[str, Plan]) -> None:
    for form in (plans, quick):
        mario = digests(form["table-concept"], "good-cbas-concept", "mario")
        assert digests(form["ablation"], "good-cbas-concept", "mario") == mario
        assert digests(form["encoders"], "good-cbas-concept", "mario (gcn)") == mario
        assert digests(form["other-methods"], "good-cbas-concept", "grace+mario") == mario
        assert digests(form["tsne"], "good-cbas-concept", "mario") == mario[:1]
        assert digests(form["encoders"], "good-cbas-concept", "mario (gat)") != mario
        twitch = digests(form["table-concept"], "good-twitch-concept", "erm")
        assert digests(form["curves"], "good-twitch-concept", "erm") == twitch
        webkb = digests(form["table-concept"], "good-webkb-concept", "mario")
        assert digests(form["sensitivity"], "good-webkb-concept", "mario, gamma=0.1, clusters=100") == webkb[:3]


def test_quick_keeps_every_case_and_row_with_one_seed_and_few_steps(
    plans: dict[str, Plan], quick: dict[str, Plan]
) -> None:
    for name in PAPER:
        assert [case.name for case in quick[name].cases] == [case.name for case in plans[name].cases]
        for small, full in zip(quick[name].cases, plans[name].cases, strict=True):
            assert {run.label for run in small.jobs} == {run.label for run in full.jobs}
            assert small.asked == min(1, full.asked)
            for run in small.jobs:
                given = run.spec.settings
                assert given["epochs"] * given["steps_per_epoch"] <= 20
                assert given["epochs"] >= given["checkpoints"] == 2, "a curve has two points"
    runs = {run.spec.digest for name in PAPER for case in quick[name].cases for run in case.jobs}
    assert not runs & {run.spec.digest for name in PAPER for case in plans[name].cases for run in case.jobs}


@pytest.fixture
def yesterday() -> Iterator[None]:
    """A method that was written yesterday."""
    cls = type("Yesterday", (find("grace"),), {"name": "yesterday"})
    REGISTRY["yesterday"] = cls
    yield
    del REGISTRY["yesterday"]


@pytest.mark.usefixtures("yesterday")
def test_a_method_that_is_registered_has_its_row() -> None:
    study = find_study("table-concept")
    labels = [row.label for row in study.rows]
    assert labels.index("swav") < labels.index("yesterday") < labels.index("mario")
    for case in make_plan(study).cases:
        assert "yesterday" in {run.label for run in case.jobs}, "on the large graphs too"
    assert all(run.paper is None for case in make_plan(study, methods=["yesterday"]).cases for run in case.jobs)
    assert "yesterday" not in {row.label for row in find_study("inductive-concept").rows}
    assert "yesterday" not in {row.label for row in find_study("graph-classification").rows}


def test_a_choice_of_rows_and_datasets() -> None:
    study = find_study("table-concept")
    assert {p.label for p in study.jobs(methods=["irm"], datasets=["good-twitch"])} == {"irm"}, "if asked for"
    assert {p.label for p in study.jobs(methods=["bgrl+mario", "erm"], datasets=["good-cbas"])} == {
        "erm",
        "bgrl+mario",
    }, "an open study takes any method"
    assert {p.spec.case.name for p in study.jobs(datasets=["coauthor-cs-word-concept", "webkb"])} == {
        "coauthor-cs-word-concept",
        "webkb-concept",
    }
    assert study.jobs(methods=["graphcl"]) == [], "which embeds graphs"
    ablation = find_study("ablation")
    assert ablation.jobs(methods=["grace"]) == []
    assert len({p.label for p in ablation.jobs(methods=["mario"])}) == 4, "every row of the method"
    assert {p.label for p in ablation.jobs(methods=["mario w/o cmi, ad"])} == {"mario w/o cmi, ad"}
    assert {(p.spec.split_seed, p.spec.seed) for p in ablation.jobs(seeds=7, datasets=["good-cbas"])} == {
        (i, i) for i in range(7)
    }


def test_matched_settings_differ_only_in_the_recipe() -> None:
    grace = matched_settings("grace", CBAS)
    mario = matched_settings("mario", CBAS)
    assert set(mario) - set(grace) == {"clusters", "gamma", "prototype_lr"}
    assert all(grace[key] == mario[key] for key in grace)
    control = matched_settings("random-init", CBAS)
    assert (control["probe_epochs"], control["batch_norm"]) == (mario["probe_epochs"], mario["batch_norm"])


def test_the_demo_is_matched_and_the_tables_are_not(plans: dict[str, Plan]) -> None:
    case = "good-cbas-concept"
    assert digests(plans["demo"], case, "mario") == digests(plans["table-concept"], case, "mario")[:3]
    assert not set(digests(plans["demo"], case, "grace")) & set(digests(plans["table-concept"], case, "grace"))


def test_the_variants_end_with_the_released_code() -> None:
    row = next(row for row in find_study("variants").rows if row.label == "mario, as released")
    assert {**row.given, "milestones": (150,)} == {**RELEASED, "milestones": (150,)}


def test_own_schedules_are_those_of_the_settings() -> None:
    jobs = find_study("own-schedule").jobs(methods=["dgi", "mario"])
    epochs = {job.label: job.spec.settings["epochs"] for job in jobs}
    assert epochs == {"dgi": 500, "mario": 200}
