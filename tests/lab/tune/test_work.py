"""Tuning: trials are runs, validation scores alone decide, and nothing that ends a worker loses or repeats a trial."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState

from mario.errors import MarioError, RunFailedError
from mario.lab.case import Case
from mario.lab.presets.file import read_preset
from mario.lab.runs import execute as run_module, store
from mario.lab.runs.execute import finish, load_data
from mario.lab.spec import RunSpec
from mario.lab.tune import (
    objective as objective_module,
    study as study_module,
)
from mario.lab.tune.objective import Objective
from mario.lab.tune.plan import Tuning
from mario.lab.tune.study import best_trial, counted, importance, open_study, progress_of, retry_failed, write_best
from mario.lab.tune.work import tune, work
from mario.training import Epoch
from mario.untrusted import read_json

CBAS = Case.find("good-cbas", shift="concept")

TINY = {"hidden_channels": 8, "num_layers": 1, "epochs": 3, "steps_per_epoch": 1, "probe_epochs": 2, "checkpoints": 3}


def plan(folder: Path, **asked: Any) -> Tuning:
    given = {k: v for k, v in TINY.items() if k not in asked.get("search", {})} | asked.pop("given", {})
    asked = {"only": ["dropout", "probe_lr"], "sampler": "random", "pruner": "none", "trials": 4, **asked}
    return Tuning.plan(CBAS, "random-init", given=given, folder=folder, **asked)


def trials_of(tuning: Tuning) -> list[FrozenTrial]:
    return counted(open_study(tuning).get_trials())


def add_trials(tuning: Tuning, count: int) -> None:
    """Trials of earlier days: the higher probe_lr, the better, whatever dropout is."""
    study, rates, drops = open_study(tuning), (1e-4, 1e-3, 1e-2, 1e-1), (0.0, 0.5)
    for i in range(count):
        study.add_trial(
            optuna.create_trial(
                params={"probe_lr": rates[i % 4], "dropout": drops[i // 4 % 2]},
                distributions={
                    "probe_lr": optuna.distributions.CategoricalDistribution(rates[::-1]),
                    "dropout": optuna.distributions.CategoricalDistribution(drops),
                },
                value=0.1 * (i % 4) + 0.1,
                intermediate_values=dict.fromkeys((1, 2, 3), 0.1 * (i % 4) + 0.1),
            )
        )


def facts(trials: list[FrozenTrial]) -> list[Any]:
    return [(t.number, t.state, t.params, t.values, t.intermediate_values) for t in trials]


@pytest.fixture
def curves(monkeypatch: pytest.MonkeyPatch) -> dict[Any, list[float]]:
    """Instead of runs: the curve that stands here under the trial's probe_lr, else a flat one."""
    given: dict[Any, list[float]] = {}

    def execute(run: RunSpec, *_: Any, **__: Any) -> Iterator[Epoch]:
        return checkpoints(*given.get(run.settings["probe_lr"], [0.5, 0.5, 0.5]))

    monkeypatch.setattr(objective_module, "execute", execute)
    return given


def checkpoints(*scores: float) -> Iterator[Epoch]:
    yield from (Epoch(i, i, {}, pause=True, record={"ood_val": score}) for i, score in enumerate(scores, 1))


def test_a_trial_is_its_runs_and_its_score_the_mean_of_their_best_checkpoints(tmp_path: Path) -> None:
    tuning = plan(tmp_path, seeds=2, select="id_val")
    work(tuning)
    trials = trials_of(tuning)
    assert [trial.number for trial in trials] == [0, 1, 2, 3]
    for trial in trials:
        runs = tuning.runs(trial.params)
        assert trial.user_attrs["runs"] == [run.digest for run in runs]
        assert [(run.split_seed, run.seed) for run in runs] == [(0, 0), (1, 1)]
        results = [read_json(tmp_path / run.digest / "result.json") for run in runs]
        assert trial.value == sum(max(p["id_val"] for p in result["curve"]) for result in results) / 2
        assert len(trial.intermediate_values) == 3
    # Side by side in one process, and yet to the bit what each is alone.
    alone = tuning.runs(trials[0].params)[1]
    curve = finish(alone, load_data(alone), tmp_path / "alone").to_dict()["curve"]
    assert curve == read_json(tmp_path / alone.digest / "result.json")["curve"]


