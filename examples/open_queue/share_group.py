"""`python -m examples.open_queue.share_group QUEUE`: a consumer on a share group, by confluent-kafka.

A share group gives each due record to one member and locks it there until it is accepted; any number of members share
the one partition. The client cannot limit what a poll takes, so a member with few slots and long tasks sits on what
others could run until the lock ends; a repeat of the record is harmless. Nothing is ever released: each delivery counts.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import AcknowledgeType, Consumer, KafkaException, Producer, ShareConsumer, TopicPartition

from examples.open_queue.loop import Options, main, options, show
from examples.open_queue.records import partition_of

POLL_S = 0.02


class ShareGroup:
    """See `Transport`."""

    def __init__(self, given: Options) -> None:
        self._options = given
        self._servers = {"bootstrap.servers": given.bootstrap_servers}
        self._reports = f"{given.prefix}worker-reports"
        self._inbox = f"{given.prefix}worker-inbox"

    def open(self, worker: str) -> None:
        """See `Transport.open`."""
        self._key = worker.encode()
        self._producer = Producer(self._servers | {"enable.idempotence": True, "acks": "all", "linger.ms": 0})
        self._reader = Consumer(
            self._servers
            | {
                "group.id": worker,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
                "fetch.message.max.bytes": 5 << 20,
            }
        )
        partitions = len(self._reader.list_topics(self._inbox, timeout=30).topics[self._inbox].partitions)
        place = TopicPartition(self._inbox, partition_of(worker, partitions))
        _, end = self._reader.get_watermark_offsets(place, timeout=30)
        self._reader.assign([TopicPartition(place.topic, place.partition, end)])
        self._due = ShareConsumer(
            self._servers
            | {
                "group.id": self._options.due_topic,
                "share.acknowledgement.mode": "explicit",
                "max.poll.records": 50,
                "fetch.wait.max.ms": 50,
            }
        )
        self._due.subscribe([self._options.due_topic])

    def poll_due(self) -> list[tuple[Any, bytes]]:
        """See `Transport.poll_due`."""
        found = []
        for message in self._due.poll(POLL_S):
            if message.error() is None:
                found.append((message, message.value()))
        return found

    def accept(self, handles: list[Any]) -> None:
        """See `Transport.accept`. What the broker does not take comes again, and is claimed again: harmless."""
        for message in handles:
            self._due.acknowledge(message, AcknowledgeType.ACCEPT)
        if handles:
            self._due.commit_async()

    def poll_inbox(self) -> list[bytes]:
        """See `Transport.poll_inbox`."""
        found = self._reader.consume(500, POLL_S)
        return [
            message.value() for message in found if message.error() is None and message.key() == self._key
        ]

    def send(self, partition: int, value: bytes) -> int:
        """See `Transport.send`."""
        acks: list[tuple[Any, Any]] = []
        self._producer.produce(
            self._reports, value, partition=partition, on_delivery=lambda *ack: acks.append(ack)
        )
        while not acks:
            self._producer.poll(0.1)
        error, message = acks[0]
        if error is not None:
            raise KafkaException(error)
        return int(message.timestamp()[1])

    def close(self) -> None:
        """See `Transport.close`."""
        self._due.close()
        self._reader.close()


if __name__ == "__main__":
    given = options(__doc__.splitlines()[0])
    main(ShareGroup(given), given, show, "share-group")
