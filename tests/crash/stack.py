"""One installation under test on a broker that others share: own topics, own group, own folder.

Owners and workers are processes of their own; commands are produced as any producer would; what happened is read from
`job-events` alone.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException, Producer

from minutebook.domain.commands import Command, SubmitJob
from minutebook.domain.subjects import key_of
from minutebook.embedded.ports import free_ports
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.port import RawRecord
from minutebook.log.settings import KafkaSettings
from minutebook.mint import mint_id
from minutebook.wire import codec, topics
from tests.crash.joblog import JobLog, Tail, Whole, raw
from tests.crash.process import Process
from tests.crash.tasks import FOLDER

PARTITIONS: Final = 4
INBOX_PARTITIONS: Final = 2
SESSION_TIMEOUT_S: Final = 2.0
LEASE_MS: Final = 5_000
PULSE_MS: Final = 1_000
TENANT: Final = "t"


class Sent(NamedTuple):
    """A command that the broker has. `stamp` is its reference instant, ms."""

    command: Command
    partition: int
    offset: int
    stamp: int


class Sighting(NamedTuple):
    """A line of a witness file: what a handler itself saw. `at` and `due_at` are ms."""

    moment: str
    tenant: str
    execution: str
    attempt: int
    token: int
    due_at: int
    at: float
    pid: int


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def home_of(command: Command) -> int:
    """Its partition."""
    return topics.partition_of(key_of(command), PARTITIONS)


def job(**fields: Any) -> SubmitJob:
    """A job of the test tenant, due now unless told otherwise."""
    name = fields.pop("job_id", None) or f"j-{uuid.uuid4().hex[:12]}"
    base: dict[str, Any] = {
        "tenant": TENANT,
        "job_id": name,
        "command_id": mint_id(),
        "issued_at": now_ms(),
        "task": "crash.note",
        "payload": b"null",
    }
    return SubmitJob(**(base | fields))


def jobs_over(count: int, seconds: float, task: str = "crash.note", after_s: float = 0.3) -> list[SubmitJob]:
    """Jobs due one after the other from `after_s` on, evenly over `seconds`."""
    first = now_ms() + int(after_s * 1000)
    return [job(task=task, run_at=first + int(number * seconds * 1000 / count)) for number in range(count)]


class Stack:
    """See the module. `close` ends every process; so does the end of the tests."""

    def __init__(self, bootstrap_servers: str, folder: Path, partitions: int = PARTITIONS) -> None:
        self.folder = folder
        self.partitions = partitions
        self.witness_dir = folder / "witness"
        self.prefix = f"x{uuid.uuid4().hex[:8]}."
        self.kafka = KafkaSettings(bootstrap_servers=bootstrap_servers, topic_prefix=self.prefix)
        self.processes: list[Process] = []
        self.sent: list[Sent] = []
        self.log = JobLog(partitions)
        self._ports = free_ports(folder)
        admin.create(
            self.kafka, TopicSettings(partitions=partitions, inbox_partitions=INBOX_PARTITIONS, replication=1)
        )
        self._tail = Tail(self.kafka, topics.EVENTS, partitions)
        self._wholes: dict[str, Whole] = {}
        self._producer = Producer(self.kafka.confluent() | {"linger.ms": 1, "message.max.bytes": 16 << 20})

    def close(self) -> None:
        for process in self.processes:
            if process.is_running:
                process.kill()
        self._tail.close()
        for whole in self._wholes.values():
            whole.close()

    # -- processes

    def owner(
        self,
        name: str,
        arguments: Sequence[str] = ("-m", "streams"),
        *,
        group: str = "owners",
        is_kept: bool = False,
        **settings: str,
    ) -> Process:
        """An owner process. `settings` are settings of `MINUTEBOOK_STREAMS_`, in lower case."""
        port = next(self._ports)
        own = {
            "data_dir": str(self.data_dir(name)),
            "checkpoint_dir": str(self.folder / "checkpoints"),
            "instance_id": name,
            "health_port": str(port),
            "group": f"{self.prefix}{group}",
            "session_timeout_s": str(SESSION_TIMEOUT_S),
        } | settings
        environment = {f"MINUTEBOOK_STREAMS_{key.upper()}": value for key, value in own.items()}
        environment[FOLDER] = str(self.witness_dir)
        return self._start(name, arguments, environment, port, is_kept)

    def worker(
        self,
        name: str,
        arguments: Sequence[str] = ("-m", "minutebook.cli"),
        *,
        concurrency: int = 20,
        app: str = "tests.crash.tasks:app",
        is_kept: bool = False,
    ) -> Process:
        """A worker process of `app`."""
        environment = {
            "MINUTEBOOK_WORKER_NAME": name,
            "MINUTEBOOK_WORKER_CONCURRENCY": str(concurrency),
            "MINUTEBOOK_WORKER_LEASE_MS": str(LEASE_MS),
            "MINUTEBOOK_WORKER_PULSE_MS": str(PULSE_MS),
            FOLDER: str(self.witness_dir),
        }
        return self._start(name, (*arguments, "worker", "run", app), environment, None, is_kept)

    def script(self, name: str, arguments: Sequence[str], environment: dict[str, str]) -> Process:
        """Any other process, which is told nothing but its arguments, `environment`, and where Kafka is."""
        return self._start(name, arguments, environment, None, False)

    def data_dir(self, name: str) -> Path:
        """Where the owner of that name keeps its state."""
        return self.folder / f"data-{name}"

    def _start(
        self, name: str, arguments: Sequence[str], own: dict[str, str], port: int | None, is_kept: bool
    ) -> Process:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MINUTEBOOK_")}
        shared = {
            "PYTHONUNBUFFERED": "1",
            "MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS": self.kafka.bootstrap_servers,
            "MINUTEBOOK_KAFKA_TOPIC_PREFIX": self.prefix,
            "MINUTEBOOK_TOPICS_PARTITIONS": str(self.partitions),
            "MINUTEBOOK_TOPICS_INBOX_PARTITIONS": str(INBOX_PARTITIONS),
        }
        log_file = self.folder / f"{name}.log"
        process = Process(
            name, arguments, kept | shared | own, log_file, health_port=port, is_kept=is_kept
        ).start()
        self.processes.append(process)
        return process

    # -- commands and raw records

    def produce(
        self,
        topic: str,
        partition: int,
        value: bytes | None,
        key: bytes | None = None,
        headers: list[Any] | None = None,
        timestamp: int = 0,
    ) -> RawRecord:
        """Put any record anywhere and wait for the broker's word. Raises KafkaException if it refuses."""
        answers: list[tuple[Any, Any]] = []
        self._producer.produce(
            self.kafka.topic(topic),
            value,
            key,
            partition=partition,
            headers=headers or [],
            timestamp=timestamp,
            on_delivery=lambda error, message: answers.append((error, message)),
        )
        while not answers:
            self._producer.poll(0.05)
        error, message = answers[0]
        if error is not None:
            raise KafkaException(error)
        return raw(message, key, value)

    def flood(self, topic: str, partition: int, values: Sequence[bytes], key: bytes | None = None) -> None:
        """Many records at once; returns when the broker has them all."""
        refused: list[Any] = []
        for value in values:
            self._producer.produce(
                self.kafka.topic(topic),
                value,
                key,
                partition=partition,
                on_delivery=lambda error, _: refused.append(error) if error else None,
            )
        self._producer.flush()
        assert not refused

    def send(self, command: Command, partition: int | None = None) -> Sent:
        """One single command, by default to where it belongs."""
        place = home_of(command) if partition is None else partition
        record = self.produce(topics.COMMANDS, place, codec.encode(command), key_of(command).encode())
        self.sent.append(Sent(command, place, record.offset, record.stamp))
        return self.sent[-1]

    def submit(self, commands: Sequence[Command]) -> None:
        """Commands in batches, one for each partition."""
        for partition in range(self.partitions):
            batch = [command for command in commands if home_of(command) == partition]
            if batch:
                value = codec.encode(codec.CommandBatch(batch))
                record = self.produce(topics.COMMANDS, partition, value, key_of(batch[0]).encode())
                self.sent += [Sent(command, partition, record.offset, record.stamp) for command in batch]

    # -- facts

    def look(self, within_s: float = 0.05) -> JobLog:
        """The log with what has come since."""
        for partition, record in self._tail.read(within_s):
            self.log.take(partition, record)
        return self.log

    def until(self, what: str, condition: Callable[[JobLog], object], within_s: float = 40) -> None:
        """Follow the log until `condition` holds; processes that are kept are started again meanwhile."""
        deadline = time.monotonic() + within_s
        while not condition(self.look()):
            for process in self.processes:
                process.revive()
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {within_s} s: {what}\n{self.story()}")

    def await_ready(self, *processes: Process) -> None:
        """Until every one of `processes` says that it is ready."""
        self.until("ready", lambda _: all(process.is_ready() for process in processes))

    def await_done(self, within_s: float = 60) -> None:
        """Until every job sent has come to its end, or was refused."""
        from tests.crash.checker import open_jobs  # it imports this module

        self.until("every job done", lambda log: not open_jobs(log, self.sent), within_s)

    def story(self) -> str:
        """What a failed wait should show."""
        kinds: dict[str, int] = {}
        for fact in self.log.facts:
            kinds[type(fact.event).__name__] = kinds.get(type(fact.event).__name__, 0) + 1
        last = "\n".join(
            f"{fact.partition}:{fact.frame} {str(fact.event)[:300]}" for fact in self.log.facts[-8:]
        )
        parts = [last, f"log: {kinds}, void: {[(p, v.offset, v.reason) for p, v in self.log.voids]}"]
        parts.append(f"read: {[self.log.head(p)[0] for p in range(self.partitions)]}, there: {self._ends()}")
        for one in self.processes:
            parts.append(
                f"--- {one.name} exits {one.exits} says {one.health()}\n{one.stacks()}{one.tail(60)}"
            )
        return "\n".join(parts)

    def _ends(self) -> list[int]:
        """Last offset of each partition of `job-events`, by a consumer of its own."""
        return [records[-1].offset if records else -1 for records in self.whole(topics.EVENTS)]

    def whole(self, topic: str) -> list[list[RawRecord]]:
        """Every record of a topic, by partition."""
        if topic not in self._wholes:
            count = INBOX_PARTITIONS if topic == topics.INBOX else self.partitions
            self._wholes[topic] = Whole(self.kafka, topic, count)
        return self._wholes[topic].read()

    def witness(self) -> list[Sighting]:
        """What the handlers saw, in order of time."""
        return sorted(self._sightings(), key=lambda one: one.at)

    def _sightings(self) -> Iterator[Sighting]:
        for file in self.witness_dir.glob("*.jsonl"):
            for line in file.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    yield Sighting(**json.loads(line))