def test_test_scores_decide_nothing_and_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {
        "sampler": "tpe",
        "pruner": "median",
        "trials": 12,
        "only": ["hidden_channels", "probe_lr"],
    }
    asked["search"] = {"hidden_channels": "1:32", "probe_lr": "0.001:1:log"}
    honest, other = plan(tmp_path / "honest", **asked), plan(tmp_path / "other", **asked)
    work(honest)
    evaluate_many = run_module.evaluate_many

    def perturbed(*args: Any, **kwargs: Any) -> list[dict[str, float]]:
        return [
            {name: 1.0 - score if "test" in name else score for name, score in scores.items()}
            for scores in evaluate_many(*args, **kwargs)
        ]

    monkeypatch.setattr(run_module, "evaluate_many", perturbed)  # what controls are judged by
    work(other)
    assert facts(trials_of(honest)) == facts(trials_of(other))
    assert {trial.state for trial in trials_of(honest)} == {TrialState.COMPLETE, TrialState.PRUNED}
    written = []
    for tuning in (honest, other):
        best = best_trial(trials_of(tuning))
        assert best is not None
        write_best(tuning, best, tuning.folder / "best.toml")
        written.append((tuning.folder / "best.toml").read_text())
    assert written[0] == written[1]
    complete = [trial for trial in trials_of(honest) if trial.state == TrialState.COMPLETE]
    first = complete[0].user_attrs["runs"][0]
    curves = [read_json(tmp_path / name / first / "result.json")["curve"][0] for name in ("honest", "other")]
    assert curves[0]["ood_test"] == 1.0 - curves[1]["ood_test"], "the perturbation reached the runs"
    assert b"_test" not in (tmp_path / "honest" / "tune" / f"{honest.name}.db").read_bytes()


def test_it_goes_on_to_the_number_of_trials_asked_for(tmp_path: Path, curves: dict[Any, list[float]]) -> None:
    work(plan(tmp_path, trials=1))
    first = facts(trials_of(plan(tmp_path)))
    assert len(first) == 1
    work(plan(tmp_path, trials=3))
    assert facts(trials_of(plan(tmp_path)))[:1] == first
    work(plan(tmp_path, trials=3))
    assert len(open_study(plan(tmp_path)).get_trials()) == 3
    # One worker and the same command elsewhere: the same trials.
    work(plan(tmp_path / "again", trials=3))
    assert facts(trials_of(plan(tmp_path / "again"))) == facts(trials_of(plan(tmp_path)))


def test_a_run_that_is_done_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuning = plan(tmp_path, sampler="grid", only=[], search={"probe_lr": "0.01"})
    assert tuning.trials == 1
    run = tuning.runs({"probe_lr": 0.01})[0]
    result = finish(run, load_data(run), tmp_path / run.digest)
    monkeypatch.setattr(objective_module, "execute", lambda *args, **kwargs: pytest.fail("it was done"))
    work(tuning)
    assert trials_of(tuning)[0].value == result.scores.ood_val


def test_the_grid_is_visited_once(tmp_path: Path, curves: dict[Any, list[float]]) -> None:
    search = {"gamma": "0.1,0.2", "clusters": "10,20,30"}
    tuning = Tuning.plan(CBAS, "mario", sampler="grid", search=search, folder=tmp_path, trials=100)
    assert tuning.trials == 6
    work(tuning)
    trials = trials_of(tuning)
    assert len(trials) == 6
    assert {(t.params["gamma"], t.params["clusters"]) for t in trials} == {
        (gamma, clusters) for gamma in (0.1, 0.2) for clusters in (10, 20, 30)
    }


