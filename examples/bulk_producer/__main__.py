"""`python -m examples.bulk_producer BOOTSTRAP N TASK`: N jobs for the tenant `default`, each an hour from now."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from examples.bulk_producer.commands import batches
from examples.open_queue.records import Records

TOPIC = "job-commands"


def jobs(count: int, task: str, run_at_ms: int) -> Iterator[dict[str, Any]]:
    """The same jobs and commands whenever they are sent again."""
    for number in range(count):
        name = f"bulk-{number}"
        yield {
            "job_id": name,
            "command_id": f"{name}.1",
            "task": task,
            "payload": b"null",
            "run_at": run_at_ms,
        }


def main(bootstrap: str, count: int, task: str) -> int:
    """Returns how many records were not acknowledged: send them again, it makes no job twice."""
    lost: list[KafkaError] = []

    def settled(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            lost.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 5,
        }
    )
    partitions = len(producer.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions)
    now_ms = time.time_ns() // 1_000_000
    for record in batches(jobs(count, task, now_ms + 3_600_000), "default", partitions, now_ms, Records()):
        producer.produce(TOPIC, record.value, record.key, partition=record.partition, on_delivery=settled)
        producer.poll(0)
    producer.flush()
    return len(lost)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]) > 0)
