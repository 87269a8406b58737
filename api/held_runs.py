"""What a worker runs: the tokens that it holds, looked up in the frames of the log that granted them.

A token is the place of its grant, so no index is kept for a question that people ask now and then.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from api.view import View
from api.workers_view import SeenWorker
from minutebook.client.fleet import HeldExecution
from minutebook.domain import events as facts
from minutebook.errors import BrokenFrameError, DecodeError
from minutebook.ids import job_of
from minutebook.log.settings import KafkaSettings
from minutebook.times import format_instant
from minutebook.wire import topics
from minutebook.wire.frames import Frame, decode_frame, placed

FRAMES_MAX: Final = 50
"""So many frames are read for one question, those of the latest grants."""
_READ_S: Final = 2.0
_FETCH_BYTES: Final = 64 << 10

_log = structlog.get_logger()


class Frames(Protocol):
    """Single frames of `job-events`."""

    async def read(self, partition: int, offset: int) -> Frame | None:
        """The frame at `offset`; None where there is none, or it cannot be had now."""
        ...


class KafkaFrames:
    """`Frames` on Kafka, by a consumer of its own. `stop` it in the end."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._topic = kafka.topic(topics.EVENTS)
        self._consumer: AIOKafkaConsumer | None = None
        self._lock = asyncio.Lock()

    async def read(self, partition: int, offset: int) -> Frame | None:
        """See `Frames.read`."""
        try:
            async with self._lock, asyncio.timeout(_READ_S):
                return decode_frame(await self._value(TopicPartition(self._topic, partition), offset))
        except (KafkaError, OSError, TimeoutError, DecodeError) as error:
            _log.info("frame_not_read", partition=partition, offset=offset, reason=repr(error))
            await self.stop()
            return None

    async def stop(self) -> None:
        """Disconnect; the next read connects anew."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()

    async def _value(self, place: TopicPartition, offset: int) -> bytes | None:
        consumer = await self._connected()
        consumer.assign([place])
        consumer.seek(place, offset)
        while True:
            for record in (await consumer.getmany(place, timeout_ms=500, max_records=1)).get(place, ()):
                value: bytes | None = record.value if record.offset == offset else None
                return value

    async def _connected(self) -> AIOKafkaConsumer:
        """A consumer that fetches little: the broker gives a whole record all the same."""
        if self._consumer is None:
            consumer = AIOKafkaConsumer(
                **self._kafka.aiokafka(),
                enable_auto_commit=False,
                auto_offset_reset="none",
                isolation_level="read_committed",
                max_partition_fetch_bytes=_FETCH_BYTES,
            )
            self._consumer = consumer
            await consumer.start()
        return self._consumer


class Grant(NamedTuple):
    """A grant in a frame."""

    token: int
    tenant: str
    execution: str


def grants_of(frame: Frame) -> Iterator[Grant]:
    """The grants of `frame`. Raises BrokenFrameError for columns of unequal length."""
    for event, token in placed(frame):
        if isinstance(event, facts.ExecutionsDueGranted | facts.ExecutionsGranted):
            rows = zip(event.tenant, event.executions, strict=True)
            for row, (tenant, execution) in enumerate(rows, token):
                yield Grant(row, event.tenants[tenant], execution)


async def held_by(
    worker: SeenWorker, tenant: str, view: View, frames: Frames | None
) -> tuple[list[HeldExecution], int]:
    """What a worker runs for `tenant`, the latest grants first, and how many executions more it holds."""
    total = sum(session.running for session in worker.sessions.values())
    found: list[HeldExecution] = []
    if frames is not None:
        for (partition, offset), tokens in _latest(worker):
            frame = await frames.read(partition, offset)
            if frame is None:
                continue
            try:
                grants = [grant for grant in grants_of(frame) if grant.token in tokens]
            except (BrokenFrameError, ValueError, IndexError):
                continue
            shown = (_held(partition, grant, view) for grant in grants if grant.tenant == tenant)
            found.extend(one for one in shown if one is not None)
    return found, total - len(found)


def _latest(worker: SeenWorker) -> list[tuple[tuple[int, int], set[int]]]:
    """Places of the latest frames whose grants it holds, with these tokens."""
    by_frame: dict[tuple[int, int], set[int]] = defaultdict(set)
    for session in worker.sessions.values():
        for token in session.held:
            by_frame[session.partition, token >> 16].add(token)
    return sorted(by_frame.items(), key=lambda item: item[0][1], reverse=True)[:FRAMES_MAX]


def _held(partition: int, grant: Grant, view: View) -> HeldExecution | None:
    """The execution as the view has it; None for one that has ended meanwhile."""
    row = view.execution(grant.tenant, grant.execution)
    job = view.job(grant.tenant, job_of(grant.execution))
    if row is None or job is None or row.last.status != "running":
        return None
    return HeldExecution(
        execution_id=grant.execution,
        job_id=job_of(grant.execution),
        task=job[0].task,
        queue=job[0].queue,
        attempt=row.last.number,
        since=format_instant(row.last.started_at),
        partition=partition,
    )
