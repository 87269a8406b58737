"""What all owners of one process share: clients, clock, names, and how to ask for the bounds of the inputs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from aiokafka import AIOKafkaProducer

from minutebook.clock import Clock
from minutebook.log.port import EventLog
from minutebook.log.settings import KafkaSettings


class Bounds(NamedTuple):
    """First and end offset of each input topic of a partition, and where its window of reports starts."""

    first: dict[str, int]
    end: dict[str, int]
    reports_from: int


class Burst:
    """Whether this process has much to start: then results wait, in all its partitions. `until` is in ms, as `now`."""

    def __init__(self) -> None:
        self.until = -1


class Process(NamedTuple):
    """What all owners of one process share."""

    kafka: KafkaSettings
    events: EventLog
    producer: AIOKafkaProducer
    clock: Clock
    data_dir: Path
    owner_id: str
    log_id: str
    partitions: int
    inbox_partitions: int
    topic_ids: dict[str, str]
    clock_bound_ms: int
    input_bounds: Callable[[int, int], Awaitable[Bounds]]
    burst: Burst
