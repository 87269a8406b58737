"""Folds of bulk operations: the home's record of each, and this partition's share."""

from __future__ import annotations

import msgspec

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.operation import HomeOperation, OperationCount, OperationFact, Share
from minutebook.domain.record_folds import answer, remember
from minutebook.domain.state import Answer
from minutebook.errors import BrokenFrameError

replace = msgspec.structs.replace


def started(book: Book, event: facts.OperationStarted, token: int, now: int) -> None:
    """Its home answers for it from here on."""
    fact = event.fact
    _answer(book, fact, event.command_id, now)
    book.operations.put(_row(fact), HomeOperation(fact))


def cancelled(book: Book, event: facts.OperationCancelled, token: int, now: int) -> None:
    """Its home knows that no more is wanted."""
    fact = event.fact
    _answer(book, fact, event.command_id, now)
    book.operations.put(_row(fact), replace(_home(book, fact.tenant, fact.operation), fact=fact))


def copied(book: Book, event: facts.OperationCopied, token: int, now: int) -> None:
    """This partition has a share in it, or is told to stop; one that has finished has none any more."""
    fact = event.fact
    row = _row(fact)
    share = book.shares.get(row)
    if share is not None:
        book.shares.put(row, replace(share, fact=fact))
    elif not fact.is_cancelled:
        book.shares.put(row, Share(fact, fact.accepted_at + 1))


def advanced(book: Book, event: facts.OperationAdvanced, token: int, now: int) -> None:
    """The place that the share has reached, or its end."""
    row = keys.operation_row(event.tenant, event.operation)
    share = book.shares.get(row)
    if share is None:
        raise BrokenFrameError(f"operation {row!r} has no share here, it cannot advance")
    if event.is_finished:
        book.shares.delete(row)
        return
    book.shares.put(
        row,
        Share(
            share.fact,
            event.next_at,
            event.matched,
            event.counting,
            event.done,
            event.refused,
            event.through,
            now if event.is_reported else share.reported_at,
        ),
    )


def counted(book: Book, event: facts.OperationCounted, token: int, now: int) -> None:
    """The home notes what a partition told."""
    known = _home(book, event.tenant, event.operation)
    count = OperationCount(
        event.tenant, event.operation, event.matched, event.done, event.refused, event.is_finished
    )
    row = keys.operation_row(event.tenant, event.operation)
    book.operations.put(row, replace(known, told={**known.told, event.partition: count}))


def ended(book: Book, event: facts.OperationEnded, token: int, now: int) -> None:
    """It is over; its id is remembered for some days."""
    _home(book, event.tenant, event.operation)
    row = keys.operation_row(event.tenant, event.operation)
    book.operations.delete(row)
    book.ended.put(keys.remembered_row(remember(book, now), row), b"")


def _home(book: Book, tenant: str, operation: str) -> HomeOperation:
    row = keys.operation_row(tenant, operation)
    known = book.operations.get(row)
    if known is None:
        raise BrokenFrameError(f"operation {row!r} is not open here")
    return known


def _row(fact: OperationFact) -> bytes:
    return keys.operation_row(fact.tenant, fact.operation)


def _answer(book: Book, fact: OperationFact, command_id: str, now: int) -> None:
    """The answer to the command, under what stands for the operation where others name a job."""
    subject = keys.job_row(fact.tenant, ids.operation_subject(fact.operation))
    answer(book, subject, command_id, Answer(True, ""), now)
