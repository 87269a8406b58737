"""The loop of a consumer, over any way to Kafka: due records in, claims out, answers in, runs, results out."""

from __future__ import annotations

import argparse
import queue
import signal
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from examples.open_queue.records import Records
from examples.open_queue.session import Due, Ended, Run, Session

Handler = Callable[[Run], None]
"""Runs one attempt, in a thread. It returns if all went well; what it raises is a failure, and tried again later."""


@dataclass
class Options:
    """Where to look, and how much to do at once."""

    bootstrap_servers: str
    prefix: str
    queue: str
    slots: int

    @property
    def due_topic(self) -> str:
        """Where due records come from; the share group has the same name."""
        return f"{self.prefix}executions-due.{self.queue}"


class Transport(Protocol):
    """A way to Kafka. Everything is called by one thread."""

    def open(self, worker: str) -> None:
        """Connect. The end of the inbox partition of `worker` is fetched, to be read from there, before this returns."""

    def poll_due(self) -> list[tuple[Any, bytes]]:
        """Due records, each with what `accept` wants. Waits a moment for the first. Not called before all are accepted."""

    def accept(self, handles: list[Any]) -> None:
        """Those due records need not be delivered again."""

    def poll_inbox(self) -> list[bytes]:
        """Inbox records for this worker. Waits a moment for the first."""

    def send(self, partition: int, value: bytes) -> int:
        """A report. Returns once the broker has it, with its stamp, ms."""

    def close(self) -> None:
        """Disconnect."""


class Loop:
    """One consumer. `run` until `stop` is set."""

    def __init__(self, options: Options, transport: Transport, handler: Handler, name: str) -> None:
        self._options = options
        self._transport = transport
        self._handler = handler
        self._name = name
        self._worker = str(uuid.uuid4())
        self._records = Records()
        self._sessions: dict[int, Session] = {}
        self._waiting: deque[tuple[Any, Due]] = deque()
        """Polled and not claimed yet: more than there are slots."""
        self._claiming: list[Any] = []
        """What `accept` wants of those whose claims go out next."""
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._broker_ahead_ms = 0
        self.stop = threading.Event()

    def run(self) -> None:
        """Consume, then end in order: what runs is finished and reported, nothing more is claimed."""
        self._transport.open(self._worker)
        with ThreadPoolExecutor(self._options.slots) as pool:
            while not self.stop.is_set() or any(session.held for session in self._sessions.values()):
                self._take_due()
                self._say()
                for value in self._transport.poll_inbox():
                    for run in self._read(value):
                        pool.submit(self._work, run)
        self._transport.close()

    def _take_due(self) -> None:
        """Claim as much as there are slots for; poll for more only when all that was polled is accepted."""
        if self.stop.is_set():
            return
        if not self._waiting and not self._claiming and self._free() > 0:
            for handle, value in self._transport.poll_due():
                self._waiting.append((handle, self._records.decode(value)))
        while self._waiting and self._free() > 0:
            handle, due = self._waiting.popleft()
            partition = due["partition"]
            session = self._sessions.setdefault(partition, Session(self._worker, partition, self._name))
            session.claim(due)
            self._claiming.append(handle)

    def _free(self) -> int:
        taken = sum(len(session.held) + len(session.claims) for session in self._sessions.values())
        return self._options.slots - taken

    def _say(self) -> None:
        """Reports, until nothing is left to say. Then the broker has all claims, and their due records are accepted: from
        there the claims, sent again until they are answered, hold what they name."""
        while True:
            try:
                ended = self._ended.get_nowait()
            except queue.Empty:
                break
            self._sessions[ended.run.partition].end(ended)
        for partition, session in self._sessions.items():
            while (said := session.report(_now())) is not None:
                stamp = self._transport.send(partition, self._records.encode("Report", said.datum))
                self._broker_ahead_ms = stamp - _now()
                session.acknowledged(said)
        self._transport.accept(self._claiming)
        self._claiming = []

    def _read(self, value: bytes) -> list[Run]:
        inbox = self._records.decode(value)
        session = self._sessions.get(inbox["partition"])
        return [] if session is None else session.read(inbox, _now() + self._broker_ahead_ms)

    def _work(self, run: Run) -> None:
        started_at = _now()
        error: Exception | None = None
        try:
            self._handler(run)
        except Exception as fault:
            error = fault
        self._ended.put(Ended(run, _now() - started_at, error))


def _now() -> int:
    return time.monotonic_ns() // 1_000_000


def show(run: Run) -> None:
    """A handler that only says what it would do."""
    print(
        f"{run.due['task']} {run.due['execution']} attempt {run.due['attempt']}: {run.due['payload']!r}",
        flush=True,
    )


def options(description: str) -> Options:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("queue", help="name of the open queue")
    parser.add_argument("--bootstrap-servers", default="127.0.0.1:9092")
    parser.add_argument("--prefix", default="", help="before every topic name")
    parser.add_argument("--slots", type=int, default=50, help="runs at once")
    given = parser.parse_args()
    return Options(given.bootstrap_servers, given.prefix, given.queue, given.slots)


def main(transport: Transport, given: Options, handler: Handler, name: str) -> None:
    """Run one consumer until SIGTERM or SIGINT."""
    loop = Loop(given, transport, handler, name)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.stop.set())
    loop.run()
