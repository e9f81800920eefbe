"""``mario tune``."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mario.cli.run import progress_bar
from mario.errors import MarioError, RunFailedError
from mario.lab.tune.plan import Tuning
from mario.lab.tune.search_space import spread
from mario.lab.tune.storage import without_password
from mario.lab.tune.work import (
    FrozenTrial,
    TrialState,
    counted,
    importance,
    open_study,
    retry_failed,
    standing,
    tune,
    write_best,
)

SHOWN = 10
COLUMNS = 6


def tune_one(
    dataset: str,
    method: str,
    *,
    workers: int,
    timeout: float | None,
    retry: bool,
    out: Path | None,
    quiet: bool,
    **asked: Any,
) -> None:
    """Carry out what :meth:`Tuning.plan` makes of ``asked``, show it, and write the best settings to ``out``."""
    console = Console(quiet=quiet)
    tuning = Tuning.plan(dataset, method, **asked)
    out = out or tuning.folder / "tune" / f"{tuning.name}.toml"
    if out.suffix not in (".toml", ".json"):
        raise MarioError(f"settings are written to .toml or .json, got {out}")
    if out.parent.exists() and not out.parent.is_dir():
        raise MarioError(f"cannot write {out}: {out.parent} is not a folder")
    pairs = "1 split and seed" if len(tuning.pairs) == 1 else f"{len(tuning.pairs)} splits and seeds"
    console.print(
        f"{tuning.method} on {tuning.dataset}, {tuning.domain}, {tuning.shift}, {tuning.setting}; by {tuning.select} "
        f"over {pairs}; study {tuning.name} in {without_password(tuning.storage)}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    for key, found in tuning.space.items():
        console.print(f"  {key}: {found}", highlight=False, markup=False, soft_wrap=True)
    if retry and (count := retry_failed(tuning)):
        console.print(f"trying {count} trials again that failed", highlight=False, markup=False)
    with progress_bar(console) as progress:
        task = progress.add_task("trials", total=tuning.trials, note="starting")
        for now in tune(tuning, workers=workers, timeout=timeout):
            note = f"best {now.best.values[0]:.4f} (trial {now.best.number})" if now.best else ""
            note += f"  {now.running} running" + (f"  {now.failed} failed" if now.failed else "")
            progress.update(task, completed=now.done, total=now.total, note=note)
    study = open_study(tuning)
    trials = counted(study.get_trials())
    now = standing(study, tuning.trials)
    if now.best is None:
        failed = [trial for trial in trials if trial.state == TrialState.FAIL]
        if failed:
            raise RunFailedError(f"all of {len(failed)} trials failed, the last: {_reason(failed[-1])}")
        raise RunFailedError("no trial ended in the time given: the same command goes on")
    console.print(trial_table(trials, tuning.select))
    if weights := importance(study):
        told = ", ".join(f"{key} {weight:.2f}" for key, weight in list(weights.items())[:5])
        console.print(f"what decided most (PED-ANOVA, of 1): {told}", highlight=False, markup=False, soft_wrap=True)
    write_best(tuning, now.best, out)
    settings = ", ".join(f"{key}={value}" for key, value in spread(now.best.params).items())
    console.print(
        f"best: trial {now.best.number}, {tuning.select} {now.best.values[0]:.4f}: {settings}", soft_wrap=True
    )
    console.print(
        f"written to {out}: mario run {tuning.dataset} --settings {out}", highlight=False, markup=False, soft_wrap=True
    )


def trial_table(trials: list[FrozenTrial], select: str) -> Table:
    """The best trials, and the last failures."""
    ended = [trial for trial in trials if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    ended.sort(key=lambda trial: (trial.state != TrialState.COMPLETE, -(trial.value or 0.0), trial.number))
    failed = [trial for trial in trials if trial.state == TrialState.FAIL]
    names = list(dict.fromkeys(key for trial in trials for key in trial.params))
    columns = names if len(names) <= COLUMNS else ["settings"]

    def cells(trial: FrozenTrial) -> list[str]:
        if columns == names:
            return [_short(trial.params.get(name, "")) for name in names]
        return [", ".join(f"{key}={_short(value)}" for key, value in trial.params.items())]

    table = Table("trial", "state", f"mean {select}", *columns, title=f"best of {len(trials)} trials")
    for trial in ended[:SHOWN]:
        state = "done" if trial.state == TrialState.COMPLETE else "pruned"
        score = "" if trial.value is None else f"{100 * trial.value:.2f} %"
        table.add_row(str(trial.number), state, score, *cells(trial))
    for trial in failed[-3:]:
        table.add_row(str(trial.number), "failed", "", *cells(trial))
    if failed:
        table.caption = f"{len(failed)} failed, the last: {_reason(failed[-1])}"
    return table


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _reason(trial: FrozenTrial) -> str:
    return trial.user_attrs.get("error", "its worker was lost")
