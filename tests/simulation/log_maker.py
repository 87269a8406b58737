"""A partition's log made in memory: the real decide, fold, frames and reader, without Kafka and without waiting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from minutebook import ids
from minutebook.clock import ManualClock
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import FAMILIES, Book
from minutebook.domain.commands import (
    CancelJob,
    Command,
    EditJob,
    PauseJob,
    PurgeJob,
    ResumeJob,
    RunJobNow,
    SubmitJob,
)
from minutebook.domain.decide import decide
from minutebook.domain.due import Due, due_granted_event, due_of, queued_event
from minutebook.domain.events import Event
from minutebook.domain.giving_up import Held
from minutebook.domain.names import Names
from minutebook.domain.records import Failed, HandedBack, Report, Succeeded
from minutebook.domain.results import decide_report, lost, returned
from minutebook.log.apply import move_cursor
from minutebook.log.draft import Draft
from minutebook.log.memory import MemoryEventLog
from minutebook.log.port import RawRecord
from minutebook.log.reader import CLOCK_BOUND_MS, FrameReader
from minutebook.schedule import TZDATA_VERSION
from minutebook.store.memory import MemoryRows
from minutebook.wire.frames import FORMAT_VERSION, Frame, InputPosition, Slice, encode_frame

T0 = 1_750_000_000_000
TENANT = "acme"
SESSION = "w1.1"


class LogMaker:
    """One partition's owner, told what to do step by step; every step is one frame."""

    def __init__(self, partition: int = 0, partitions: int = 1, now: int = T0) -> None:
        self.partition = partition
        self.partitions = partitions
        self.clock = ManualClock(now)
        self.log = MemoryEventLog(partitions, self.clock.now)
        self.rows = MemoryRows(FAMILIES)
        self.book = Book(self.rows)
        self.reader = FrameReader()
        self.owner = ""
        self.ended: dict[int, str] = {}
        self.records: list[RawRecord] = []
        self._commands = 0
        self._slices: list[Slice] = []

    # -- frames

    def open(self, owner: str = "owner-1/a") -> Frame:
        """The first frame of the log."""
        self.owner = owner
        opened = facts.LogOpened("log-1", self.partitions, self.partition, CLOCK_BOUND_MS, FORMAT_VERSION)
        return self.add(opened, facts.OwnershipTaken(owner, 1, 0, 0))

    def take_over(self, owner: str) -> Frame:
        """Another owner from here on."""
        self.owner = owner
        return self.add(facts.OwnershipTaken(owner, self.book.cursor.epoch + 1, 0, 0))

    def add(self, *events: Event) -> Frame:
        """A frame of exactly these events."""
        with self.frame() as draft:
            for event in events:
                draft.add(event)
        return self.last

    @contextmanager
    def frame(self) -> Iterator[Draft]:
        """What is added to the draft becomes durable and folded at the end."""
        draft = Draft(self.book, self.reader.position + 1, max(self.clock.now(), self.book.cursor.now))
        self._slices = []
        yield draft
        self.last = self.made(draft.events, draft.now)
        record = self._put(encode_frame(self.last))
        assert self.reader.own(record, draft.now)
        move_cursor(self.book, self.reader, self.last)
        self.book.commit()
        for event in draft.events:
            self._note_ended(event)

    def made(self, events: list[Event], now: int, *, owner: str = "") -> Frame:
        """A frame for the end of the log, not appended."""
        return Frame(
            offset=self.reader.position + 1,
            head=self.reader.head,
            owner=owner or self.owner,
            epoch=self.book.cursor.epoch,
            now=now,
            rules=1,
            tzdata=TZDATA_VERSION,
            settings=b"12345678",
            inputs=[InputPosition("job-commands", "topic-1", self._commands - 1)],
            slices=self._slices,
            outputs_sent_through=self.reader.position - 1,
            events=events,
        )

    def void(self, value: bytes | None, key: bytes | None = None) -> None:
        """A record that is void: junk, or a frame that lost."""
        self.reader.take(self._put(value, key))
        move_cursor(self.book, self.reader, None)
        self.book.commit()

    def _put(self, value: bytes | None, key: bytes | None = None) -> RawRecord:
        record = self.log.put(self.partition, value, key)
        self.records.append(record)
        return record

    def _note_ended(self, event: Event) -> None:
        if isinstance(event, facts.AttemptsSucceeded):
            self.ended.update(dict.fromkeys(event.tokens, "succeeded"))
        elif isinstance(event, facts.AttemptFailed | facts.AttemptCancelled):
            self.ended[event.token] = "failed"
        elif isinstance(event, facts.AttemptSnoozed):
            self.ended[event.token] = "snoozed"
        elif isinstance(event, facts.GrantsReturned):
            self.ended.update(dict.fromkeys(event.tokens, event.reason))

    # -- what an owner does

    def command(self, *commands: Command, stamp: int | None = None) -> list[Event]:
        """Decide commands; the events of the frame, none if nothing was to be said."""
        stamp = self.clock.now() if stamp is None else stamp
        self._commands += len(commands)
        with self.frame() as draft:
            for command in commands:
                for event in decide(self.book, command, stamp):
                    draft.add(event)
        return draft.events

    def due(self, session: str = "") -> list[Event]:
        """Everything that has come due: queued, or granted to `session` at once."""
        with self.frame() as draft:
            bound = keys.index_bound(draft.now + 1)
            rows: list[Due] = []
            key = b""
            for key in [key for key, _ in self.book.index.scan(b"") if key < bound]:
                found, events = due_of(self.book, key, draft.now)
                if events and rows:
                    self._come(draft, rows, session)
                    found, events = due_of(self.book, key, draft.now)
                for event in events:
                    draft.add(event)
                rows.extend(found)
            self._come(draft, rows, session)
            if key:
                self._slices.append(Slice("", -1, key, len(draft.events)))
        return draft.events

    def _come(self, draft: Draft, rows: list[Due], session: str) -> None:
        if rows:
            self._start(draft, session)
            draft.add(due_granted_event(rows, [session] * len(rows)) if session else queued_event(rows))
            rows.clear()

    def _start(self, draft: Draft, session: str) -> None:
        if session and self.book.sessions.get(session.encode()) is None:
            draft.add(facts.SessionStarted(session, f"name of {session}", ["t"], 10_000, 3_000))

    def grant(self, session: str = SESSION, count: int = 1_000_000) -> list[Event]:
        """The first `count` of what is queued goes to `session`."""
        queued = [key for key, _ in self.book.queued.scan(b"")][:count]
        named = [(lane.tenant, name) for lane, name in map(keys.queued_parts, queued)]
        if not named:
            return []
        tenants = Names()
        with self.frame() as draft:
            self._start(draft, session)
            draft.add(
                facts.ExecutionsGranted(
                    tenant=tenants.column([tenant for tenant, _ in named]),
                    executions=[name for _, name in named],
                    attempts=[self.execution(tenant, name).attempt for tenant, name in named],
                    session=[0] * len(named),
                    sessions=[session],
                    tenants=tenants.texts,
                    permits=[],
                )
            )
        return draft.events

    def execution(self, tenant: str, name: str):  # type: ignore[no-untyped-def]  # the row, which must be there
        """An open execution."""
        found = self.book.execution(keys.execution_row(tenant, name))
        assert found is not None, f"{tenant}/{name} is not open"
        return found

    def running(self, session: str = "") -> list[Held]:
        """Running attempts, of one session or all, by token."""
        found = [Held(key, row.token, row) for key, row in self.book.running.scan(b"")]
        return sorted(
            (held for held in found if session in ("", held.execution.session)), key=lambda held: held.token
        )

    def report(self, report: Report) -> list[Event]:
        """A worker's report."""
        with self.frame() as draft:
            for step in decide_report(self.book, report, draft.now, self.ended):
                for event in step:
                    draft.add(event)
        return draft.events

    def lose(self, held: list[Held], cause: str = "lease_over") -> list[Event]:
        """Attempts are lost."""
        return list(self.add(*lost(self.book, cause, held, self.clock.now())).events)

    def withdraw(self, held: list[Held], reason: str = "withdrawn") -> list[Event]:
        """Grants are taken back."""
        return list(self.add(*returned(self.book, reason, held, self.clock.now())).events)


