"""Outputs on their way out: by a producer of their own, in frame order, only for frames known to be valid.

`sent_through` is the last frame whose outputs were all acknowledged; it goes into the header of a later frame, and a
fresh owner sends again from there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from minutebook import ids
from minutebook.domain.outputs import Output, ToAlerts, ToDeadLetters, ToPartition, ToRejected, ToSession
from minutebook.domain.records import Inbox
from minutebook.errors import LogGapError
from minutebook.log.kafka import read_range
from minutebook.log.port import RawRecord
from minutebook.log.settings import KafkaSettings
from minutebook.wire import codec, topics

ORIGIN_BYTES_MAX: Final = 64 << 10
RETRY_S: Final = 0.5

log = structlog.get_logger()


class _Sent(NamedTuple):
    frame: int
    outputs: list[tuple[Output, asyncio.Future[Any]]]


class Outbox:
    """Outputs of one partition."""

    def __init__(
        self,
        producer: AIOKafkaProducer,
        kafka: KafkaSettings,
        partition: int,
        inbox_partitions: int,
        sent_through: int,
        on_granted: Callable[[str, int, int], None],
        on_refused: Callable[[int, Output, str], None],
        at_hand: Callable[[str, int], RawRecord | None],
    ) -> None:
        self._producer = producer
        self._kafka = kafka
        self._partition = partition
        self._inbox_partitions = inbox_partitions
        self._on_granted = on_granted
        self._on_refused = on_refused
        self._at_hand = at_hand
        self._waiting: deque[_Sent] = deque()
        self._more = asyncio.Event()
        self.sent_through = sent_through

    async def send(self, frame: int, outputs: list[Output]) -> None:
        """Hand the outputs of one valid frame to the producer, in order."""
        sent = [(output, await self._start(output)) for output in outputs]
        self._waiting.append(_Sent(frame, sent))
        self._more.set()

    async def reply(self, records: list[Inbox]) -> None:
        """Answers to reports; a lost one is asked for again by the next pulse."""
        for record in records:
            await self._start(ToSession(record.session, record))

    async def run(self) -> None:
        """Await acks in frame order, for ever."""
        while True:
            if not self._waiting:
                self._more.clear()
                await self._more.wait()
                continue
            sent = self._waiting[0]
            for output, future in sent.outputs:
                await self._acknowledged(sent.frame, output, future)
            self._waiting.popleft()
            self.sent_through = sent.frame

    async def _acknowledged(self, frame: int, output: Output, future: asyncio.Future[Any]) -> None:
        while True:
            try:
                ack = await asyncio.shield(future)
            except KafkaError as error:
                if not error.retriable:
                    log.error("output_refused", partition=self._partition, frame=frame, error=str(error))
                    self._on_refused(frame, output, type(error).__name__)
                    return
                await asyncio.sleep(RETRY_S)
                future = await self._start(output)
                continue
            if isinstance(output, ToSession) and output.record.granted is not None:
                self._on_granted(output.session, frame, ack.timestamp)
            return

    def _start(self, output: Output) -> Coroutine[Any, Any, asyncio.Future[Any]]:
        match output:
            case ToSession():
                worker = ids.worker_of(output.session)
                place = topics.partition_of(worker, self._inbox_partitions)
                return self._put(topics.INBOX, codec.encode(output.record), place, worker.encode())
            case ToPartition():
                return self._put(topics.MAIL, codec.encode(output.record), output.partition)
            case ToDeadLetters():
                return self._dead_letter(output)
            case ToRejected():
                return self._rejected(output)
            case ToAlerts():
                return self._alert(output)

    async def _put(
        self,
        topic: str,
        value: bytes | None,
        partition: int | None,
        key: bytes | None = None,
        headers: list[tuple[str, bytes]] | None = None,
    ) -> asyncio.Future[Any]:
        name = self._kafka.topic(topic)
        future: asyncio.Future[Any] = await self._producer.send(
            name, value, key=key, partition=partition, headers=headers or []
        )
        return future

    async def _dead_letter(self, output: ToDeadLetters) -> asyncio.Future[Any]:
        record = output.record
        name = f"{record.tenant}/{record.execution}/{record.generation}"
        headers = [
            *_origin(topics.EVENTS, self._partition, output.offset, record.cause),
            *self._cloud_event(name, "DeadLetter", f"{record.tenant}/{record.job_id}"),
        ]
        if output.traceparent:
            headers.append(("traceparent", output.traceparent.encode()))
        return await self._put(
            topics.DEAD_LETTERS, codec.encode(record), self._partition, output.key.encode(), headers
        )

    async def _alert(self, output: ToAlerts) -> asyncio.Future[Any]:
        record = output.record
        subject = f"{record.tenant}/{record.job_id or record.task}"
        headers = [
            *_origin(topics.EVENTS, self._partition, output.offset, record.kind),
            *self._cloud_event(record.id, "Alert", subject),
        ]
        return await self._put(topics.ALERTS, codec.encode(record), 0, record.tenant.encode(), headers)

    def _cloud_event(self, name: str, kind: str, subject: str) -> list[tuple[str, bytes]]:
        """Headers of CloudEvents in binary mode; `name` is the same when the record is sent again."""
        return [
            ("content-type", b"application/avro"),
            ("ce_specversion", b"1.0"),
            ("ce_id", name.encode()),
            ("ce_type", f"minutebook.{kind}".encode()),
            ("ce_source", f"minutebook/{topics.EVENTS}/{self._partition}".encode()),
            ("ce_subject", subject.encode()),
        ]

    async def _rejected(self, output: ToRejected) -> asyncio.Future[Any]:
        """With the raw bytes, as long as the input still holds them."""
        record = self._at_hand(output.topic, output.offset) or await self._fetch(output)
        value, key = (
            (None, None) if record is None else ((record.value or b"")[:ORIGIN_BYTES_MAX], record.key)
        )
        headers = _origin(output.topic, output.partition, output.offset, output.reason)
        return await self._put(topics.REJECTED, value, self._partition, key, headers)

    async def _fetch(self, output: ToRejected) -> RawRecord | None:
        """A record from where it lies: sent again after a crash, it is no longer in memory."""
        place = (output.topic, output.partition, output.offset, output.offset + 1)
        try:
            async for record in read_range(self._kafka, *place):
                return record
        except (KafkaError, LogGapError) as error:
            log.warning("rejected_record_gone", topic=output.topic, error=type(error).__name__)
        return None


def _origin(topic: str, partition: int, offset: int, reason: str) -> list[tuple[str, bytes]]:
    return [
        ("mb_origin_topic", topic.encode()),
        ("mb_origin_partition", str(partition).encode()),
        ("mb_origin_offset", str(offset).encode()),
        ("mb_reason", reason.encode()),
    ]
