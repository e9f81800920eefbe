"""``mario graph``: graphs of your own."""

import typer

from mario.cli import graph_split

app = typer.Typer(name="graph", rich_markup_mode=None, help="Graphs of your own.", no_args_is_help=True)
app.command(short_help="Show how a graph is split, or declare another split.")(graph_split.split)