# -- short forms of records


_numbers = iter(range(1, 1 << 60))


def submit(job_id: str, **more: object) -> SubmitJob:
    """A create with everything at its default."""
    fields = {
        "tenant": TENANT,
        "command_id": f"c{next(_numbers)}",
        "issued_at": T0,
        "task": "t",
        "payload": b"{}",
    }
    return SubmitJob(job_id=job_id, **(fields | more))  # type: ignore[arg-type]  # as the caller says


def cancel(job_id: str, **more: object) -> CancelJob:
    """A cancel."""
    fields = {"tenant": TENANT, "command_id": f"c{next(_numbers)}", "issued_at": T0}
    return CancelJob(job_id=job_id, **(fields | more))  # type: ignore[arg-type]  # as the caller says


def run_now(job_id: str, **more: object) -> RunJobNow:
    """A run-now."""
    fields = {"tenant": TENANT, "command_id": f"c{next(_numbers)}", "issued_at": T0}
    return RunJobNow(job_id=job_id, **(fields | more))  # type: ignore[arg-type]  # as the caller says


def pause(job_id: str, **more: object) -> PauseJob:
    """A pause."""
    fields = {"tenant": TENANT, "command_id": f"c{next(_numbers)}", "issued_at": T0}
    return PauseJob(job_id=job_id, **(fields | more))  # type: ignore[arg-type]  # as the caller says


