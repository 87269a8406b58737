"""Creating jobs as any bulk producer would: batches of up to 500 commands of one partition, straight to Kafka."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from time import time_ns
from typing import Final, NamedTuple

from bench.witness import TASK
from minutebook.domain.commands import SubmitJob
from minutebook.ids import job_key
from minutebook.log.kafka import producer
from minutebook.log.settings import KafkaSettings
from minutebook.mint import mint_id
from minutebook.wire import topics
from minutebook.wire.codec import BATCH_MAX, CommandBatch, encode

TENANT: Final = "default"
_IN_FLIGHT_MAX: Final = 512


class Encoded(NamedTuple):
    """A record for `job-commands`, ready to be sent."""

    partition: int
    key: bytes
    value: bytes


class Sent(NamedTuple):
    """When the first record went out and when the last was acknowledged, nanoseconds since the epoch."""

    first_ns: int
    acked_ns: int


def job_id(prefix: str, number: int) -> str:
    """Id of the job of run `number`; `prefix` parts the jobs of one installation."""
    return f"{prefix}-{number}"


def last_jobs(prefix: str, n: int, partitions: int) -> list[str]:
    """Id of the last of jobs 0 to `n` - 1 in each partition that has one."""
    found: dict[int, str] = {}
    for number in range(n - 1, -1, -1):
        name = job_id(prefix, number)
        found.setdefault(topics.partition_of(job_key(TENANT, name), partitions), name)
        if len(found) == partitions:
            break
    return list(found.values())


def submissions(
    prefix: str, due_ms: Sequence[int], *, task: str = TASK, tenant: str = TENANT, first: int = 0
) -> Iterator[SubmitJob]:
    """The command for each run: one job, once, at its `due_ms`, its number, from `first` on, as payload."""
    now = time_ns() // 1_000_000
    source = mint_id()
    for number, due in enumerate(due_ms, first):
        yield SubmitJob(
            tenant=tenant,
            job_id=job_id(prefix, number),
            command_id=f"{source}.{number}",
            issued_at=now,
            actor="bench",
            task=task,
            payload=str(number).encode(),
            run_at=due,
        )


def in_batches(commands: Iterable[SubmitJob], partitions: int) -> Iterator[Encoded]:
    """`commands` as full batches, in their order within each partition."""
    lanes: dict[int, list[SubmitJob]] = defaultdict(list)
    for command in commands:
        lane = topics.partition_of(job_key(command.tenant, command.job_id), partitions)
        lanes[lane].append(command)
        if len(lanes[lane]) == BATCH_MAX:
            yield _batch(lane, lanes.pop(lane))
    for lane, rest in lanes.items():
        yield _batch(lane, rest)


def one_by_one(commands: Iterable[SubmitJob], partitions: int) -> Iterator[Encoded]:
    """Each of `commands` as a record of its own."""
    for command in commands:
        key = job_key(command.tenant, command.job_id)
        yield Encoded(topics.partition_of(key, partitions), key.encode(), encode(command))


async def send(kafka: KafkaSettings, records: Iterable[Encoded]) -> Sent:
    """Append all `records` with acks=all and wait for every acknowledgement. Raises KafkaError."""
    used = producer(kafka, linger_ms=2)
    await used.start()
    topic = kafka.topic(topics.COMMANDS)
    first_ns = time_ns()
    try:
        acks: deque[asyncio.Future[object]] = deque()
        for record in records:
            acks.append(await used.send(topic, record.value, key=record.key, partition=record.partition))
            while len(acks) > _IN_FLIGHT_MAX:
                await acks.popleft()
        await asyncio.gather(*acks)
        return Sent(first_ns, time_ns())
    finally:
        await used.stop()


def _batch(partition: int, commands: Sequence[SubmitJob]) -> Encoded:
    key = job_key(commands[0].tenant, commands[0].job_id)
    return Encoded(partition, key.encode(), encode(CommandBatch([*commands])))
