"""The Optuna study of a tuning: its storage, its sampler, its trials and the best of them."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.samplers import BaseSampler, GridSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.fingerprint import fingerprint
from mario.lab.presets.file import write_preset
from mario.lab.runs import store
from mario.lab.spec import RunSpec
from mario.lab.tune.plan import Tuning
from mario.lab.tune.search_space import grid_of
from mario.lab.tune.storage import open_storage, without_password

LOSSES = 2  # how often a trial may lose its worker and be tried again


def open_study(tuning: Tuning) -> optuna.Study:
    """The study in its storage, created if needed; a study of another tuning with the same name is refused."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = open_storage(tuning.storage, heartbeat=tuning.heartbeat, lost=requeue_lost)
    study = optuna.create_study(
        storage=storage,
        study_name=tuning.name,
        direction="maximize",
        sampler=_make_sampler(tuning),
        pruner=_make_pruner(tuning),
        load_if_exists=True,
    )
    there, asked = study.user_attrs.get("tuning"), tuning.identity()
    if there is None:
        study.set_user_attr("tuning", asked)
    elif there != asked:
        key = next(key for key in asked if there.get(key) != asked[key])
        raise MarioError(
            f"the study {tuning.name} in {without_password(tuning.storage)} is of another tuning: {key} is "
            f"{there.get(key)} there and {asked[key]} here; choose another --study-name"
        )
    return study


def check_study_data(study: optuna.Study, tuning: Tuning, data: Data) -> None:
    """Note the fingerprint of the first split in the study, or refuse a study of trials on other data."""
    there, now = study.user_attrs.get("data"), fingerprint(data)
    if there is None:
        study.set_user_attr("data", now)
    elif there != now:
        raise MarioError(
            f"the trials of the study {tuning.name} in {without_password(tuning.storage)} are of other data: the "
            f"fingerprint of {tuning.case.dataset} is {there} there and {now} here; choose another --study-name"
        )


class _ByNumber(BaseSampler):
    """A sampler seeded by the number of each trial.

    No two workers draw the same values, and with one worker a study is reproducible.
    """

    def __init__(self, make: Callable[[int], BaseSampler]) -> None:
        self._make = make
        self._number, self._sampler = -1, make(0)

    def _of(self, trial: FrozenTrial) -> BaseSampler:
        if trial.number != self._number:
            self._number, self._sampler = trial.number, self._make(trial.number)
        return self._sampler

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, Any]:
        return self._of(trial).infer_relative_search_space(study, trial)

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, Any]) -> dict[str, Any]:
        return self._of(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        return self._of(trial).sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self._of(trial).before_trial(study, trial)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        self._of(trial).after_trial(study, trial, state, values)


def _make_sampler(tuning: Tuning) -> BaseSampler:
    if tuning.sampler == "grid":
        return GridSampler(grid_of(tuning.space), seed=0)
    if tuning.sampler == "random":
        return _ByNumber(lambda number: RandomSampler(seed=number))
    return _ByNumber(lambda number: TPESampler(seed=number))


def _make_pruner(tuning: Tuning) -> optuna.pruners.BasePruner:
    if tuning.pruner == "none":
        return optuna.pruners.NopPruner()
    # The first third of a run says little: the learning rate may still warm up.
    spared = checkpoints_of(tuning.runs({})[0]) // 3
    return optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=spared + 1)  # Optuna spares steps below


def checkpoints_of(spec: RunSpec) -> int:
    """The number of checkpoints of a run: at most one per epoch."""
    return int(min(spec.settings["epochs"], spec.settings["checkpoints"]))


