"""Folds of what is on record beside jobs and executions: answers, sessions, shared facts, mail, the log itself."""

from __future__ import annotations

import hashlib

import msgspec

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.state import Answer, ApiKey, Limit, Queue, Session, Task
from minutebook.errors import BrokenFrameError

replace = msgspec.structs.replace


def remember(book: Book, now: int) -> int:
    """The day of `now`, noted as one that holds rows."""
    day = now // keys.DAY_MS
    if day not in book.cursor.days:
        book.advance(replace(book.cursor, days=[*book.cursor.days, day]))
    return day


def answer(book: Book, row: bytes, command_id: str, found: Answer, now: int) -> None:
    """Remember what a command was answered, to answer a repeat the same way."""
    book.commands.put(keys.remembered_row(remember(book, now), row + b"\0" + command_id.encode()), found)


def answered(book: Book, event: facts.CommandAnswered, token: int, now: int) -> None:
    """A command that changed nothing has its answer."""
    row = keys.job_row(event.tenant, event.job_id)
    answer(book, row, event.command_id, Answer(True, event.reason), now)


def rejected(book: Book, event: facts.CommandRejected, token: int, now: int) -> None:
    """A refused command has its answer."""
    row = keys.job_row(event.tenant, event.job_id)
    answer(book, row, event.command_id, Answer(False, event.reason), now)


def session_started(book: Book, event: facts.SessionStarted, token: int, now: int) -> None:
    """A session was granted something for the first time."""
    book.sessions.put(
        event.session.encode(), Session(event.worker, event.tasks, event.lease_ms, event.pulse_ms)
    )


def session_ended(book: Book, event: facts.SessionEnded, token: int, now: int) -> None:
    """A session is over for good."""
    row = event.session.encode()
    book.sessions.delete(row)
    book.ended.put(keys.remembered_row(remember(book, now), row), b"")


def queue_declared(book: Book, event: facts.QueueDeclared, token: int, now: int) -> None:
    """The home of a queue has answered; the fact itself is in `QueueCopied`, like everywhere."""
    answer(book, keys.job_row("", event.name), event.command_id, Answer(True, ""), now)


def queue_copied(book: Book, event: facts.QueueCopied, token: int, now: int) -> None:
    """This partition knows the queue."""
    book.queues.put(
        event.name.encode(),
        Queue(event.version, event.is_open, event.tenants, event.is_paused, event.is_draining),
    )


def limit_declared(book: Book, event: facts.LimitDeclared, token: int, now: int) -> None:
    """The home of a limit has answered; the fact itself is in `LimitCopied`, like everywhere."""
    row = keys.job_row(event.tenant, ids.limit_subject(event.name))
    answer(book, row, event.command_id, Answer(True, ""), now)


def limit_copied(book: Book, event: facts.LimitCopied, token: int, now: int) -> None:
    """This partition knows the limit."""
    limit = Limit(
        event.version,
        event.concurrency,
        event.rate_count,
        event.rate_period_ms,
        event.paused_until,
        event.is_deleted,
    )
    book.put_limit(event.tenant, event.name, limit)


def task_declared(book: Book, event: facts.TaskDeclared, token: int, now: int) -> None:
    """The home of a task knows what payload it takes."""
    digest = hashlib.sha256(event.payload_schema.encode()).digest()
    book.tasks.put(event.name.encode(), Task(event.version, digest))
    answer(book, keys.job_row("", event.name), event.command_id, Answer(True, ""), now)


def worker_asked(book: Book, event: facts.WorkerAsked, token: int, now: int) -> None:
    """The home of a worker remembers what it asked last, as long as a worker may take to hear it."""
    row = event.worker.encode()
    book.recall(book.asked, row)
    book.asked.put(keys.remembered_row(remember(book, now), row), event.what)
    answer(book, keys.job_row("", event.worker), event.command_id, Answer(True, ""), now)


def key_declared(book: Book, event: facts.KeyDeclared, token: int, now: int) -> None:
    """The home of an API key knows it, or its new end."""
    row = keys.api_key_row(event.tenant, event.key)
    book.api_keys.put(row, ApiKey(event.role, event.sha256, event.label, event.expires_at))
    answer(
        book, keys.job_row(event.tenant, ids.key_subject(event.key)), event.command_id, Answer(True, ""), now
    )


def key_revoked(book: Book, event: facts.KeyRevoked, token: int, now: int) -> None:
    """An API key is good no more."""
    row = keys.api_key_row(event.tenant, event.key)
    known = book.api_keys.get(row)
    if known is None:
        raise BrokenFrameError(f"key {event.tenant}/{event.key} is not there, it cannot be revoked")
    book.api_keys.put(row, replace(known, is_revoked=True))
    answer(
        book, keys.job_row(event.tenant, ids.key_subject(event.key)), event.command_id, Answer(True, ""), now
    )


def mail_taken(book: Book, event: facts.MailTaken, token: int, now: int) -> None:
    """Mail up to here was taken from that sender."""
    book.advance(replace(book.cursor, mail={**book.cursor.mail, event.sender: (event.frame, event.row)}))


def ownership_taken(book: Book, event: facts.OwnershipTaken, token: int, now: int) -> None:
    """A new owner, its epoch one higher."""
    if event.epoch != book.cursor.epoch + 1:
        raise BrokenFrameError(f"epoch {event.epoch} follows {book.cursor.epoch}")
    book.advance(replace(book.cursor, owner=event.owner, epoch=event.epoch, taken_at=token >> 16))


def log_opened(book: Book, event: facts.LogOpened, token: int, now: int) -> None:
    """The genesis of the partition."""
    if book.cursor.position >= 0 and book.cursor.log_id:
        raise BrokenFrameError("the log was opened before")
    book.advance(
        replace(book.cursor, log_id=event.log_id, partition=event.partition, partitions=event.partitions)
    )


def day_forgotten(book: Book, event: facts.DayForgotten, token: int, now: int) -> None:
    """What was remembered for a day is dropped."""
    book.drop_day(event.day)
    book.advance(replace(book.cursor, days=[day for day in book.cursor.days if day != event.day]))


def nothing(book: Book, event: Event, token: int, now: int) -> None:
    """On record, but no state follows from it."""
