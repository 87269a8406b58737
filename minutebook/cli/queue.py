"""`minutebook queue`: declare, list, pause, drain and resume queues, through the API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from minutebook.cli.job import undecided
from minutebook.cli.options import Reason
from minutebook.cli.output import Format, Output, write_many, write_one
from minutebook.client import Command, Queue, SyncClient
from minutebook.client.models import QueueRequest

app = typer.Typer(help="Queues: lines of work.", no_args_is_help=True)

_COLUMNS = ("name", "version", "tenants", "open", "paused", "draining")
Name = Annotated[str, typer.Argument(help="Name of the queue.")]


@app.command()
def create(
    name: Name,
    tenant: Annotated[
        list[str] | None,
        typer.Option(help="Tenant that may use it; repeat for more. Everybody if not given."),
    ] = None,
    is_open: Annotated[
        bool,
        typer.Option(
            "--open", help="For consumers on plain Kafka: its due topic is made, SDK workers leave it."
        ),
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Declare a queue, or change it. Ends once every partition knows it."""
    with SyncClient() as client:
        _write(client.declare_queue(QueueRequest(name, tenant or [], is_open)), output)


@app.command("list")
def list_(output: Output = Format.TABLE) -> None:
    """List the queues that you may use, by name."""
    with SyncClient() as client:
        items = client.queues()
        rows = (tuple(_fields(item).values()) for item in items)
        write_many(items, output, _COLUMNS, rows)


@app.command()
def show(name: Name, output: Output = Format.TABLE) -> None:
    """Show a queue as declared."""
    with SyncClient() as client:
        _write(client.queue(name), output)


@app.command()
def pause(name: Name, reason: Reason = "", output: Output = Format.TABLE) -> None:
    """Grant nothing of a queue any more; what runs goes on. Ends once every partition knows it."""
    with SyncClient() as client:
        _write(client.pause_queue(name, reason=reason), output)


@app.command()
def drain(name: Name, reason: Reason = "", output: Output = Format.TABLE) -> None:
    """Take no new job for a queue any more; what it has goes on. Ends once every partition knows it."""
    with SyncClient() as client:
        _write(client.drain_queue(name, reason=reason), output)


@app.command()
def resume(name: Name, reason: Reason = "", output: Output = Format.TABLE) -> None:
    """Grant again what waits in a queue, and take jobs for it. Ends once every partition knows it."""
    with SyncClient() as client:
        _write(client.resume_queue(name, reason=reason), output)


def _write(answer: Queue | Command, output: Format) -> None:
    if isinstance(answer, Command):
        raise undecided(answer, output)
    write_one(answer, output, _fields(answer))


def _fields(queue: Queue) -> dict[str, Any]:
    tenants = ", ".join(queue.tenants) or "everybody"
    values = (
        queue.name,
        queue.version,
        tenants,
        _said(queue.open),
        _said(queue.paused),
        _said(queue.draining),
    )
    return dict(zip(_COLUMNS, values, strict=True))


def _said(is_so: bool) -> str:
    return "yes" if is_so else "no"
