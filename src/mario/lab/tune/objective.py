"""The objective of a tuning: the validation scores of a trial's runs, and nothing else of them."""

import itertools
import time
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from typing import Any

import optuna
from optuna.trial import Trial
from torch_geometric.data import Data

from mario.errors import MarioError, RunFailedError
from mario.files import write_text
from mario.lab import anonymous
from mario.lab.runs import store
from mario.lab.runs.execute import check_data, execute
from mario.lab.runs.lock import HeldError, alone_in
from mario.lab.runs.worker import disk_is_full
from mario.lab.spec import RunSpec
from mario.lab.tune.plan import Tuning
from mario.lab.tune.search_space import Between
from mario.lab.tune.study import checkpoints_of, counted
from mario.training import Epoch


class SurplusError(Exception):
    """Another worker started the last trial first."""


class TrialFailedError(Exception):
    """A trial failed; the study goes on."""


_OF_THE_STUDY = (optuna.exceptions.StorageInternalError, optuna.exceptions.UpdateFinishedTrialError)
"""Errors that a trial did not cause: the storage failed, or gave the trial to another worker."""


class Objective:
    """The best validation score of a run's checkpoints, averaged over the pairs of split and seed.

    It sees only that score of a run: no test score reaches the study.
    """

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.number: int | None = None
        """Of the trial that was started last."""
        self.raised: BaseException | None = None
        """The exception that ended that trial, if any."""
        self.stop = False
        """Whether the worker should end."""
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
        """End the current trial, from a signal handler: at once during training, but never inside a transaction.

        An interrupted transaction would block the other workers.
        """
        self.stop = True
        if self._training:
            raise KeyboardInterrupt

    def _try(self, trial: Trial) -> float:
        ahead = [other for other in counted(trial.study.get_trials(deepcopy=False)) if other.number < trial.number]
        if len(ahead) >= self.tuning.trials:
            raise SurplusError
        try:
            runs = self.tuning.runs({key: _suggest(trial, key, found) for key, found in self.tuning.space.items()})
            trial.set_user_attr("runs", [spec.digest for spec in runs])
            return self._score(trial, runs)
        except optuna.TrialPruned:
            raise
        except Exception as error:
            if isinstance(error, _OF_THE_STUDY) or disk_is_full(error):
                raise
            said = " ".join(f"{type(error).__name__}: {error}".split())
            trial.set_user_attr("error", anonymous.without_paths(said) if anonymous.wanted() else said)
            raise TrialFailedError from error

    def _score(self, trial: Trial, runs: Sequence[RunSpec]) -> float:
        last = checkpoints_of(runs[0])
        done = all(store.state(self.tuning.folder / spec.digest) == store.DONE for spec in runs)
        best = [-float("inf")] * len(runs)
        with ExitStack() as held:
            # All pairs advance together, so that each report averages over all of them.
            curves = [held.enter_context(closing(self._curve(spec))) for spec in runs]
            for step, scores in enumerate(itertools.zip_longest(*curves), start=1):
                best = [high if now is None else max(high, now) for high, now in zip(best, scores, strict=True)]
                trial.report(sum(best) / len(best), step)
                if step < last and not done and trial.should_prune():
                    raise optuna.TrialPruned
        return sum(best) / len(best)

    def _curve(self, spec: RunSpec) -> Generator[float, None, None]:
        """The validation score of each checkpoint of a run, which is executed unless it is done already."""
        folder, select = self.tuning.folder / spec.digest, self.tuning.select
        while True:
            found = store.look(folder)
            if found.state in (store.FAILED, store.BROKEN):
                raise RunFailedError(f"{folder}: {found.reason}")
            if found.result is not None:
                check_data(folder, self._graph(spec))
                yield from (point.scores[select] for point in found.result.curve)
                return
            begun = False
            try:
                for epoch in self._heeding(execute(spec, self._graph(spec), folder, device=self.tuning.device)):
                    if epoch.pause:
                        begun = True
                        yield epoch.record[select]
                if begun:
                    return
            except HeldError:  # another worker runs the same settings: use its score
                time.sleep(1.0)
            except Exception as error:
                if not disk_is_full(error):
                    with suppress(MarioError, OSError), alone_in(folder):
                        said = traceback.format_exc()
                        write_text(folder / "error.txt", anonymous.without_paths(said) if anonymous.wanted() else said)
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

    def _graph(self, spec: RunSpec) -> Data:
        if spec.split_seed not in self._graphs:
            self._graphs[spec.split_seed] = self.tuning.load(spec.split_seed)
        return self._graphs[spec.split_seed]


def _suggest(trial: Trial, key: str, found: Any) -> Any:
    if not isinstance(found, Between):
        return trial.suggest_categorical(key, found.values)
    if isinstance(found.low, int):
        return trial.suggest_int(key, found.low, int(found.high), log=found.log)
    return trial.suggest_float(key, found.low, found.high, log=found.log)
