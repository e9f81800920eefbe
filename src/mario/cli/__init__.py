"""The command line. Nothing here imports torch before a command needs it, so that ``mario --help`` answers at once."""

import os
import re
import sys
import warnings
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from mario.cli import data
from mario.errors import MarioError, RunFailedError
from mario.graphs.catalog import CATALOG

WRONG_INPUT, FAILED, INTERRUPTED = 2, 1, 130

app = typer.Typer(
    name="mario",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Node and graph embeddings without labels that keep working when the data shifts.",
    epilog="Exit codes: 0 done, 1 a check or a run failed, 2 wrong input, 130 interrupted.",
)
app.add_typer(data.app, name="data")


def _methods(incomplete: str) -> list[str]:
    # Read and not imported: whoever presses Tab does not want to wait for torch.
    texts = [entry.read_text(encoding="utf-8") for entry in (files("mario") / "methods").iterdir() if entry.is_file()]
    names = re.findall(r'^@register\("([^"]+)"\)', "\n".join(texts), flags=re.MULTILINE)
    return sorted(name for name in names if name.startswith(incomplete))


def _datasets(incomplete: str) -> list[str]:
    return [name for name in CATALOG if name.startswith(incomplete)]


def _studies(incomplete: str) -> list[str]:
    names = (entry.name for entry in (files("mario") / "lab" / "studies").iterdir())
    known = sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))
    return [name for name in ("all", *known) if name.startswith(incomplete)]


def _print_version(wanted: bool) -> None:
    if wanted:
        from mario import __version__

        typer.echo(f"mario {__version__}")
        raise typer.Exit


@app.callback()
def _everywhere(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
) -> None:
    pass


Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Root = Annotated[Path | None, typer.Option(help="Folder of raw files to look in first.")]
Documents = Annotated[
    list[Path] | None, typer.Option(help="Markdown file whose tables are to be written anew; may be repeated.")
]
Shift = Annotated[
    str | None, typer.Option(help="covariate, concept, no_shift or label; `mario data show DATASET` has those of it.")
]
Domain = Annotated[str | None, typer.Option(help="What shifts: see `mario data show DATASET`.")]
Setting = Annotated[
    str | None,
    typer.Option(help="transductive, or inductive: training sees no test node; the dataset's own if not given."),
]


@app.command(short_help="Train one method on one dataset and score it.")
def run(
    dataset: Annotated[str, typer.Argument(help="Dataset: see `mario data list`.", autocompletion=_datasets)],
    method: Annotated[
        str | None,
        typer.Option(help="Method: see `mario methods`; mario if not given.", autocompletion=_methods),
    ] = None,
    shift: Shift = None,
    domain: Domain = None,
    setting: Setting = None,
    split_seed: Annotated[int, typer.Option(help="Which of the random splits.")] = 0,
    seed: Annotated[int, typer.Option(help="Of weights, views and batches.")] = 0,
    encoder: Annotated[str | None, typer.Option(help="gcn, sage, gat or gin.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Override a setting of `mario methods METHOD`; may be repeated."
        ),
    ] = None,
    settings_file: Annotated[
        Path | None,
        typer.Option(
            "--settings",
            metavar="FILE",
            help="Settings in TOML or JSON, of `mario tune` or a run's settings.json; the other options win over it.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/HASH if not given.")] = None,
    device: Device = "auto",
    root: Root = None,
    threads: Annotated[int, typer.Option(min=0, help="Threads of torch; 0 leaves its choice.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; result.json has the scores.")] = False,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write for TensorBoard too; runs may share a folder.")
    ] = None,
    wandb: Annotated[
        str | None, typer.Option(metavar="PROJECT", help="Write to a project of Weights & Biases too.")
    ] = None,
) -> None:
    """Train one method on one dataset and score it in and out of distribution.

    A run that was stopped goes on from its last checkpoint when the same command is given again.
    """
    from mario.cli.run import run_one

    given = dict(_pair(text) for text in settings or [])
    if encoder is not None:
        given["encoder"] = encoder
    run_one(
        dataset,
        method,
        shift=shift,
        domain=domain,
        setting=setting,
        split_seed=split_seed,
        seed=seed,
        given=given,
        settings_file=settings_file,
        out=out,
        device=device,
        root=root,
        threads=threads,
        quiet=quiet,
        tensorboard=tensorboard,
        wandb=wandb,
    )


