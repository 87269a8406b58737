"""An installation in memory: the real decide, the real frames, the real view; only Kafka is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from fastapi import FastAPI

from api.app import create_app
from api.auth import Keyring
from api.catch_up import CatchUp
from api.lanes import Keyed
from api.notifier.settings import NotifySettings
from api.notifier.targets import Targets
from api.problems import Refused
from api.services import Services
from api.settings import ApiSettings, KeyHolder, RoleName, key_hash
from api.view import View
from minutebook.clock import ManualClock
from minutebook.domain import book as owner_book
from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.commands import Command
from minutebook.domain.decide import decide
from minutebook.domain.events import Event
from minutebook.domain.outputs import calendar_fact, limit_fact
from minutebook.domain.queues import queue_copied, queue_fact
from minutebook.domain.view_rows import FAMILIES
from minutebook.log.draft import Draft
from minutebook.log.port import RawRecord
from minutebook.log.reader import Taken, next_head
from minutebook.store.memory import MemoryRows
from minutebook.store.port import Rows
from minutebook.wire.frames import Frame, InputPosition, encode_frame

PARTITIONS = 4
NOW = 1_767_225_600_000  # 2026-01-01T00:00:00Z
KEYS: dict[str, tuple[str, RoleName]] = {
    "key-viewer": ("acme", "viewer"),
    "key-submitter": ("acme", "submitter"),
    "key-operator": ("acme", "operator"),
    "key-admin": ("acme", "admin"),
    "key-worker": ("acme", "worker"),
    "key-other": ("other", "submitter"),
    "key-other-admin": ("other", "admin"),
    "key-other-operator": ("other", "operator"),
}


class MemoryInstallation:
    """Owners of all partitions, each decision folded by the view at once, or after `release` where it is held."""

    def __init__(self, view: View, clock: ManualClock) -> None:
        self.view = view
        self.clock = clock
        self.sent: list[Command] = []
        self.is_held = False
        self.is_broken = False
        self.logs: list[list[RawRecord]] = [[] for _ in range(PARTITIONS)]
        self._heads = [bytes(32)] * PARTITIONS
        self.books = [_opened(partition) for partition in range(PARTITIONS)]
        self._held: list[tuple[int, RawRecord]] = []
        self._commands = [0] * PARTITIONS

    def choose(self) -> int:
        """See `CommandLog.choose`."""
        return len(self.sent) % PARTITIONS

    async def send(self, partition: int, commands: Sequence[Keyed]) -> int:
        """See `CommandLog.send`."""
        await asyncio.sleep(0)
        if self.is_broken:
            raise Refused("not-durable")
        return [self._decide(partition, keyed.command) for keyed in commands][-1]

    def _decide(self, partition: int, command: Command) -> int:
        self.sent.append(command)
        offset = self._commands[partition]
        self._commands[partition] += 1
        events = decide(self.books[partition], command, self.clock.now())
        self.append(partition, events, command_offset=offset)
        for event in events:
            if isinstance(event, facts.QueueDeclared):
                copy = queue_copied(event.name, queue_fact(event))
                self._append_elsewhere(partition, copy)
            if isinstance(event, facts.LimitDeclared):
                known = facts.LimitCopied(*msgspec.structs.astuple(limit_fact(event)))
                self._append_elsewhere(partition, known)
            if isinstance(event, facts.CalendarDeclared):
                dates = facts.CalendarCopied(*msgspec.structs.astuple(calendar_fact(event)))
                self._append_elsewhere(partition, dates)
            if isinstance(event, facts.OperationStarted | facts.OperationCancelled):
                self._append_elsewhere(partition, facts.OperationCopied(event.fact))
        return offset

    def _append_elsewhere(self, partition: int, copy: Event) -> None:
        """What mail brings to all other partitions."""
        for other in set(range(PARTITIONS)) - {partition}:
            self.append(other, [copy])

    def append(self, partition: int, events: list[Event], command_offset: int = -1) -> int:
        """Append a frame with `events`, fold it as owner, show it to the view. Its offset."""
        log = self.logs[partition]
        draft = Draft(self.books[partition], len(log), self.clock.now())
        for event in events:
            draft.add(event)
        frame = Frame(
            offset=len(log),
            head=self._heads[partition],
            owner="test",
            epoch=1,
            now=self.clock.now(),
            rules=1,
            tzdata="",
            settings=b"",
            inputs=[InputPosition("job-commands", "", max(command_offset, self._commands[partition] - 1))],
            slices=[],
            outputs_sent_through=-1,
            events=draft.events,
        )
        record = RawRecord(len(log), self.clock.now(), None, encode_frame(frame))
        self._heads[partition] = next_head(self._heads[partition], record)
        log.append(record)
        self.books[partition].commit()
        if self.is_held:
            self._held.append((partition, record))
        else:
            self._show(partition, record)
        return frame.offset

    def release(self) -> None:
        """Let the view see what was held back."""
        self.is_held = False
        held, self._held = self._held, []
        for partition, record in held:
            self._show(partition, record)

    def _show(self, partition: int, record: RawRecord) -> None:
        assert isinstance(self.view.take(partition, record), Taken)


def _opened(partition: int) -> Book:
    """The state of a partition of which nothing is known but which it is."""
    book = Book(MemoryRows(owner_book.FAMILIES))
    book.advance(msgspec.structs.replace(book.cursor, partition=partition, partitions=PARTITIONS))
    book.commit()
    return book


class MemoryDueTopics:
    """Due topics by the queue that they were made for; `is_broken`: the broker is away."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.is_broken = False

    async def make(self, queue: str) -> None:
        """See `DueTopics.make`."""
        if self.is_broken:
            raise Refused("not-durable")
        self.made.append(queue)


class Ready:
    """A readiness that tests set."""

    reason = ""
    is_caught_up = True

    def __init__(self) -> None:
        self.lag: dict[int, int] = {}
        self.catch_up = CatchUp()

    def unready(self) -> str:
        """See `Readiness`."""
        return self.reason


@dataclass
class Installation:
    """All parts, for tests to look at."""

    log: MemoryInstallation
    services: Services
    ready: Ready
    clock: ManualClock
    due_topics: MemoryDueTopics
    app: FastAPI


def installation(rows: Rows | None = None, **settings: Any) -> Installation:
    """A fresh installation with one key per role. `settings`: of the API, beside or instead of the usual ones."""
    clock = ManualClock(NOW)
    view = View(MemoryRows(FAMILIES) if rows is None else rows, PARTITIONS)
    log = MemoryInstallation(view, clock)
    holders = {key_hash(key): KeyHolder(tenant=tenant, role=role) for key, (tenant, role) in KEYS.items()}
    ready = Ready()
    chosen = ApiSettings(**({"body_timeout_s": 0.3, "keys": holders} | settings))
    due_topics = MemoryDueTopics()
    keyring = Keyring(holders, view.keys, clock, chosen.cursor_key())
    services = Services(chosen, clock, keyring, view, log, due_topics, ready, Targets(NotifySettings()))
    return Installation(log, services, ready, clock, due_topics, create_app(services))
