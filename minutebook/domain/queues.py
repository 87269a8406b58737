"""Commands on queues, decided at the queue's home; its copy there is an event of its own, like everywhere."""

from __future__ import annotations

from typing import Final, assert_never

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.commands import DeclareQueue, PauseQueue, QueueCommand, ResumeQueue
from minutebook.domain.events import Event
from minutebook.domain.refusal import Refusal
from minutebook.domain.state import Queue

TENANTS_MAX: Final = 1_000


def decide_queue(book: Book, command: QueueCommand, stamp: int) -> list[Event]:
    """Events of a command on a queue. Raises Refusal."""
    known = book.queue(command.name)
    changed = _changed(known, command)
    if (
        book.queues.get(command.name.encode()) is not None or isinstance(command, ResumeQueue)
    ) and changed == known:
        return [facts.CommandAnswered("", command.name, command.command_id, "exists")]
    version = 1 if known is None else known.version + 1
    fact = (command.name, version, changed.is_open, changed.tenants)
    return [
        facts.QueueDeclared(*fact, command.command_id, command.actor, stamp, changed.is_paused),
        facts.QueueCopied(*fact, changed.is_paused),
    ]


def _changed(known: Queue | None, command: QueueCommand) -> Queue:
    """The queue as the command wants it, its version left as it is."""
    match command:
        case DeclareQueue():
            if len(command.tenants) > TENANTS_MAX or not all(map(ids.is_name, command.tenants)):
                raise Refusal("invalid", "tenants", f"at most {TENANTS_MAX} names of tenants")
            version, is_paused = (0, False) if known is None else (known.version, known.is_paused)
            return Queue(version, command.is_open, sorted(set(command.tenants)), is_paused)
        case PauseQueue() | ResumeQueue():
            if known is None:
                raise Refusal("not_found", "name", "no such queue; declare it first: minutebook queue create")
            return Queue(known.version, known.is_open, known.tenants, isinstance(command, PauseQueue))
        case _:
            assert_never(command)
