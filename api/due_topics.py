"""Due topics of open queues: made before the queue is declared, so that what comes due at once has somewhere to go."""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog
from kafka.errors import KafkaError

from api.problems import Refused, refused_field
from minutebook.errors import SettingsError
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings

_log = structlog.get_logger()


class DueTopics(Protocol):
    """Where due records go."""

    async def make(self, queue: str) -> None:
        """Make the due topic of `queue` if it is not there. Raises Refused: not-durable, invalid."""
        ...


class KafkaDueTopics:
    """`DueTopics` on Kafka, with the settings of the other topics."""

    def __init__(self, kafka: KafkaSettings, topics: TopicSettings) -> None:
        self._kafka = kafka
        self._topics = topics

    async def make(self, queue: str) -> None:
        """See `DueTopics.make`. kafka-python blocks, so it has a thread."""
        try:
            await asyncio.to_thread(admin.create_due, self._kafka, self._topics, queue)
        except SettingsError as error:
            _log.warning("due_topic_refused", queue=queue, reason=str(error))
            raise refused_field(
                "/open", "its due topic cannot be made; the log of this process says why"
            ) from error
        except KafkaError as error:
            _log.warning("due_topic_not_made", queue=queue, reason=repr(error))
            raise Refused("not-durable") from error
