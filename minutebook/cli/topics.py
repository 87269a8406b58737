"""`minutebook topics`: make the topics, or compare them with what this version wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import msgspec
import typer
from kafka.errors import KafkaError

from minutebook.cli.exits import ExitCode
from minutebook.cli.output import Format, Output, fault, note, write_many
from minutebook.ids import is_name
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings
from minutebook.wire.topics import due_topic

app = typer.Typer(help="The topics of one installation.", no_args_is_help=True)

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

OpenQueue = Annotated[
    list[str] | None,
    typer.Option("--open", help="An open queue whose due topic is made, too; repeat for more."),
]


class MadeTopic(msgspec.Struct):
    """A topic that was made, by its name with the prefix."""

    topic: str


class TopicFinding(msgspec.Struct):
    """One thing that is not as declared, and what to do."""

    topic: str
    setting: str
    found: str
    wanted: str
    remedy: str


@app.command()
def create(
    partitions: Partitions = None,
    inbox_partitions: InboxPartitions = None,
    replication: Replication = None,
    open_queue: OpenQueue = None,
    output: Output = Format.TABLE,
) -> None:
    """Make the topics that are not there yet. Nothing that exists is changed; then all are checked."""
    wanted = _settings(partitions, inbox_partitions, replication)
    kafka = KafkaSettings()
    with _reaching(kafka):
        made = admin.create(kafka, wanted)
        made += [
            kafka.topic(due_topic(queue).name)
            for queue in open_queue or []
            if admin.create_due(kafka, wanted, _checked(queue))
        ]
        write_many(list(map(MadeTopic, made)), output, ("made",), ((name,) for name in made))
        if not made:
            note("All were there, none was made.")
        admin.require(kafka, wanted.partitions, wanted.inbox_partitions)


def _checked(queue: str) -> str:
    if not is_name(queue):
        raise typer.BadParameter("queue names have 1-128 ASCII letters, digits, ._-", param_hint="--open")
    return queue


@app.command()
def check(
    partitions: Partitions = None,
    inbox_partitions: InboxPartitions = None,
    output: Output = Format.TABLE,
) -> None:
    """Compare the topics with what is wanted; exit code 1 and the remedies if one differs."""
    wanted = _settings(partitions, inbox_partitions, None)
    kafka = KafkaSettings()
    with _reaching(kafka):
        findings = admin.check(kafka, wanted.partitions, wanted.inbox_partitions)
    items = [TopicFinding(*finding) for finding in findings]
    write_many(items, output, TopicFinding.__struct_fields__, map(msgspec.structs.astuple, items))
    if findings:
        raise typer.Exit(ExitCode.NO)
    note("All as wanted.")


def _settings(partitions: int | None, inbox_partitions: int | None, replication: int | None) -> TopicSettings:
    """The options over the environment over the defaults."""
    given = {
        "partitions": partitions,
        "inbox_partitions": inbox_partitions,
        "replication": replication,
    }
    return TopicSettings(**{name: value for name, value in given.items() if value is not None})


@contextmanager
def _reaching(kafka: KafkaSettings) -> Iterator[None]:
    """Turn a broker that does not answer into a message and the exit code for it."""
    try:
        yield
    except KafkaError as error:
        fault(
            f"no answer from Kafka at {kafka.bootstrap_servers} ({type(error).__name__}). "
            "Is it running, and is MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS right?"
        )
        raise typer.Exit(ExitCode.UNREACHABLE) from error
