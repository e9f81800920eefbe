"""The command line: one file per verb. No verb imports torch before it runs, so that help is fast."""

import os
import sys
from typing import Annotated

import typer

from mario.cli import (
    audit,
    data,
    demo,
    embed,
    export,
    fit,
    graph,
    methods,
    neighbors,
    predict,
    report,
    reproduce,
    run,
    tune,
    update,
)
from mario.cli.verb import Verb
from mario.errors import MarioError, RunFailedError, out_of_memory
from mario.lab.process import return_freed_memory

WRONG_INPUT, FAILED, INTERRUPTED = 2, 1, 130
_WHOLE = ("graph", "embed", "predict", "neighbors", "export")
"""Verbs whose files are there when they are complete: there is nothing to continue."""

app = typer.Typer(
    name="mario",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Node and graph embeddings without labels that keep working when the data shifts.",
    epilog="Exit codes: 0 done, 1 a check or a run failed, 2 wrong input, 130 interrupted.",
)
app.command(cls=Verb, short_help="Train one method on one dataset and score it.")(run.run)
app.command(cls=Verb, short_help="Train what suits a graph and write a model.")(fit.fit)
app.command(short_help="Embed a graph by a model.")(embed.embed)
app.command(short_help="Predict labels of a graph by a model.")(predict.predict)
app.command(short_help="Find the nodes that are most like others.")(neighbors.neighbors)
app.command(short_help="Go on training a model with a new graph.")(update.update)
app.command(short_help="Write a model for torch.export, ONNX or Hugging Face.")(export.export)
app.command(cls=Verb, short_help="Say what shifts in a graph and what to expect.")(audit.audit)
app.command(cls=Verb, short_help="Find settings of a method by validation scores.")(tune.tune)
app.command(short_help="Compare five methods on a small graph; write a page.")(demo.demo)
app.command(short_help="Run tables and figures of the paper.")(reproduce.reproduce)
app.command(short_help="Write a page about finished runs.")(report.report)
app.command(short_help="List all methods, or all settings of one.")(methods.methods)
app.add_typer(data.app, name="data")
app.add_typer(graph.app, name="graph")


def _print_version(wanted: bool) -> None:
    if wanted:
        from mario import __version__

        typer.echo(f"mario {__version__}")
        raise typer.Exit


@app.callback()
def _options_of_all_verbs(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; allowed anywhere.")] = False,
) -> None:
    pass


def main() -> None:
    """The ``mario`` command: one line per error, exit codes as in the help."""
    debug = "--debug" in sys.argv
    sys.argv[1:] = [word for word in sys.argv[1:] if word != "--debug"]
    return_freed_memory()
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
        verb = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
        then = (
            "nothing was written" if verb in _WHOLE else "repeat the same command to continue from the last checkpoint"
        )
        _complain(f"interrupted: {then}")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output is gone; without this, Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except OSError as error:  # a read-only or failing disk, a file in the place of a folder
        if debug:
            raise
        what = f"cannot use {error.filename}" if error.filename else "the system refused"
        _complain(f"error: {what}: {error.strerror or error}; choose another file or folder, or free what is in use")
        sys.exit(WRONG_INPUT if isinstance(error, NotADirectoryError | FileExistsError | PermissionError) else FAILED)
    except Exception as error:
        if debug:
            raise
        if out_of_memory(error):
            _complain(f"error: not enough memory ({_short(error)}); a smaller roots or hidden_channels needs less")
            sys.exit(FAILED)
        _complain(f"error: {type(error).__name__}: {error} (this is a bug of mario; --debug shows where)")
        sys.exit(FAILED)


def _short(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _complain(text: str) -> None:
    print(f"mario: {text}", file=sys.stderr)
