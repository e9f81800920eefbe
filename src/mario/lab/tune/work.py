"""Tuning: trials of a method's settings, chosen and compared by validation scores alone."""

import itertools
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any

from torch_geometric.data import Data

from mario.errors import MarioError, RunFailedError

try:
    import optuna
    from optuna.samplers import BaseSampler, GridSampler, RandomSampler, TPESampler
    from optuna.trial import FrozenTrial, Trial, TrialState
except ImportError:
    raise MarioError("tuning needs Optuna, which is not installed: pip install 'mario-gcl[tune]'") from None

from mario.files import write_text
from mario.lab.launch.processes import after_parent, context, one_thread
from mario.lab.presets.file import write_preset
from mario.lab.process import return_freed_memory
from mario.lab.runs import store
from mario.lab.runs.execute import Run, execute
from mario.lab.tune.plan import Tuning
from mario.lab.tune.search_space import Between, grid_of
from mario.lab.tune.storage import open_storage, without_password
from mario.training import Epoch

LOSSES = 2  # how often a trial may lose its worker and be tried again
PATIENCE = 20.0  # seconds for a worker to give its trial back
LOOK_EVERY = 1.0  # seconds, at the study
DEATHS = 3  # of workers in a row, without a trial that ended between them


def open_study(tuning: Tuning) -> optuna.Study:
    """The study in its storage, made if it is not there; one of other trials under the same name is refused."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = open_storage(tuning.storage, heartbeat=tuning.heartbeat, lost=_lost)
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


class _ByNumber(BaseSampler):
    """A sampler seeded by the number of each trial.

    So no two workers draw the same values, and with one worker a study comes out the same each time.
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
    # The first third of a run says little: a learning rate may not have had its warm-up.
    spared = _checkpoints(tuning.runs({})[0]) // 3
    return optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=spared + 1)  # Optuna spares those below it


def _checkpoints(run: Run) -> int:
    """How many the run makes: no more than it has epochs."""
    return min(run.settings["epochs"], run.settings["checkpoints"])


# Which trials there are ---------------------------------------------------------------------------------------------


