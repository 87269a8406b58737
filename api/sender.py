"""Commands to the log: durable with acks=all before anybody is told so.

What arrives for a partition while its last record is on the way is packed into one `CommandBatch`: no timer, no delay
when it is calm, few and large records when it is not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

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
from minutebook.wire.codec import BATCH_BYTES_MAX, BATCH_MAX, CommandBatch, encode

_WAITING_MAX: Final = 20_000
_PACKED_BYTES_MAX: Final = BATCH_BYTES_MAX - (64 << 10)
_OVERHEAD_BYTES: Final = 1_280
_CHAR_BYTES_MAX: Final = 4
_TIMING_BYTES: Final = 160
"""Of a job's timing, without the names of calendars."""
_DAY_BYTES_MAX: Final = 3

_log = structlog.get_logger()


class Keyed(NamedTuple):
    """A command and the key of its record."""

    key: str
    command: Command


class CommandLog(Protocol):
    """Where commands go."""

    async def send(self, partition: int, commands: Sequence[Keyed]) -> int:
        """Make commands of one partition durable; the offset of the last record that holds any of them.

        Raises Refused: overloaded (none was sent), not-durable (any may have been).
        """
        ...


class _Waiting(NamedTuple):
    keyed: Keyed
    bytes: int
    is_last: bool
    """Of those that were given together; `sent` is theirs in common."""
    sent: asyncio.Future[int]


class KafkaCommandLog:
    """`CommandLog` on `job-commands`. Connects when first used; `stop` after."""

    def __init__(
        self,
        kafka: KafkaSettings,
        partitions: int,
        timeout_s: float,
        clock: Clock,
        broker_clock: BrokerClock,
    ) -> None:
        self._clock = clock
        self._broker_clock = broker_clock
        self._kafka = kafka
        self._topic = kafka.topic(topics.COMMANDS)
        self._timeout_s = timeout_s
        self._producer: AIOKafkaProducer | None = None
        self._connecting = asyncio.Lock()
        self._lanes: list[deque[_Waiting]] = [deque() for _ in range(partitions)]
        self._sending: dict[int, asyncio.Task[None]] = {}

    async def _connected(self) -> AIOKafkaProducer:
        async with self._connecting:
            if self._producer is None:
                self._producer = await started_producer(self._kafka)
            return self._producer

    async def stop(self) -> None:
        """Send what waits, and disconnect."""
        await asyncio.gather(*self._sending.values(), return_exceptions=True)
        await self._renew()

    async def send(self, partition: int, commands: Sequence[Keyed]) -> int:
        """See `CommandLog.send`. Commands refused while they still waited are never sent."""
        lane = self._lanes[partition]
        if len(lane) + len(commands) > _WAITING_MAX:
            raise Refused("overloaded")
        sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        last = len(commands) - 1
        lane.extend(
            _Waiting(keyed, size_of(keyed.command), number == last, sent)
            for number, keyed in enumerate(commands)
        )
        if partition not in self._sending:
            self._sending[partition] = asyncio.create_task(self._empty(partition))
        try:
            async with asyncio.timeout(self._timeout_s):
                return await sent
        except TimeoutError:
            raise Refused("not-durable") from None

    async def _empty(self, partition: int) -> None:
        """Send what waits for a partition, record after record, until nothing does."""
        lane = self._lanes[partition]
        try:
            # Whoever else sends in this turn of the loop comes into the same record.
            await asyncio.sleep(0)
            while lane:
                packed = _packed(lane)
                if packed:
                    await self._deliver(partition, packed)
        finally:
            del self._sending[partition]

    async def _deliver(self, partition: int, packed: list[_Waiting]) -> None:
        outcome: int | Refused = Refused("not-durable")
        try:
            outcome = await self._append(partition, packed)
        except (KafkaError, OSError) as error:
            _log.warning("commands_not_acknowledged", partition=partition, reason=repr(error))
            await self._renew()
        finally:
            _settle(packed, outcome)

    async def _append(self, partition: int, packed: list[_Waiting]) -> int:
        connected = await self._connected()
        first = packed[0].keyed
        record = first.command if len(packed) == 1 else CommandBatch([item.keyed.command for item in packed])
        sent_at = self._clock.now()
        future = await connected.send(
            self._topic, value=encode(record), key=first.key.encode(), partition=partition
        )
        found = await future
        self._broker_clock.acknowledged(sent_at, found.timestamp, self._clock.now())
        return int(found.offset)

    async def _renew(self) -> None:
        """An idempotent producer that failed for good appends nothing more: the next record takes a fresh one."""
        failed, self._producer = self._producer, None
        if failed is not None:
            await failed.stop()


def _packed(lane: deque[_Waiting]) -> list[_Waiting]:
    """As many of those that still wait as fit into one record."""
    packed: list[_Waiting] = []
    total = 0
    while lane and len(packed) < BATCH_MAX:
        if lane[0].sent.done():
            lane.popleft()
            continue
        total += lane[0].bytes
        if packed and total > _PACKED_BYTES_MAX:
            break
        packed.append(lane.popleft())
    return packed


def _settle(packed: list[_Waiting], outcome: int | Refused) -> None:
    """Tell those who wait; whose commands went into several records hears of the last one, or of the first fault."""
    for item in packed:
        if item.sent.done():
            continue
        if isinstance(outcome, Refused):
            item.sent.set_exception(outcome)
        elif item.is_last:
            item.sent.set_result(outcome)


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
    total = _OVERHEAD_BYTES + len(job.payload) + len(job.notify) + sum(len(tag) + 2 for tag in job.tags)
    if job.policy is not None:
        total += _CHAR_BYTES_MAX * sum(map(len, job.policy.non_retryable))
    if job.timing is not None:
        total += _TIMING_BYTES + sum(len(name) + 2 for name in job.timing.calendars)
    return total
