"""`minutebook topics`: make the topics, or compare them with what this version wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from kafka.errors import KafkaError

from minutebook.errors import SettingsError
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings

app = typer.Typer(help="The topics of one installation.", no_args_is_help=True)

_NO = 1
_REFUSED = 4
_UNREACHABLE = 5

Partitions = Annotated[
    int | None,
    typer.Option(min=1, help="P, fixed for life.", envvar="MINUTEBOOK_TOPICS_PARTITIONS", show_default="8"),
]
InboxPartitions = Annotated[
    int | None,
    typer.Option(
        min=1, help="Of worker-inbox.", envvar="MINUTEBOOK_TOPICS_INBOX_PARTITIONS", show_default="16"
    ),
]
Replication = Annotated[
    int | None,
    typer.Option(min=1, help="Copies of each.", envvar="MINUTEBOOK_TOPICS_REPLICATION", show_default="1"),
]


@app.command()
def create(
    partitions: Partitions = None, inbox_partitions: InboxPartitions = None, replication: Replication = None
) -> None:
    """Make the topics that are not there yet. Nothing that exists is changed; then all are checked."""
    wanted = _settings(partitions, inbox_partitions, replication)
    kafka = KafkaSettings()
    with _told(kafka):
        made = admin.create(kafka, wanted)
        for name in made:
            typer.echo(f"made {name}")
        if not made:
            typer.echo("all there, nothing made")
        admin.require(kafka, wanted.partitions, wanted.inbox_partitions)


@app.command()
def check(partitions: Partitions = None, inbox_partitions: InboxPartitions = None) -> None:
    """Compare the topics with what is wanted; exit code 1 and the remedies if one differs."""
    wanted = _settings(partitions, inbox_partitions, None)
    kafka = KafkaSettings()
    with _told(kafka):
        findings = admin.check(kafka, wanted.partitions, wanted.inbox_partitions)
    for finding in findings:
        typer.echo(str(finding))
    if findings:
        raise typer.Exit(_NO)
    typer.echo("all as wanted")


def _settings(partitions: int | None, inbox_partitions: int | None, replication: int | None) -> TopicSettings:
    """The options over the environment over the defaults."""
    given = {
        "partitions": partitions,
        "inbox_partitions": inbox_partitions,
        "replication": replication,
    }
    return TopicSettings(**{name: value for name, value in given.items() if value is not None})


@contextmanager
def _told(kafka: KafkaSettings) -> Iterator[None]:
    """Turn faults into a message on stderr and the exit code for it."""
    try:
        yield
    except SettingsError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(_REFUSED) from error
    except KafkaError as error:
        typer.echo(
            f"error: no answer from Kafka at {kafka.bootstrap_servers} ({type(error).__name__}). "
            "Is it running, and is MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS right?",
            err=True,
        )
        raise typer.Exit(_UNREACHABLE) from error
