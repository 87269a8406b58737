"""`minutebook queue`: declare queues, through the API."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from minutebook.cli.job import undecided
from minutebook.cli.output import Format, Output, write_one
from minutebook.client import Command, SyncClient
from minutebook.client.models import QueueRequest

app = typer.Typer(help="Queues: lines of work.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `create` a subcommand although it is the only one."""


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the queue.")],
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
        answer = client.declare_queue(QueueRequest(name, tenant or [], is_open))
    if isinstance(answer, Command):
        raise undecided(answer, output)
    write_one(
        answer,
        output,
        {"name": answer.name, "version": answer.version, "open": answer.open} | _tenants(answer),
    )


def _tenants(answer: msgspec.Struct) -> dict[str, str]:
    tenants = ", ".join(msgspec.structs.asdict(answer)["tenants"])
    return {"tenants": tenants or "everybody"}