@app.command(short_help="Find settings of a method by validation scores.")
def tune(
    dataset: Annotated[str, typer.Argument(help="Dataset: see `mario data list`.", autocompletion=_datasets)],
    method: Annotated[str, typer.Option(help="Method: see `mario methods`.", autocompletion=_methods)] = "mario",
    shift: Shift = None,
    domain: Domain = None,
    setting: Setting = None,
    encoder: Annotated[str | None, typer.Option(help="gcn, sage, gat or gin.")] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="In all, with those already there; 50, or the whole grid, if not given.")
    ] = None,
    sampler: Annotated[str, typer.Option(help="tpe, random, or grid: the paper's grid.")] = "tpe",
    only: Annotated[
        list[str] | None, typer.Option(help="Search these settings alone, with commas; may be repeated.")
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=RANGE", help="Another range: NAME=a,b,c, NAME=LOW:HIGH or NAME=LOW:HIGH:log; may be repeated."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Fix a setting of `mario methods METHOD`; may be repeated."),
    ] = None,
    select: Annotated[str, typer.Option(help="The validation score that decides: ood_val or id_val.")] = "ood_val",
    seeds: Annotated[int, typer.Option(min=1, help="Runs a trial, each on a split of its own.")] = 1,
    pruner: Annotated[
        str, typer.Option(help="median: stop a trial below the median of the others at a checkpoint; or none.")
    ] = "median",
    storage: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="Where trials are kept; RUNS/tune/NAME.db if not given."),
    ] = None,
    study_name: Annotated[
        str | None, typer.Option(help="Made of dataset, domain, shift and method if not given.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Trials at once, one thread each.")] = 2,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds after which no trial begins.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try trials again that failed.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="File for the best settings, .toml or .json; RUNS/tune/NAME.toml if not given."
        ),
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder of the runs; those already there are not repeated.")] = Path(
        "runs"
    ),
    device: Device = "auto",
    root: Root = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Find settings of a method by validation scores, and write the best for `mario run --settings`.

    The same command goes on where it stopped. Given again elsewhere with the same database, it shares the trials.
    """
    from mario.cli.tune import tune_one

    given = dict(_pair(text) for text in settings or [])
    if encoder is not None:
        given["encoder"] = encoder
    tune_one(
        dataset,
        method,
        shift=shift,
        domain=domain,
        setting=setting,
        given=given,
        only=[name.strip() for text in only or [] for name in text.split(",") if name.strip()],
        search=dict(_pair(text, "--search", "lr=0.001:0.1:log", "NAME=RANGE") for text in search or []),
        seeds=seeds,
        select=select,
        sampler=sampler,
        pruner=pruner,
        trials=trials,
        name=study_name,
        storage=storage,
        folder=runs,
        workers=workers,
        timeout=timeout,
        retry=retry_failed,
        out=out,
        device=device,
        root=root,
        quiet=quiet,
    )


@app.command(short_help="Compare five methods on a small graph; write a page.")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the page.")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Runs a method, each on a split of its own.")] = 3,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of ten optimizer steps.")] = 20,
    workers: Annotated[int, typer.Option(min=1, help="Runs at once, one thread each.")] = max(
        1, min(2, os.cpu_count() or 1)
    ),
) -> None:
    """Compare MARIO, GRACE, ERM and two controls on GOOD-CBAS under concept shift, and write a page to look at."""
    from mario.cli.demo import run_demo

    run_demo(out, seeds=seeds, epochs=epochs, workers=workers)


@app.command(short_help="Run tables and figures of the paper.")
def reproduce(
    studies: Annotated[
        list[str],
        typer.Argument(
            help="Studies such as table-concept, `all` of the paper's, or a .toml file of your own.",
            autocompletion=_studies,
        ),
    ],
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs a row, instead of the study's number.")] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option(help="Only these datasets, with commas; may be repeated.", autocompletion=_datasets),
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option(help="Only these rows, with commas; may be repeated.", autocompletion=_methods)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Every row, with one seed and few steps: minutes.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run and how long it takes.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the runs; those already there are not repeated. runs/paper, or runs/quick, if not given."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Runs at once, one thread each.")] = 2,
    launcher: Annotated[str, typer.Option(help="local, or slurm to run them on other machines.")] = "local",
    slurm: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A parameter of sbatch; may be repeated.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try runs again that failed.")] = False,
    report: Annotated[Path | None, typer.Option(help="The page; OUT/report.html if not given.")] = None,
    document: Documents = None,
    records: Annotated[
        Path | None, typer.Option(help="File of results, a line each: those in it are done, new ones are added.")
    ] = None,
    root: Root = None,
) -> None:
    """Run tables and figures of the paper, and put the paper's figures beside ours.

    An interrupted experiment goes on where it stopped. A run that fails stops no other.
    """
    from mario.cli.reproduce import reproduce as reproduce_studies

    reproduce_studies(
        studies,
        out=out,
        seeds=seeds,
        datasets=datasets or [],
        methods=methods or [],
        quick=quick,
        dry_run=dry_run,
        workers=workers,
        launcher=launcher,
        slurm=dict(_pair(text, "--slurm", "partition=cpu") for text in slurm or []),
        retry_failed=retry_failed,
        report=report,
        documents=document or [],
        records=records,
        root=root,
    )


@app.command(short_help="Write the page of runs that are done.")
def report(
    runs: Annotated[
        Path, typer.Argument(help="Folder that holds folders of runs, of `mario reproduce` or `mario run`.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page; pictures go beside it.")] = Path("report.html"),
    document: Documents = None,
    root: Root = None,
) -> None:
    """Write one page that shows what runs have come to, and its pictures."""
    from mario.cli.report import report_runs

    report_runs(runs, out, documents=document or [], root=root)


@app.command(short_help="Every method, or every setting of one.")
def methods(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this one.", autocompletion=_methods)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Every method, the hosts of the recipe marked; or every setting of one."""
    from mario.cli.methods import list_methods, show_settings

    if name is None:
        list_methods(as_json)
    else:
        show_settings(name, as_json)


