"""A dead execution is discarded: it needs no attention any more, and stays as it ended.

It is final: no redrive follows, by hand or in bulk. What is still wanted of it is a new job.
"""

from __future__ import annotations

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.commands import REASON_CHARS_MAX, DiscardExecution
from minutebook.domain.events import Event
from minutebook.domain.record_folds import answer
from minutebook.domain.refusal import Refusal, answered
from minutebook.domain.state import Answer, DeadExecution
from minutebook.errors import BrokenFrameError


def discard(book: Book, command: DiscardExecution, stamp: int) -> Event:
    """The event of a discard; one that is discarded already gets the answer again.

    Raises Refusal where the execution is not dead, or was so too long ago.
    """
    key = keys.execution_row(command.tenant, command.execution)
    dead = dead_one(book, key, "discarded", "it leaves the list in time")
    if dead.is_discarded:
        return answered(command, "discarded")
    return facts.ExecutionDiscarded(
        tenant=command.tenant,
        job_id=command.job_id,
        command_id=command.command_id,
        actor=command.actor,
        reason=command.reason[:REASON_CHARS_MAX],
        accepted_at=stamp,
        execution=command.execution,
    )


def dead_one(book: Book, key: bytes, wanted: str, remedy: str) -> DeadExecution:
    """The dead execution that is to be `wanted`. What is open again is not dead, though its death be remembered.

    Raises Refusal, with the `remedy` for one that is not remembered.
    """
    execution = book.execution(key)
    if execution is not None:
        raise Refusal("not_dead", "execution", f"it is {execution.status}; only a dead one is {wanted}")
    dead = book.remembered(book.dead, key)
    if dead is None:
        raise Refusal("not_dead", "execution", f"not dead, or for more than 8 days: {remedy}")
    return dead


def check_not_discarded(dead: DeadExecution) -> None:
    """Raises Refusal for an execution that was discarded."""
    if dead.is_discarded:
        raise Refusal("discarded", "execution", "it was discarded, which is final; submit a new job for it")


def discarded(book: Book, event: facts.ExecutionDiscarded, token: int, now: int) -> None:
    """It stays remembered, so that a redrive is told why it is refused."""
    key = keys.execution_row(event.tenant, event.execution)
    for day in book.cursor.days:
        place = keys.remembered_row(day, key)
        dead = book.dead.get(place)
        if dead is not None and not dead.is_discarded:
            book.dead.put(place, msgspec.structs.replace(dead, is_discarded=True))
            row = keys.job_row(event.tenant, event.job_id)
            answer(book, row, event.command_id, Answer(True, ""), now)
            return
    raise BrokenFrameError(f"{key!r} is not dead, it cannot be discarded")
