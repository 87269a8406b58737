"""The settings classes of all parts, found by name: those of the servers are there in a checkout or image alone."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from pydantic_settings import BaseSettings


class Part(NamedTuple):
    """Settings of one part: its title, what reads them, the prefix of their names, and their class."""

    title: str
    use: str
    prefix: str
    module: str
    name: str

    def kind(self) -> type[BaseSettings]:
        """The class. Raises ModuleNotFoundError where the part is not installed."""
        found: type[BaseSettings] = getattr(importlib.import_module(self.module), self.name)
        return found


PARTS: Final = (
    Part(
        "Kafka",
        "Every process; all clients are made from these.",
        "MINUTEBOOK_KAFKA_",
        "minutebook.log.settings",
        "KafkaSettings",
    ),
    Part(
        "Topics",
        "`topics create`, `topics check`, and the check at the start of owners and API.",
        "MINUTEBOOK_TOPICS_",
        "minutebook.log.admin",
        "TopicSettings",
    ),
    Part("Owners", "`python -m streams`.", "MINUTEBOOK_STREAMS_", "streams.settings", "StreamsSettings"),
    Part("API", "`python -m api`.", "MINUTEBOOK_API_", "api.settings", "ApiSettings"),
    Part(
        "Notifier",
        "Alerts on their way to their targets, in the API process.",
        "MINUTEBOOK_NOTIFY_",
        "api.notifier.settings",
        "NotifySettings",
    ),
    Part("Workers", "`worker run`.", "MINUTEBOOK_WORKER_", "minutebook.worker.settings", "WorkerSettings"),
    Part(
        "Client",
        "`Client`, `SyncClient` and the commands that go through the API.",
        "MINUTEBOOK_CLIENT_",
        "minutebook.client.settings",
        "ClientSettings",
    ),
)


def installed() -> Iterator[tuple[Part, type[BaseSettings]]]:
    """The parts that are installed here, with their classes."""
    for part in PARTS:
        try:
            yield part, part.kind()
        except ModuleNotFoundError:
            continue


def env_name(kind: type[BaseSettings], field: str) -> str:
    """Environment name of a field."""
    return f"{kind.model_config.get('env_prefix', '')}{field}".upper()
