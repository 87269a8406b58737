"""Faust's Kafka driver with three of its fixed values put right: faust-streaming 0.15.3 offers no setting for them.

It lets the broker hold a fetch for 1.5 s, and aiokafka has one fetch under way at a time: a partition that was not yet
drained when the fetch went out is not in it, so its next records would wait out the others' silence. It reads
uncommitted records of transactions. And it takes at most 1 MiB a partition.
"""

from __future__ import annotations

from typing import Any, Final

from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer

from minutebook.wire import topics

FETCH_WAIT_MS: Final = 50


class InputThread(AIOKafkaConsumerThread):
    """The thread that Faust fetches in."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._isolation_level = "read_committed"
        consumer._max_partition_fetch_bytes = topics.MESSAGE_BYTES_MAX + (1 << 20)
        return consumer


class InputConsumer(Consumer):
    """Faust's consumer on that thread."""

    def _new_consumer_thread(self) -> Any:
        return InputThread(self, loop=self.loop, beacon=self.beacon)
