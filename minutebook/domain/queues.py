"""Commands on queues, decided at the queue's home; its copy there is an event of its own, like everywhere."""

from __future__ import annotations

from typing import Final, assert_never

import msgspec

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.commands import (
    REASON_CHARS_MAX,
    DeclareQueue,
    DrainQueue,
    PauseQueue,
    QueueCommand,
    ResumeQueue,
)
from minutebook.domain.events import Event
from minutebook.domain.records import QueueFact
from minutebook.domain.refusal import Refusal, answered
from minutebook.domain.state import Queue

TENANTS_MAX: Final = 1_000

replace = msgspec.structs.replace


def decide_queue(book: Book, command: QueueCommand, stamp: int) -> list[Event]:
    """Events of a command on a queue. Raises Refusal."""
    known = book.queue(command.name)
    changed = _changed(known, command)
    if (
        book.queues.get(command.name.encode()) is not None or isinstance(command, ResumeQueue)
    ) and changed == known:
        return [answered(command, "exists")]
    version = 1 if known is None else known.version + 1
    return [
        facts.QueueDeclared(
            command.name,
            version,
            changed.is_open,
            changed.tenants,
            command.command_id,
            command.actor,
            stamp,
            changed.is_paused,
            changed.is_draining,
            "" if isinstance(command, DeclareQueue) else command.reason[:REASON_CHARS_MAX],
        ),
        queue_copied(command.name, replace(changed, version=version)),
    ]


def queue_copied(name: str, queue: Queue | QueueFact) -> facts.QueueCopied:
    """The copy of a queue in a partition."""
    return facts.QueueCopied(
        name, queue.version, queue.is_open, queue.tenants, queue.is_paused, queue.is_draining
    )


def queue_fact(event: facts.QueueDeclared) -> QueueFact:
    """What the home tells the other partitions."""
    return QueueFact(
        event.name, event.version, event.is_open, event.tenants, event.is_paused, event.is_draining
    )


def _changed(known: Queue | None, command: QueueCommand) -> Queue:
    """The queue as the command wants it, its version left as it is."""
    match command:
        case DeclareQueue():
            if len(command.tenants) > TENANTS_MAX or not all(map(ids.is_name, command.tenants)):
                raise Refusal("invalid", "tenants", f"at most {TENANTS_MAX} names of tenants")
            before = known or Queue(0, False, [])
            return replace(before, is_open=command.is_open, tenants=sorted(set(command.tenants)))
        case PauseQueue():
            return replace(_declared(known), is_paused=True)
        case DrainQueue():
            return replace(_declared(known), is_draining=True)
        case ResumeQueue():
            return replace(_declared(known), is_paused=False, is_draining=False)
        case _:
            assert_never(command)


def _declared(known: Queue | None) -> Queue:
    if known is None:
        raise Refusal("not_found", "name", "no such queue; declare it first: minutebook queue create")
    return known