def _pair(text: str, option: str = "--set", example: str = "epochs=20", form: str = "NAME=VALUE") -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise MarioError(f"{option} takes {form} such as {example}, got '{text}'")
    return name.strip(), value.strip()


def main() -> None:
    """The ``mario`` command: errors in one line, exit codes as the help says."""
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")  # torch, once per process
    debug = "--debug" in sys.argv
    sys.argv[1:] = [word for word in sys.argv[1:] if word != "--debug"]
    try:
        app()
    except MarioError as error:
        if debug:
            raise
        _complain(f"error: {error}")
        sys.exit(FAILED if isinstance(error, RunFailedError) else WRONG_INPUT)
    except (KeyboardInterrupt, SystemExit) as ended:
        # Typer turns Ctrl-C into an exit with this code.
        if isinstance(ended, SystemExit) and ended.code != INTERRUPTED:
            raise
        _complain("interrupted: give the same command again to go on from the last checkpoint")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except (NotADirectoryError, FileExistsError, PermissionError) as error:
        if debug:
            raise
        _complain(f"error: {error.filename} cannot be used: {error.strerror}; choose another file or folder")
        sys.exit(WRONG_INPUT)
    except Exception as error:
        if debug:
            raise
        _complain(f"error: {type(error).__name__}: {error} (this is a fault of mario; --debug shows where)")
        sys.exit(FAILED)


def _complain(text: str) -> None:
    print(f"mario: {text}", file=sys.stderr)
