"""`python -m examples.open_queue.classic_group QUEUE`: a consumer on a classic consumer group, by kafka-python.

A due topic has one partition, so one member of the group works and the others stand by.
"""

from __future__ import annotations

import time
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

from examples.open_queue.loop import Options, main, options, show
from examples.open_queue.records import partition_of

POLL_MS = 20
BYTES_MAX = 5 << 20


class ClassicGroup:
    """See `Transport`."""

    def __init__(self, given: Options) -> None:
        self._options = given
        self._servers = given.bootstrap_servers.split(",")
        self._reports = f"{given.prefix}worker-reports"
        self._inbox = f"{given.prefix}worker-inbox"

    def open(self, worker: str) -> None:
        """See `Transport.open`."""
        self._key = worker.encode()
        self._producer = KafkaProducer(
            bootstrap_servers=self._servers, acks="all", linger_ms=0, max_request_size=BYTES_MAX
        )
        self._reader = KafkaConsumer(
            bootstrap_servers=self._servers,
            enable_auto_commit=False,
            isolation_level="read_committed",
            fetch_max_wait_ms=50,
            max_partition_fetch_bytes=BYTES_MAX,
        )
        partitions = len(self._reader.partitions_for_topic(self._inbox))
        place = TopicPartition(self._inbox, partition_of(worker, partitions))
        self._reader.assign([place])
        self._reader.seek(place, self._reader.end_offsets([place])[place])
        self._due = KafkaConsumer(
            bootstrap_servers=self._servers,
            group_id=self._options.due_topic + ".classic",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            fetch_max_wait_ms=50,
            session_timeout_ms=10_000,  # so long a member that was killed holds up the next one
            heartbeat_interval_ms=3_000,
            max_poll_records=self._options.slots,
        )
        # The client joins its group before it knows the topic, and is then assigned nothing: it is asked first.
        while not self._due.partitions_for_topic(self._options.due_topic):
            time.sleep(1)
        self._due.subscribe([self._options.due_topic])

    def poll_due(self) -> list[tuple[Any, bytes]]:
        """See `Transport.poll_due`."""
        found = self._due.poll(timeout_ms=POLL_MS)
        return [(record, record.value) for records in found.values() for record in records]

    def accept(self, handles: list[Any]) -> None:
        """See `Transport.accept`. Nothing that was polled before them is unclaimed, so the last one stands for all."""
        if not handles:
            return
        last = max(handles, key=lambda record: record.offset)
        place = TopicPartition(last.topic, last.partition)
        self._due.commit_async({place: OffsetAndMetadata(last.offset + 1, "", None)})

    def poll_inbox(self) -> list[bytes]:
        """See `Transport.poll_inbox`."""
        found = self._reader.poll(timeout_ms=POLL_MS)
        return [record.value for records in found.values() for record in records if record.key == self._key]

    def send(self, partition: int, value: bytes) -> int:
        """See `Transport.send`."""
        sent = self._producer.send(self._reports, value, partition=partition)
        self._producer.flush()
        return int(sent.get(timeout=60).timestamp)

    def close(self) -> None:
        """See `Transport.close`."""
        self._due.close()
        self._reader.close()
        self._producer.close()


if __name__ == "__main__":
    given = options(__doc__.splitlines()[0])
    main(ClassicGroup(given), given, show, "classic-group")
