"""`minutebook doctor`: whether an installation is well, from where this runs, with a remedy for each finding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec
import typer

from minutebook.cli.checks import Check
from minutebook.cli.exits import ExitCode
from minutebook.cli.host_checks import api_checks, host_checks
from minutebook.cli.output import Format, Output, write_many
from minutebook.client import ClientSettings, SyncClient

_MISSING: Final = "install it with `pip install 'minutebook[embedded]'`"
_ANSWER_S: Final = 5


def doctor(
    group: Annotated[
        str, typer.Option(envvar="MINUTEBOOK_STREAMS_GROUP", help="Group of the owners.")
    ] = "minutebook-owners",
    kafka: Annotated[bool, typer.Option("--kafka/--no-kafka", help="Look at the brokers.")] = True,
    api: Annotated[bool, typer.Option("--api/--no-api", help="Look at the API.")] = True,
    output: Output = Format.TABLE,
) -> None:
    """Check brokers, topics, groups, schemas, clock, lag, disk, open files, Java and API; a remedy for each finding.

    To measure the clock a topic is made, written to once, and deleted. Exit code 1 when a check fails.
    """
    found = [
        *(_kafka_checks(group) if kafka else ()),
        *host_checks(),
        *(_api_checks() if api else ()),
    ]
    write_many(found, output, Check.__struct_fields__, map(msgspec.structs.astuple, found))
    if any(one.state == "fail" for one in found):
        raise typer.Exit(ExitCode.NO)


def _kafka_checks(group: str) -> Iterator[Check]:
    try:
        from minutebook.cli.kafka_checks import kafka_checks
        from minutebook.log.admin import TopicSettings
        from minutebook.log.settings import KafkaSettings
    except ModuleNotFoundError as error:
        return iter([Check("broker", "warn", f"not looked at: {error.name} is missing", _MISSING)])
    return kafka_checks(KafkaSettings(), TopicSettings(), group)


def _api_checks() -> Iterator[Check]:
    settings = ClientSettings()
    impatient = settings.model_copy(update={"retries_max": 0, "timeout_s": _ANSWER_S})
    with SyncClient(settings=impatient) as client:
        yield from api_checks(client, settings.url)