def test_a_trial_that_fails_stops_no_other_and_is_tried_again_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"sampler": "grid", "only": [], "search": {"probe_lr": "0.1,0.01,0.001"}, "trials": None}
    tuning = plan(tmp_path, **asked)
    execute = objective_module.execute

    def fragile(run: RunSpec, *args: Any, **kwargs: Any) -> Iterator[Any]:
        if run.settings["probe_lr"] == 0.01:
            raise RunFailedError("the loss is not finite")
        yield from execute(run, *args, **kwargs)

    monkeypatch.setattr(objective_module, "execute", fragile)
    work(tuning)
    states = {trial.params["probe_lr"]: trial.state for trial in trials_of(tuning)}
    assert states == {0.1: TrialState.COMPLETE, 0.01: TrialState.FAIL, 0.001: TrialState.COMPLETE}
    failed = next(trial for trial in trials_of(tuning) if trial.state == TrialState.FAIL)
    assert failed.user_attrs["error"] == "RunFailedError: the loss is not finite"
    folder = tmp_path / failed.user_attrs["runs"][0]
    assert store.state(folder) == store.FAILED
    assert progress_of(open_study(tuning), 3).failed == 1
    monkeypatch.setattr(objective_module, "execute", execute)
    work(tuning)  # nothing is left to do
    assert store.state(folder) == store.FAILED
    assert retry_failed(tuning) == 1
    work(tuning)
    assert [trial.state for trial in trials_of(tuning)] == [TrialState.COMPLETE] * 3
    assert store.state(folder) == store.DONE


def test_an_interrupted_trial_is_queued_again_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuning = plan(tmp_path, trials=3)
    execute = objective_module.execute
    steps: list[int] = []

    def interrupted(run: RunSpec, *args: Any, **kwargs: Any) -> Iterator[Any]:
        for epoch in execute(run, *args, **kwargs):
            steps.append(epoch.step)
            if len(steps) == 6:  # the last epoch of the second trial, with two checkpoints behind it
                objective.interrupt()
            yield epoch

    monkeypatch.setattr(objective_module, "execute", interrupted)
    objective = Objective(tuning)
    with pytest.raises(KeyboardInterrupt):
        work(tuning, objective=objective)
    states = [trial.state for trial in open_study(tuning).get_trials()]
    assert states == [TrialState.COMPLETE, TrialState.FAIL, TrialState.WAITING]
    assert [trial.number for trial in trials_of(tuning)] == [0]
    del steps[:]
    monkeypatch.setattr(objective_module, "execute", execute)
    work(tuning)
    every = open_study(tuning).get_trials()
    assert [trial.number for trial in trials_of(tuning)] == [0, 2, 3]
    assert every[2].params == every[1].params
    assert {trial.state for trial in trials_of(tuning)} == {TrialState.COMPLETE}


def test_a_lost_trial_is_tried_again_but_not_for_ever(tmp_path: Path, curves: dict[Any, list[float]]) -> None:
    tuning = plan(tmp_path, trials=1)
    work(tuning)
    first = trials_of(tuning)[0]
    database = sqlite3.connect(tmp_path / "tune" / f"{tuning.name}.db")
    for attempt in range(1, study_module.LOSSES + 2):
        # As a worker that was killed leaves it: at work, and silent since an hour.
        with database:
            database.execute("update trials set state = 'RUNNING' where trial_id = (select max(trial_id) from trials)")
            database.execute("update trial_heartbeats set heartbeat = datetime('now', '-1 hour')")
        work(tuning)
        last = trials_of(tuning)
        assert len(last) == 1
        if attempt <= study_module.LOSSES:
            assert (last[0].number, last[0].state) == (attempt, TrialState.COMPLETE)
            assert last[0].params == first.params
        else:
            assert (last[0].number, last[0].state) == (study_module.LOSSES, TrialState.FAIL)
    database.close()


