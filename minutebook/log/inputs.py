"""What a record of an input topic decides: commands and mail, as owners and audits decide them.

Reports rest on what an owner knows of its sessions, and are decided by `minutebook.domain.results`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.commands import Command
from minutebook.domain.decide import decide
from minutebook.domain.events import Event
from minutebook.domain.operation import OperationCount, OperationFact
from minutebook.domain.operations import counted
from minutebook.domain.permit_mail import permits_told
from minutebook.domain.queues import queue_copied
from minutebook.domain.records import (
    CalendarFact,
    ForwardedCommand,
    LimitFact,
    Mail,
    PermitDemand,
    PermitGrant,
    PermitReturn,
    QueueFact,
)
from minutebook.domain.subjects import is_addressed, key_of, subject_of
from minutebook.errors import DecodeError
from minutebook.log.port import RawRecord, Unreadable
from minutebook.wire import codec, topics
from minutebook.wire.codec import CommandBatch

INPUT_BYTES_MAX: Final = 1 << 20
MAIL_MORE_BYTES: Final = 4 << 10
"""What mail puts around a forwarded command."""

Told = Callable[[Command, int, list[Event]], None]
"""Told (command, stamp, events) of each command that was decided here."""


def untold(command: Command, stamp: int, events: list[Event]) -> None:
    """Where nobody is told."""


def read_input(topic: str, value: bytes | None) -> codec.Record:
    """The record in `value`. Raises DecodeError, also for what cannot be read, or could make a frame larger than the
    broker takes."""
    if isinstance(value, Unreadable):
        raise DecodeError(value.reason)
    limit = INPUT_BYTES_MAX + (MAIL_MORE_BYTES if topic == topics.MAIL else 0)
    if value is not None and len(value) > limit:
        raise DecodeError(f"a record of {len(value)} bytes; the limit is {limit}")
    return codec.decode(value)


def days_over(book: Book, now: int) -> list[facts.DayForgotten]:
    """Days of which closed jobs, command ids and ended sessions are remembered no longer at `now`, ms."""
    today = now // keys.DAY_MS
    return [facts.DayForgotten(day) for day in book.cursor.days if today - day > keys.REMEMBERED_DAYS]


def decide_input(
    book: Book,
    partition: int,
    partitions: int,
    topic: str,
    record: RawRecord,
    decoded: codec.Record,
    told: Told = untold,
) -> Iterator[Event]:
    """Events of a record of `job-commands` or `partition-mail`, which holds `decoded`; those of one command, or one piece of
    mail, must be folded before the next is asked for. None for what was decided before.
    """
    deciding = _Deciding(book, partition, partitions, topic, record, told)
    if topic == topics.MAIL and isinstance(decoded, Mail):
        yield from deciding.mail(decoded)
    elif topic == topics.COMMANDS and isinstance(decoded, CommandBatch):
        for command in decoded.commands:
            yield from deciding.command(command)
    elif topic == topics.COMMANDS and isinstance(decoded, Command):
        reason = _misaddressed(decoded, record.key)
        yield from [deciding.rejected(reason)] if reason else deciding.command(decoded)
    else:
        yield deciding.rejected(f"a {type(decoded).__name__} does not belong on {topic}")


class _Deciding:
    """One record at its partition."""

    def __init__(
        self, book: Book, partition: int, partitions: int, topic: str, record: RawRecord, told: Told
    ) -> None:
        self._book = book
        self._partition = partition
        self._partitions = partitions
        self._topic = topic
        self._record = record
        self._told = told

    def rejected(self, reason: str) -> Event:
        """The record cannot be taken."""
        return facts.RecordRejected(self._topic, self._partition, self._record.offset, reason)

    def command(self, command: Command) -> list[Event]:
        """A command, here or to be forwarded."""
        record, target = self._record, topics.partition_of(key_of(command), self._partitions)
        if target == self._partition:
            return self._decided(command, record.stamp)
        tenant, job_id = subject_of(command)
        return [
            facts.CommandForwarded(
                target,
                tenant,
                job_id,
                command.command_id,
                record.stamp,
                record.offset,
                codec.encode(command),
            )
        ]

    def _decided(self, command: Command, stamp: int) -> list[Event]:
        events = decide(self._book, command, stamp)
        self._told(command, stamp, events)
        return events

    def mail(self, mail: Mail) -> Iterator[Event]:
        """Mail of a partition, once."""
        if (mail.frame, mail.row) <= self._book.cursor.mail.get(mail.sender, (-1, -1)):
            return
        yield facts.MailTaken(mail.sender, mail.frame, mail.row)
        match mail.body:
            case QueueFact() as fact:
                yield queue_copied(fact.name, fact)
            case LimitFact() as fact:
                yield facts.LimitCopied(*msgspec.structs.astuple(fact))
            case CalendarFact() as fact:
                yield facts.CalendarCopied(*msgspec.structs.astuple(fact))
            case PermitDemand() | PermitGrant() | PermitReturn() as permits:
                yield from permits_told(self._book, permits, mail.sender)
            case OperationFact() as fact:
                yield facts.OperationCopied(fact)
            case OperationCount() as count:
                yield from counted(self._book, mail.sender, count)
            case ForwardedCommand() as forwarded:
                yield from self._forwarded(forwarded)

    def _forwarded(self, forwarded: ForwardedCommand) -> list[Event]:
        """A command from another partition; one that does not belong here either is not sent on again."""
        try:
            command = codec.decode(forwarded.command)
        except DecodeError as error:
            return [self.rejected(str(error))]
        if (
            isinstance(command, Command)
            and topics.partition_of(key_of(command), self._partitions) == self._partition
        ):
            return self._decided(command, forwarded.accepted_at)
        return [self.rejected("a forwarded command that does not belong here")]


def _misaddressed(command: Command, key: bytes | None) -> str:
    """Why a single command cannot be taken as addressed; empty if it can."""
    if not is_addressed(command):
        return "a command without a valid tenant and job id"
    if key is not None and key != key_of(command).encode():
        return "key and body name different jobs"
    return ""
