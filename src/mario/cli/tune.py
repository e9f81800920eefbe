"""``mario tune``: a search for settings, and a preset of the best."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mario.cli.options import (
    MOST_SEEDS,
    Anonymous,
    Dataset,
    Device,
    Domain,
    Encoder,
    Quiet,
    Root,
    Set,
    Setting,
    Shift,
    assignments,
    complete_method,
    given_settings,
    listed,
)
from mario.cli.progress import progress_bar
from mario.cli.starting import starting
from mario.errors import MarioError, RunFailedError
from mario.percent import percent

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial
    from rich.console import Console
    from rich.table import Table

    from mario.lab.tune.plan import Tuning

SHOWN = 10
COLUMNS = 6


def tune(
    dataset: Dataset,
    method: Annotated[str, typer.Option(help="Method: see `mario methods`.", autocompletion=complete_method)] = "mario",
    shift: Shift = None,
    domain: Domain = None,
    setting: Setting = None,
    encoder: Encoder = None,
    trials: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, help="Total number, including earlier ones; default 50, or the whole grid."),
    ] = None,
    sampler: Annotated[str, typer.Option(help="tpe, random, or grid: the paper's grid.")] = "tpe",
    only: Annotated[
        list[str] | None, typer.Option(help="Search only these settings, separated by commas; repeatable.")
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=RANGE", help="Another range: NAME=a,b,c, NAME=LOW:HIGH or NAME=LOW:HIGH:log; repeatable."
        ),
    ] = None,
    settings: Set = None,
    select: Annotated[str, typer.Option(help="The validation score that decides: ood_val or id_val.")] = "ood_val",
    seeds: Annotated[int, typer.Option(min=1, max=MOST_SEEDS, help="Runs per trial, each on its own split.")] = 1,
    pruner: Annotated[
        str, typer.Option(help="median: stop a trial below the median of the others at a checkpoint; or none.")
    ] = "median",
    storage: Annotated[
        str | None, typer.Option(metavar="FILE|URL", help="Where trials are kept; default RUNS/tune/NAME.db.")
    ] = None,
    study_name: Annotated[str | None, typer.Option(help="Default: made of dataset, domain, shift and method.")] = None,
    workers: Annotated[int, typer.Option(min=1, max=1024, help="Trials at once, one thread each.")] = 2,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds after which no trial starts.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed trials again.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Preset file of the best, .toml or .json; default RUNS/tune/NAME.toml."),
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder of the runs; finished runs are not repeated.")] = Path("runs"),
    device: Device = "auto",
    root: Root = None,
    anonymous: Anonymous = False,
    quiet: Quiet = False,
) -> None:
    """Find settings of a method by validation scores, and write the best for `mario run --preset`.

    Repeat the same command to continue. On another machine with the same database, it shares the trials.
    """
    from rich.console import Console

    from mario.lab.case import Case

    case = Case.find(dataset, domain=domain, shift=shift, setting=setting)
    with starting(f"{method} on {dataset}: importing torch", quiet=quiet):
        from mario.lab.anonymous import ask
        from mario.lab.tune.plan import Tuning
        from mario.lab.tune.storage import failing_in_words

    if anonymous:
        ask([case])
    tuning = Tuning.plan(
        case,
        method,
        given=given_settings(settings, encoder),
        only=listed(only),
        search=assignments(search, "--search", "lr=0.001:0.1:log", "NAME=RANGE"),
        seeds=seeds,
        select=select,
        sampler=sampler,
        pruner=pruner,
        trials=trials,
        name=study_name,
        storage=storage,
        folder=runs,
        root=root,
        device=device,
    )
    out = out or tuning.folder / "tune" / f"{tuning.name}.toml"
    if out.suffix not in (".toml", ".json"):
        raise MarioError(f"a preset is written to .toml or .json, got {out}")
    if out.parent.exists() and not out.parent.is_dir():
        raise MarioError(f"cannot write {out}: {out.parent} is not a folder")
    console = Console(quiet=quiet, highlight=False, markup=False, soft_wrap=True)
    _announce(console, tuning)
    with failing_in_words(tuning.storage):
        _search(console, tuning, workers=workers, timeout=timeout, retry=retry_failed)
        _conclude(console, tuning, out)


def _announce(console: "Console", tuning: "Tuning") -> None:
    from mario.lab.tune.storage import without_password

    pairs = "1 split and seed" if len(tuning.pairs) == 1 else f"{len(tuning.pairs)} splits and seeds"
    console.print(
        f"{tuning.method} on {tuning.case}; by {tuning.select} over {pairs}; "
        f"study {tuning.name} in {without_password(tuning.storage)}"
    )
    for key, found in tuning.space.items():
        console.print(f"  {key}: {found}")


def _search(console: "Console", tuning: "Tuning", *, workers: int, timeout: float | None, retry: bool) -> None:
    from mario.lab.tune.study import retry_failed
    from mario.lab.tune.work import tune

    if retry and (count := retry_failed(tuning)):
        console.print(f"trying {count} failed trials again")
    with progress_bar(console) as progress:
        task = progress.add_task("trials", total=tuning.trials, note="starting")
        for now in tune(tuning, workers=workers, timeout=timeout):
            note = f"best {percent(now.best.values[0])} (trial {now.best.number})" if now.best else ""
            note += f"  {now.running} running" + (f"  {now.failed} failed" if now.failed else "")
            progress.update(task, completed=now.done, total=now.total, note=note)


def _conclude(console: "Console", tuning: "Tuning", out: Path) -> None:
    """Print the trials and write the best settings to ``out``."""
    from optuna.trial import TrialState

    from mario.lab.tune.search_space import spread
    from mario.lab.tune.study import best_trial, counted, importance, open_study, write_best

    study = open_study(tuning)
    trials = counted(study.get_trials())
    best = best_trial(trials)
    if best is None:
        failed = [trial for trial in trials if trial.state == TrialState.FAIL]
        if failed:
            raise RunFailedError(f"all of {len(failed)} trials failed, the last: {_reason(failed[-1])}")
        raise RunFailedError("no trial finished in the given time: repeat the same command to continue")
    console.print(trial_table(trials, tuning.select))
    if weights := importance(study):
        shown = ", ".join(f"{key} {weight:.2f}" for key, weight in list(weights.items())[:5])
        console.print(f"importance of the settings (PED-ANOVA): {shown}")
    write_best(tuning, best, out)
    settings = ", ".join(f"{key}={value}" for key, value in spread(best.params).items())
    console.print(f"best: trial {best.number}, {tuning.select} {percent(best.values[0])}: {settings}")
    console.print(f"written to {out}: mario run {tuning.case.dataset} --preset {out}")


def trial_table(trials: "list[FrozenTrial]", select: str) -> "Table":
    """The best trials and the last failures."""
    from optuna.trial import TrialState
    from rich.table import Table

    ended = [trial for trial in trials if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    ended.sort(key=lambda trial: (trial.state != TrialState.COMPLETE, -(trial.value or 0.0), trial.number))
    failed = [trial for trial in trials if trial.state == TrialState.FAIL]
    names = list(dict.fromkeys(key for trial in trials for key in trial.params))
    columns = names if len(names) <= COLUMNS else ["settings"]

    def cells(trial: "FrozenTrial") -> list[str]:
        if columns == names:
            return [_short(trial.params.get(name, "")) for name in names]
        return [", ".join(f"{key}={_short(value)}" for key, value in trial.params.items())]

    table = Table("trial", "state", f"mean {select}", *columns, title=f"best of {len(trials)} trials")
    for trial in ended[:SHOWN]:
        state = "done" if trial.state == TrialState.COMPLETE else "pruned"
        score = percent(trial.value)
        table.add_row(str(trial.number), state, score, *cells(trial))
    for trial in failed[-3:]:
        table.add_row(str(trial.number), "failed", "", *cells(trial))
    if failed:
        table.caption = f"{len(failed)} failed, the last: {_reason(failed[-1])}"
    return table


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _reason(trial: "FrozenTrial") -> str:
    return str(trial.user_attrs.get("error", "its worker was lost"))