@pytest.mark.parametrize("late", [False, True])
def test_a_worker_that_was_taken_for_dead_takes_up_other_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    tuning = plan(tmp_path, trials=2)
    study = open_study(tuning)

    def execute(*_: Any, **__: Any) -> Iterator[Epoch]:
        first, second = checkpoints(0.1, 0.2)
        yield first
        if not late:
            take()
        yield second
        if late:  # nothing is left for it but to tell the score
            take()

    def take() -> None:
        if not study.get_trials()[0].state.is_finished():  # as another worker does after a minute of silence
            study.tell(0, state=TrialState.FAIL)
            study_module.requeue_lost(study, study.get_trials()[0])

    monkeypatch.setattr(objective_module, "execute", execute)
    work(tuning)
    assert [trial.number for trial in trials_of(tuning)] == [1, 2]
    assert {trial.state for trial in trials_of(tuning)} == {TrialState.COMPLETE}
    assert trials_of(tuning)[0].params == study.get_trials()[0].params


@pytest.mark.filterwarnings("ignore:Heartbeat of storage")
@pytest.mark.usefixtures("curves")
def test_two_workers_cannot_begin_the_last_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuning = plan(tmp_path, trials=2)
    study, optimize = open_study(tuning), optuna.Study.optimize

    def overtaken(self: optuna.Study, *args: Any, **kwargs: Any) -> None:
        others = [study.ask(), study.ask()]  # other workers begin, after this one has counted the trials
        optimize(self, *args, **kwargs)
        for other in others:
            study.tell(other, 0.5)

    with monkeypatch.context() as patch:
        patch.setattr(optuna.Study, "optimize", overtaken)
        work(tuning)
    assert [trial.state for trial in study.get_trials()][2:] == [TrialState.FAIL, TrialState.WAITING]
    assert [trial.number for trial in trials_of(tuning)] == [0, 1]
    work(plan(tmp_path, trials=3))
    assert [trial.number for trial in trials_of(tuning)] == [0, 1, 3], "what was too many waits for more to be asked"


@pytest.mark.filterwarnings("ignore:Heartbeat of storage")
def test_the_pruner_stops_what_is_below_the_median(tmp_path: Path, curves: dict[Any, list[float]]) -> None:
    tuning = plan(
        tmp_path,
        sampler="grid",
        pruner="median",
        only=[],
        search={"probe_lr": "1,2,3,4,5,6"},
        trials=6,
        given={"checkpoints": 4, "epochs": 4},
    )
    study = open_study(tuning)
    low = study.sampler._all_grids[5][0]  # type: ignore[attr-defined]
    curves |= {rate: [0.5, 0.6, 0.7, 0.7] for rate in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)} | {low: [0.1, 0.2, 0.9, 0.9]}
    work(tuning)
    assert [trial.state for trial in trials_of(tuning)] == [TrialState.COMPLETE] * 5 + [TrialState.PRUNED]
    assert study.get_trials()[5].intermediate_values == {1: 0.1, 2: 0.2}, "one checkpoint is let pass, the next is not"


@pytest.mark.filterwarnings("ignore:Heartbeat of storage")
def test_what_has_come_to_its_end_is_not_pruned(tmp_path: Path) -> None:
    """Where a run has fewer epochs than checkpoints, the last epoch is its end."""
    tuning = plan(tmp_path, trials=1, given={"checkpoints": 10, "epochs": 2})
    trial = open_study(tuning).ask()
    trial.should_prune = mock.Mock(return_value=False)  # type: ignore[method-assign]
    Objective(tuning)(trial)
    assert trial.should_prune.call_count == 1, "at the first of two checkpoints alone"


@pytest.mark.filterwarnings("ignore:Heartbeat of storage")
def test_a_pruned_run_lets_go_of_its_folder(tmp_path: Path) -> None:
    tuning = plan(tmp_path, trials=1)
    study = open_study(tuning)
    trial = study.ask()
    trial.should_prune = lambda: True  # type: ignore[method-assign]
    with pytest.raises(optuna.TrialPruned):
        Objective(tuning)(trial)
    digest = study.get_trials()[0].user_attrs["runs"][0]
    assert store.state(tmp_path / digest) == store.WAITING


