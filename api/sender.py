"""Commands to the log: durable with acks=all before anybody is told so. How they gather: `api/lanes.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from api.lanes import Decided, Keyed, Lanes, Sized
from api.problems import Refused
from minutebook.broker_clock import BrokerClock
from minutebook.clock import Clock
from minutebook.domain.commands import (
    Command,
    DeclareCalendar,
    DeclareLimit,
    DeclareQueue,
    DeclareTask,
    RedriveExecution,
    StartOperation,
    SubmitJob,
)
from minutebook.log.kafka import started_producer
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics
from minutebook.wire.codec import CommandBatch, encode

_OVERHEAD_BYTES: Final = 1_280
_CHAR_BYTES_MAX: Final = 4
_TIMING_BYTES: Final = 160
"""Of a job's timing, without the names of calendars."""
_DAY_BYTES_MAX: Final = 3

_log = structlog.get_logger()


class CommandLog(Protocol):
    """Where commands go."""

    def choose(self) -> int:
        """The partition for a command that may go to any."""
        ...

    async def send(self, partition: int, commands: Sequence[Keyed]) -> int:
        """Make commands of one partition durable; the offset of the last record that holds any of them.

        Raises Refused: overloaded (none was sent), not-durable (any may have been).
        """
        ...


class KafkaCommandLog:
    """`CommandLog` on `job-commands`. Connects when first used; `stop` after."""

    def __init__(
        self,
        kafka: KafkaSettings,
        partitions: int,
        timeout_s: float,
        clock: Clock,
        broker_clock: BrokerClock,
        decided: Decided,
    ) -> None:
        self._clock = clock
        self._broker_clock = broker_clock
        self._kafka = kafka
        self._topic = kafka.topic(topics.COMMANDS)
        self._producer: AIOKafkaProducer | None = None
        self._connecting = asyncio.Lock()
        self._lanes = Lanes(partitions, self._append, decided, timeout_s)
        self.choose = self._lanes.choose

    async def stop(self) -> None:
        """Send what waits, and disconnect."""
        await self._lanes.stop()
        await self._renew()

    async def send(self, partition: int, commands: Sequence[Keyed]) -> int:
        """See `CommandLog.send`."""
        return await self._lanes.send(partition, [Sized(keyed, size_of(keyed.command)) for keyed in commands])

    async def _append(self, partition: int, packed: list[Keyed]) -> int | Refused:
        record = packed[0].command if len(packed) == 1 else CommandBatch([keyed.command for keyed in packed])
        try:
            connected = await self._connected()
            sent_at = self._clock.now()
            future = await connected.send(
                self._topic, value=encode(record), key=packed[0].key.encode(), partition=partition
            )
            found = await future
        except (KafkaError, OSError) as error:
            _log.warning("commands_not_acknowledged", partition=partition, reason=repr(error))
            await self._renew()
            return Refused("not-durable")
        self._broker_clock.acknowledged(sent_at, found.timestamp, self._clock.now())
        return int(found.offset)

    async def _connected(self) -> AIOKafkaProducer:
        async with self._connecting:
            if self._producer is None:
                self._producer = await started_producer(self._kafka)
            return self._producer

    async def _renew(self) -> None:
        """An idempotent producer that failed for good appends nothing more: the next record takes a fresh one."""
        failed, self._producer = self._producer, None
        if failed is not None:
            await failed.stop()


def size_of(command: Command) -> int:
    """Bytes that `command` takes in a record, at most."""
    match command:
        case SubmitJob():
            return _job_bytes(command)
        case DeclareQueue():
            return _OVERHEAD_BYTES + sum(map(len, command.tenants)) + 2 * len(command.tenants)
        case DeclareLimit():
            return _OVERHEAD_BYTES
        case DeclareCalendar():
            days = len(command.first_days) + len(command.last_days)
            return _OVERHEAD_BYTES + _CHAR_BYTES_MAX * len(command.reason) + _DAY_BYTES_MAX * days
        case DeclareTask():
            return _OVERHEAD_BYTES + _CHAR_BYTES_MAX * len(command.payload_schema)
        case RedriveExecution():
            payload = command.payload or b""
            return _OVERHEAD_BYTES + len(payload) + _CHAR_BYTES_MAX * len(command.reason)
        case StartOperation():
            texts = (command.reason, command.filter.error_type)
            return _OVERHEAD_BYTES + _CHAR_BYTES_MAX * sum(map(len, texts))
        case _:
            return _OVERHEAD_BYTES + _CHAR_BYTES_MAX * len(command.reason)


def _job_bytes(job: SubmitJob) -> int:
    total = _OVERHEAD_BYTES + len(job.payload) + len(job.notify)
    if job.tags:
        total += sum(len(tag) + 2 for tag in job.tags)
    if job.policy is not None:
        total += _CHAR_BYTES_MAX * sum(map(len, job.policy.non_retryable))
    if job.timing is not None:
        total += _TIMING_BYTES + sum(len(name) + 2 for name in job.timing.calendars)
    return total