def counted(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that have begun, without those that another was queued instead of."""
    replaced = {number for trial in trials for number in trial.user_attrs.get("instead_of", ())}
    return [trial for trial in trials if trial.state != TrialState.WAITING and trial.number not in replaced]


def _queue_again(study: optuna.Study, trial: FrozenTrial, *, lost: int) -> None:
    """Queue the same values once more, for whichever worker comes next."""
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


def _lost(study: optuna.Study, trial: FrozenTrial) -> None:
    """Try a trial again whose worker died, unless it takes every worker with it."""
    lost = trial.user_attrs.get("lost", 0)
    if lost < LOSSES:
        _queue_again(study, trial, lost=lost + 1)


@dataclass(frozen=True)
class Standing:
    """How far a study is."""

    done: int
    total: int
    running: int
    pruned: int
    failed: int
    best: FrozenTrial | None


def standing(study: optuna.Study, total: int) -> Standing:
    trials = counted(study.get_trials(deepcopy=False))
    states = [trial.state for trial in trials]
    running = states.count(TrialState.RUNNING)
    return Standing(
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


# One trial ----------------------------------------------------------------------------------------------------------


class _SurplusError(Exception):
    """Another worker was quicker to begin the last trial."""


class _TrialFailedError(Exception):
    """A trial that could not end, which is no fault of the study."""


_OF_THE_STUDY = (optuna.exceptions.StorageInternalError, optuna.exceptions.UpdateFinishedTrialError)
"""Errors that are no fault of a trial: the storage failed, or has given the trial to another worker."""


class Objective:
    """The mean over the pairs of the best validation score of a run's checkpoints.

    It sees nothing of a run but that score: no test score reaches the study.
    """

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.number: int | None = None
        """Of the trial that was begun last."""
        self.raised: BaseException | None = None
        """What ended that trial, if it did not end well."""
        self.stop = False
        """Whether the worker was asked to end."""
        self._training = False
        self._graphs: dict[int, Data] = {}

    def __call__(self, trial: Trial) -> float:
        self.number, self.raised = trial.number, None
        try:
            return self._try(trial)
        except BaseException as error:
            self.raised = error
            raise

    def interrupt(self) -> None:
        """End the trial at work, for a signal handler: at once in training, but never in a word with the storage.

        A transaction that is cut short would keep everybody else from writing.
        """
        self.stop = True
        if self._training:
            raise KeyboardInterrupt

    def _try(self, trial: Trial) -> float:
        ahead = [other for other in counted(trial.study.get_trials(deepcopy=False)) if other.number < trial.number]
        if len(ahead) >= self.tuning.trials:
            raise _SurplusError
        try:
            runs = self.tuning.runs({key: _suggest(trial, key, found) for key, found in self.tuning.space.items()})
            trial.set_user_attr("runs", [run.digest() for run in runs])
            return self._score(trial, runs)
        except optuna.TrialPruned:
            raise
        except Exception as error:
            if isinstance(error, _OF_THE_STUDY) or _disk_is_full(error):
                raise
            trial.set_user_attr("error", " ".join(f"{type(error).__name__}: {error}".split()))
            raise _TrialFailedError from error

    def _score(self, trial: Trial, runs: Sequence[Run]) -> float:
        last = _checkpoints(runs[0])
        done = all(store.state(self.tuning.folder / run.digest()) == store.DONE for run in runs)
        best = [-float("inf")] * len(runs)
        with ExitStack() as held:
            # All pairs side by side, so that what is reported at a checkpoint is of all of them.
            curves = [held.enter_context(closing(self._curve(run))) for run in runs]
            for step, scores in enumerate(itertools.zip_longest(*curves), start=1):
                best = [high if now is None else max(high, now) for high, now in zip(best, scores, strict=True)]
                trial.report(sum(best) / len(best), step)
                if step < last and not done and trial.should_prune():
                    raise optuna.TrialPruned
        return sum(best) / len(best)

    def _curve(self, run: Run) -> Generator[float, None, None]:
        """The validation score of each checkpoint of ``run``, which is carried out unless it is done already."""
        folder, select = self.tuning.folder / run.digest(), self.tuning.select
        while True:
            found = store.look(folder)
            if found.state in (store.FAILED, store.BROKEN):
                raise RunFailedError(f"{folder}: {found.reason}")
            if found.result is not None:
                yield from (point[select] for point in found.result["curve"])
                return
            begun = False
            try:
                for epoch in self._heeding(execute(run, self._graph(run), folder, device=self.tuning.device)):
                    if epoch.pause:
                        begun = True
                        yield epoch.record[select]
                if begun:
                    return
            except store.HeldError:  # another worker has the same settings: its score will do
                time.sleep(1.0)
            except Exception as error:
                if not _disk_is_full(error):
                    with suppress(MarioError):
                        write_text(folder / "error.txt", traceback.format_exc())
                raise

    def _heeding(self, epochs: Iterator[Epoch]) -> Iterator[Epoch]:
        while True:
            if self.stop:
                raise KeyboardInterrupt
            self._training = True
            try:
                epoch = next(epochs, None)
            finally:
                self._training = False
            if epoch is None:
                return
            yield epoch

    def _graph(self, run: Run) -> Data:
        if run.split_seed not in self._graphs:
            self._graphs[run.split_seed] = self.tuning.load(run.split_seed)
        return self._graphs[run.split_seed]


def _suggest(trial: Trial, key: str, found: Any) -> Any:
    if not isinstance(found, Between):
        return trial.suggest_categorical(key, found.values)
    if isinstance(found.low, int):
        return trial.suggest_int(key, found.low, int(found.high), log=found.log)
    return trial.suggest_float(key, found.low, found.high, log=found.log)


def _disk_is_full(error: BaseException) -> bool:
    from mario.lab.launch.worker import disk_is_full

    return disk_is_full(error)


# One worker ---------------------------------------------------------------------------------------------------------


def work(tuning: Tuning, until: float | None = None, objective: Objective | None = None) -> None:
    """Take trials until the study has as many as it should and none is at work any more.

    Whoever waits for others takes over what they lose. With ``until``, a time of the clock, no trial begins after it.
    A trial that is interrupted is queued again, and its runs go on from their checkpoints.
    """
    study = open_study(tuning)
    objective = objective or Objective(tuning)
    while not objective.stop:
        _queue_lost(study, tuning)
        trials = counted(study.get_trials(deepcopy=False))
        if until is not None and time.time() >= until:
            return
        if len(trials) >= tuning.trials:
            if not any(trial.state == TrialState.RUNNING for trial in trials):
                return
            time.sleep(min(1.0, tuning.heartbeat))
            continue
        objective.number = None
        try:
            no_fault = (_SurplusError, _TrialFailedError)
            study.optimize(objective, n_trials=1, catch=no_fault, callbacks=[_queue_surplus])
        except BaseException as error:
            if error is objective.raised:  # Optuna has told the storage that the trial failed
                _give_back(study, objective.number)
            elif isinstance(error, Exception) and _ended(study, objective.number):
                continue  # this worker was silent for too long, and the trial was given to another
            raise


def _queue_lost(study: optuna.Study, tuning: Tuning) -> None:
    """Queue again what was lost with its worker: silent for too long, or killed before it could give a sign of life."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)
    long_ago = datetime.now() - timedelta(seconds=60 * tuning.heartbeat)
    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        if "worker" not in trial.user_attrs and trial.datetime_start and trial.datetime_start < long_ago:
            with suppress(ValueError):  # another worker has seen it too
                study.tell(trial.number, state=TrialState.FAIL)
                _lost(study, trial)


def _queue_surplus(study: optuna.Study, trial: FrozenTrial) -> None:
    if trial.state == TrialState.FAIL and not {"runs", "error"} & trial.user_attrs.keys():
        _queue_again(study, trial, lost=trial.user_attrs.get("lost", 0))


def _give_back(study: optuna.Study, number: int | None) -> None:
    with suppress(Exception):  # the storage may be what failed; then silence will tell the others
        if _ended(study, number):
            trial = study.get_trials(deepcopy=False)[number or 0]
            _queue_again(study, trial, lost=trial.user_attrs.get("lost", 0))


def _ended(study: optuna.Study, number: int | None) -> bool:
    with suppress(Exception):
        return number is not None and study.get_trials(deepcopy=False)[number].state.is_finished()
    return False


def _worker(tuning: Tuning, until: float | None) -> None:
    """The process of a worker: one thread, and it ends when its parent does."""
    import torch

    torch.set_num_threads(1)
    return_freed_memory()
    objective = Objective(tuning)

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: giving a trial back takes a moment
        objective.interrupt()

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this process
    signal.signal(signal.SIGTERM, interrupt)
    threading.Thread(target=after_parent, args=(partial(os.kill, os.getpid(), signal.SIGTERM),), daemon=True).start()
    try:
        work(tuning, until, objective)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        sys.exit(f"mario: a worker of the tuning ended: {' '.join(str(error).split()) or type(error).__name__}")


# All of it ----------------------------------------------------------------------------------------------------------


def retry_failed(tuning: Tuning) -> int:
    """Queue every trial again that failed, and make its runs ready; return how many there were."""
    study = open_study(tuning)
    failed = [trial for trial in counted(study.get_trials()) if trial.state == TrialState.FAIL]
    for trial in failed:
        for digest in trial.user_attrs.get("runs", ()):
            store.clear_for_retry(tuning.folder / digest)
        _queue_again(study, trial, lost=0)
    return len(failed)


def tune(tuning: Tuning, *, workers: int = 2, timeout: float | None = None) -> Iterator[Standing]:
    """Carry the study to ``tuning.trials`` trials with ``workers`` processes of one thread, here and wherever else.

    Other processes, on this machine or others, may work at the same study: all of them end when it has as many trials
    as were asked for. After ``timeout`` seconds no trial begins; those at work end.
    """
    tuning.load(tuning.pairs[0][0])  # what is wrong with the data is told once and not by every trial
    study = open_study(tuning)
    until = None if timeout is None else time.time() + timeout
    server = context(__name__)
    processes: list[BaseProcess] = []
    deaths, done_at_death = 0, -1
    now = standing(study, tuning.trials)
    yield now
    if now.done >= tuning.trials:
        return
    # Ctrl-C is raised in the main thread: one that cut its transaction short would keep the workers from writing.
    reader = ThreadPoolExecutor(1)
    try:
        for _ in range(min(workers, tuning.trials)):
            processes.append(_start(server, tuning, until))
        while processes:
            wait([process.sentinel for process in processes], timeout=LOOK_EVERY)
            ended = [process for process in processes if not process.is_alive()]
            processes = [process for process in processes if process.is_alive()]
            now = reader.submit(standing, study, tuning.trials).result()
            yield now
            for process in ended:
                if process.exitcode == 0:
                    continue
                deaths = deaths + 1 if now.done == done_at_death else 1
                done_at_death = now.done
                if deaths < DEATHS:
                    processes.append(_start(server, tuning, until))
        if deaths >= DEATHS and now.done < tuning.trials:
            raise RunFailedError(
                f"workers of the tuning died {deaths} times in a row; {now.done} of {tuning.trials} trials are done "
                "and kept, and the same command goes on"
            )
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(PATIENCE)
            if process.is_alive():
                process.kill()
        reader.shutdown()


def _start(server: Any, tuning: Tuning, until: float | None) -> BaseProcess:
    with one_thread():
        process: BaseProcess = server.Process(target=_worker, args=(tuning, until), daemon=True)
        process.start()
    return process


def importance(study: optuna.Study) -> dict[str, float]:
    """How much each searched setting decided, by PED-ANOVA, from 1 for all of it; none of fewer than ten trials."""
    complete = [trial for trial in study.get_trials(deepcopy=False) if trial.state == TrialState.COMPLETE]
    if len(complete) < 10 or len({trial.values[0] for trial in complete}) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return optuna.importance.get_param_importances(study)


def write_best(tuning: Tuning, trial: FrozenTrial, path: Path) -> None:
    """Write the complete settings of ``trial`` to a file that ``mario run --settings`` takes."""
    run = tuning.runs(trial.params)[0].as_dict()
    searched = ", ".join(f"{key} = {value}" for key, value in trial.params.items())
    write_preset(
        path,
        run,
        comment=f"The best of the study {tuning.name}: trial {trial.number}, mean {tuning.select} "
        f"{trial.values[0]:.4f} over {len(tuning.pairs)} pairs of split and seed.\nSearched: {searched}.\n"
        f"mario run {tuning.dataset} --settings {path.name}",
    )
