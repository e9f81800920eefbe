"""Tuning: workers that try settings of a method, chosen and compared by validation scores alone."""

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from mario.errors import RunFailedError
from mario.lab.process import return_freed_memory
from mario.lab.runs.processes import after_parent, context, one_thread
from mario.lab.tune.objective import Objective, SurplusError, TrialFailedError
from mario.lab.tune.plan import Tuning
from mario.lab.tune.storage import failing_in_words
from mario.lab.tune.study import (
    TuneProgress,
    check_study_data,
    counted,
    open_study,
    orphaned,
    progress_of,
    queue_again,
    requeue_lost,
)

PATIENCE = 20.0  # seconds for a worker to give its trial back
LOOK_EVERY = 1.0  # seconds, at the study
DEATHS = 3  # of workers in a row, without a finished trial between them


def work(tuning: Tuning, until: float | None = None, objective: Objective | None = None) -> None:
    """Run trials until the study has all of them and no worker is busy.

    A worker that waits for others takes over the trials that they lose. No trial starts after the clock time ``until``.
    An interrupted trial is queued again, and its runs continue from their checkpoints.
    """
    with failing_in_words(tuning.storage):
        _work(tuning, until, objective or Objective(tuning))


def _work(tuning: Tuning, until: float | None, objective: Objective) -> None:
    study = open_study(tuning)
    orphans: dict[int, float] = {}
    while not objective.stop:
        _queue_lost(study, tuning)
        if until is not None and time.time() >= until:
            return
        if _queue_orphans(study, tuning, orphans):
            time.sleep(min(1.0, tuning.heartbeat))
            continue
        trials = counted(study.get_trials(deepcopy=False))
        if len(trials) >= tuning.trials:
            if not any(trial.state == TrialState.RUNNING for trial in trials):
                return
            time.sleep(min(1.0, tuning.heartbeat))
            continue
        objective.number = None
        try:
            no_fault = (SurplusError, TrialFailedError)
            study.optimize(objective, n_trials=1, catch=no_fault, callbacks=[_queue_surplus])
        except BaseException as error:
            if error is objective.raised:  # Optuna has marked the trial as failed
                _give_back(study, objective.number)
            elif isinstance(error, Exception) and _ended(study, objective.number):
                continue  # this worker was silent for too long, and another has the trial
            raise


def _queue_lost(study: optuna.Study, tuning: Tuning) -> None:
    """Queue trials again whose worker was silent for too long, or was killed before its first heartbeat."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)
    long_ago = datetime.now() - timedelta(seconds=60 * tuning.heartbeat)
    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        if "worker" not in trial.user_attrs and trial.datetime_start and trial.datetime_start < long_ago:
            with suppress(ValueError):  # another worker has seen it too
                study.tell(trial.number, state=TrialState.FAIL)
                requeue_lost(study, trial)


def _queue_orphans(study: optuna.Study, tuning: Tuning, seen: dict[int, float]) -> bool:
    """Queue trials again whose process was killed before it could; return whether some may still be alive.

    ``seen`` is when this worker saw each of them first: clocks of other machines may be wrong.
    """
    waiting = False
    for trial in orphaned(study.get_trials(deepcopy=False)):
        if time.monotonic() - seen.setdefault(trial.number, time.monotonic()) > 6 * tuning.heartbeat:
            requeue_lost(study, trial)
        else:
            waiting = True
    return waiting


def _queue_surplus(study: optuna.Study, trial: FrozenTrial) -> None:
    if trial.state == TrialState.FAIL and not {"runs", "error"} & trial.user_attrs.keys():
        queue_again(study, trial, lost=trial.user_attrs.get("lost", 0))


def _give_back(study: optuna.Study, number: int | None) -> None:
    with suppress(Exception):  # if the storage failed, the missing heartbeat informs the others
        if _ended(study, number):
            trial = study.get_trials(deepcopy=False)[number or 0]
            queue_again(study, trial, lost=trial.user_attrs.get("lost", 0))


def _ended(study: optuna.Study, number: int | None) -> bool:
    with suppress(Exception):
        return number is not None and study.get_trials(deepcopy=False)[number].state.is_finished()
    return False


def _worker(tuning: Tuning, until: float | None) -> None:
    """The process of a worker: one thread; it ends with its parent."""
    import torch

    torch.set_num_threads(1)
    return_freed_memory()
    objective = Objective(tuning)

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # giving the trial back takes a moment
        objective.interrupt()

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    signal.signal(signal.SIGTERM, interrupt)
    threading.Thread(target=after_parent, args=(partial(os.kill, os.getpid(), signal.SIGTERM),), daemon=True).start()
    try:
        work(tuning, until, objective)
        if objective.stop:  # between two trials: the study is not complete
            sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        sys.exit(f"mario: a worker of the tuning ended: {' '.join(str(error).split()) or type(error).__name__}")


def tune(tuning: Tuning, *, workers: int = 2, timeout: float | None = None) -> Iterator[TuneProgress]:
    """Bring the study to ``tuning.trials`` trials with ``workers`` processes of one thread, and report progress.

    Other processes, on this machine or others, may work on the same study: all of them end when it has its number of
    trials. After ``timeout`` seconds no trial starts; running trials finish.
    """
    with failing_in_words(tuning.storage):
        yield from _tune(tuning, workers, timeout)


def _tune(tuning: Tuning, workers: int, timeout: float | None) -> Iterator[TuneProgress]:
    data = tuning.load(tuning.pairs[0][0])  # raise an error of the data once, not in every trial
    study = open_study(tuning)
    check_study_data(study, tuning, data)
    until = None if timeout is None else time.time() + timeout
    server = context(__name__)
    processes: list[BaseProcess] = []
    deaths, done_at_death = 0, -1
    now = progress_of(study, tuning.trials)
    yield now
    if now.done >= tuning.trials:
        return
    # Ctrl-C is raised in the main thread. Interrupting a transaction there would block the workers.
    reader = ThreadPoolExecutor(1)
    try:
        for _ in range(min(workers, tuning.trials)):
            processes.append(_start(server, tuning, until))
        while processes:
            wait([process.sentinel for process in processes], timeout=LOOK_EVERY)
            ended = [process for process in processes if not process.is_alive()]
            processes = [process for process in processes if process.is_alive()]
            now = reader.submit(progress_of, study, tuning.trials).result()
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
                "and kept; repeat the same command to continue"
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