def counted(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that have started, without those that were replaced by another or are orphaned."""
    gone = _replaced(trials) | {trial.number for trial in orphaned(trials)}
    return [trial for trial in trials if trial.state != TrialState.WAITING and trial.number not in gone]


def orphaned(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Trials that are to be tried again and are not in the queue.

    A trial is given up and queued again in two transactions. A process that is killed between them leaves an orphan.
    """
    replaced = _replaced(trials)
    given_up = [trial for trial in trials if trial.state == TrialState.FAIL and "error" not in trial.user_attrs]
    return [t for t in given_up if t.number not in replaced and t.user_attrs.get("lost", 0) < LOSSES]


def _replaced(trials: Sequence[FrozenTrial]) -> set[int]:
    """The numbers of trials that were queued again, and of those that were queued in place of the same trial."""
    replaced: set[int] = set()
    instead: dict[int, int] = {}
    for trial in trials:
        before = trial.user_attrs.get("instead_of", ())
        replaced.update(before)
        if before and instead.setdefault(before[-1], trial.number) != trial.number:
            replaced.add(trial.number)
    return replaced


def queue_again(study: optuna.Study, trial: FrozenTrial, *, lost: int) -> None:
    """Queue the same values again for the next worker."""
    before = trial.user_attrs.get("instead_of", [])
    study.add_trial(
        optuna.create_trial(
            state=TrialState.WAITING,
            params=trial.params,
            distributions=trial.distributions,
            user_attrs={"instead_of": [*before, trial.number], "lost": lost},
            system_attrs=trial.system_attrs,
        )
    )


def requeue_lost(study: optuna.Study, trial: FrozenTrial) -> None:
    """Try a trial again whose worker died, unless it killed several."""
    lost = trial.user_attrs.get("lost", 0)
    if lost < LOSSES:
        queue_again(study, trial, lost=lost + 1)


@dataclass(frozen=True)
class TuneProgress:
    """The progress of a study, in numbers of trials."""

    done: int
    total: int
    running: int
    pruned: int
    failed: int
    best: FrozenTrial | None


def progress_of(study: optuna.Study, total: int) -> TuneProgress:
    trials = counted(study.get_trials(deepcopy=False))
    states = [trial.state for trial in trials]
    running = states.count(TrialState.RUNNING)
    return TuneProgress(
        done=len(trials) - running,
        total=max(total, len(trials)),
        running=running,
        pruned=states.count(TrialState.PRUNED),
        failed=states.count(TrialState.FAIL),
        best=best_trial(trials),
    )


def best_trial(trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """The complete trial with the highest validation score, the earliest of equals."""
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    return max(complete, key=lambda trial: (trial.values[0], -trial.number), default=None)


def retry_failed(tuning: Tuning) -> int:
    """Queue every failed trial again and prepare its runs; return how many there were."""
    study = open_study(tuning)
    failed = [trial for trial in counted(study.get_trials()) if trial.state == TrialState.FAIL]
    for trial in failed:
        for digest in trial.user_attrs.get("runs", ()):
            store.clear_for_retry(tuning.folder / digest)
        queue_again(study, trial, lost=0)
    return len(failed)


def importance(study: optuna.Study) -> dict[str, float]:
    """The importance of each searched setting by PED-ANOVA, in fractions of 1; empty for fewer than ten trials."""
    complete = [trial for trial in study.get_trials(deepcopy=False) if trial.state == TrialState.COMPLETE]
    if len(complete) < 10 or len({trial.values[0] for trial in complete}) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return optuna.importance.get_param_importances(study)


def write_best(tuning: Tuning, trial: FrozenTrial, path: Path) -> None:
    """Write the complete settings of ``trial`` to a file for ``mario run --preset``."""
    run = tuning.runs(trial.params)[0].to_dict()
    searched = ", ".join(f"{key} = {value}" for key, value in trial.params.items())
    write_preset(
        path,
        run,
        comment=f"The best of the study {tuning.name}: trial {trial.number}, mean {tuning.select} "
        f"{trial.values[0]:.4f} over {len(tuning.pairs)} pairs of split and seed.\nSearched: {searched}.\n"
        f"mario run {tuning.case.dataset} --preset {path.name}",
    )
