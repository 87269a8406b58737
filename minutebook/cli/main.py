"""The `minutebook` command: one module per noun."""

from __future__ import annotations

import typer

from minutebook.cli import dev, topics, worker

app = typer.Typer(help="minutebook, a job scheduler on a Kafka log.", no_args_is_help=True)
app.add_typer(worker.app, name="worker")
app.add_typer(topics.app, name="topics")
app.command("dev")(dev.dev)


def run() -> None:
    """Entry point of the console script."""
    app()