def test_the_best_is_written_for_mario_run(tmp_path: Path, curves: dict[Any, list[float]]) -> None:
    curves[0.01] = [0.1, 0.9, 0.2]
    tuning = plan(tmp_path, sampler="grid", only=[], search={"probe_lr": "0.1,0.01"}, trials=None)
    work(tuning)
    best = best_trial(trials_of(tuning))
    assert best is not None
    assert (best.params, best.value) == ({"probe_lr": 0.01}, 0.9)
    write_best(tuning, best, tmp_path / "best.toml")
    read = read_preset(tmp_path / "best.toml")
    run = RunSpec.plan(Case.find("good-cbas", shift=read.shift), "random-init", given=read.of("random-init"))
    assert run.digest == best.user_attrs["runs"][0]
    assert "mean ood_val 0.9000" in (tmp_path / "best.toml").read_text()


def test_what_decided(tmp_path: Path) -> None:
    tuning = plan(tmp_path)
    add_trials(tuning, 9)
    assert importance(open_study(tuning)) == {}
    add_trials(tuning, 23)
    weights = importance(open_study(tuning))
    assert list(weights) == ["probe_lr", "dropout"]
    assert weights["probe_lr"] > 0.9


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"given": {"hidden_channels": 9}},
            "is of another tuning: given is .* there and .* here; choose another --study-name",
        ),
        ({"seeds": 2}, "pairs is"),
        ({"select": "id_val"}, "select is ood_val there and id_val here"),
        ({"only": ["dropout"]}, "space is"),
    ],
)
def test_a_study_of_something_else_is_refused(tmp_path: Path, asked: dict[str, Any], message: str) -> None:
    open_study(plan(tmp_path, name="mine"))
    open_study(plan(tmp_path, name="mine", trials=99, sampler="tpe", pruner="median"))
    with pytest.raises(MarioError, match=message):
        open_study(plan(tmp_path, name="mine", **asked))


def test_a_study_of_another_method_is_refused(tmp_path: Path) -> None:
    open_study(plan(tmp_path, name="mine"))
    other = Tuning.plan(CBAS, "grace", folder=tmp_path, name="mine")
    with pytest.raises(MarioError, match="method is random-init there and grace here"):
        open_study(other)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"sampler": "cmaes"}, "sampler must be one of tpe, random, grid, got 'cmaes'"),
        ({"pruner": "hyperband"}, "pruner must be one of median, none"),
        ({"select": "ood_test"}, "select must be one of ood_val, id_val, got 'ood_test'"),
        ({"trials": 0}, "trials must be an integer of at least 1, got 0"),
        ({"seeds": 0}, "seeds must be an integer of at least 1, got 0"),
        ({"name": "a/b"}, "the name of a study becomes the name of a file and cannot be 'a/b': it has '/'"),
        ({"given": {"hidden_channels": "-1"}}, "hidden_channels must be at least 1"),
    ],
)
def test_what_is_wrong_is_named_before_anything_begins(tmp_path: Path, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        plan(tmp_path, **asked)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        (["ood_val"], "good-cbas has no ood_val set to choose by: use --select id_val"),
        (["ood_val", "id_val"], "has no ood_val set to choose by: without a validation set nothing can be chosen"),
    ],
)
def test_a_dataset_without_the_set_to_choose_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: list[str], message: str
) -> None:
    load = Case.load

    def without(case: Case, **where: Any) -> Any:
        data = load(case, **where)
        for name in gone:
            del data[f"{name}_mask"]
        return data

    monkeypatch.setattr(Case, "load", without)
    with pytest.raises(MarioError, match=message):
        next(tune(plan(tmp_path)))
    assert not list(tmp_path.iterdir())