def resume(job_id: str, **more: object) -> ResumeJob:
    """A resume."""
    fields = {"tenant": TENANT, "command_id": f"c{next(_numbers)}", "issued_at": T0}
    return ResumeJob(job_id=job_id, **(fields | more))  # type: ignore[arg-type]  # as the caller says


def purge(job_id: str, **more: object) -> PurgeJob:
    """A purge."""
    fields = {"tenant": TENANT, "command_id": f"c{next(_numbers)}", "issued_at": T0}
    return PurgeJob(job_id=job_id, **(fields | more))  # type: ignore[arg-type]  # as the caller says


def edit(job_id: str, expected_version: int | None = None, **more: object) -> EditJob:
    """An edit to what `submit` would create."""
    job = submit(job_id, **more)
    return EditJob(
        tenant=job.tenant,
        job_id=job_id,
        command_id=job.command_id,
        issued_at=job.issued_at,
        expected_version=expected_version,
        job=job,
    )


def success(held: Iterable[Held], session: str = SESSION) -> Report:
    """All of `held` succeeded."""
    rows = list(held)
    tenants = Names()
    numbers = tenants.column([keys.names(item.key)[0] for item in rows])
    names = [keys.names(item.key)[1] for item in rows]
    tokens = [item.token for item in rows]
    zeros = [0] * len(rows)
    return Report(session, 1, succeeded=Succeeded(tenants.texts, numbers, names, tokens, zeros, zeros))


def failure(held: Held, session: str = SESSION, **more: object) -> Report:
    """It failed."""
    tenant, name = keys.names(held.key)
    fields = {"error_type": "ValueError", "message": "no", "is_permanent": False}
    return Report(session, 1, failed=[Failed(tenant, name, held.token, **(fields | more))])  # type: ignore[arg-type]


def hand_back(held: Iterable[Held], session: str = SESSION) -> Report:
    """All of `held` come back."""
    rows = list(held)
    tenants = Names()
    numbers = tenants.column([keys.names(item.key)[0] for item in rows])
    names = [keys.names(item.key)[1] for item in rows]
    return Report(
        session, 1, handed_back=HandedBack(tenants.texts, numbers, names, [item.token for item in rows])
    )


def execution_of(job_id: str, at: int) -> str:
    """Id of an execution."""
    return ids.execution_id(job_id, at)
