"""Folds of how attempts and executions end, and of what follows."""

from __future__ import annotations

import msgspec

from minutebook.domain import alerts, keys
from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.permit_folds import lay_down, spend
from minutebook.domain.placing import (
    drop_waiting,
    end,
    further,
    open_execution,
    requeue,
    spec_of,
    take_back,
    take_running,
    unplace,
)
from minutebook.domain.record_folds import remember
from minutebook.domain.state import NONE_AT, DeadExecution, Execution
from minutebook.domain.transitions import require
from minutebook.errors import BrokenFrameError

replace = msgspec.structs.replace


def succeeded(book: Book, event: facts.AttemptsSucceeded, token: int, now: int) -> None:
    """Good ends."""
    running = book.running.pending
    get = book.running.get
    tenants = [tenant.encode() + b"\0" for tenant in event.tenants]
    permitted: list[tuple[bytes, Execution]] = []
    for tenant, execution_id, ended in zip(event.tenant, event.executions, event.tokens, strict=True):
        key = tenants[tenant] + execution_id.encode()
        execution = get(key)
        if execution is None or execution.token != ended:
            raise BrokenFrameError(f"{key!r} does not run under token {ended}, it cannot succeed")
        running[key] = None
        if execution.permits:
            permitted.append((key, execution))
        end(book, key, execution, "succeeded", now)
    if permitted:
        spend(book, permitted)


def failed(book: Book, event: facts.AttemptFailed, token: int, now: int) -> None:
    """A bad end; what follows is in the event."""
    key = keys.execution_row(event.tenant, event.execution)
    has_retry = event.retry_at >= 0
    execution = take_running(book, key, event.token, "failed", "scheduled" if has_retry else "failed")
    failed = replace(execution, status="failed", failures=execution.failures + 1, token=-1, session="")
    if not has_retry:
        book.executions.put(key, failed)
        return
    at = max(event.retry_at, now)
    further(book, key, failed, event.retry_at, at)


def snoozed(book: Book, event: facts.AttemptSnoozed, token: int, now: int) -> None:
    """An end that is not counted."""
    key = keys.execution_row(event.tenant, event.execution)
    execution = take_running(book, key, event.token, "snoozed", "scheduled")
    further(book, key, replace(execution, token=-1, session=""), event.retry_at, max(event.retry_at, now))


def progressed(book: Book, event: facts.AttemptProgressed, token: int, now: int) -> None:
    """A running attempt noted something to resume from."""
    key = keys.execution_row(event.tenant, event.execution)
    execution = book.running.get(key)
    if execution is None or execution.token != event.token:
        raise BrokenFrameError(f"{key!r} does not run under token {event.token}, it cannot progress")
    if event.details and event.details != execution.details:
        book.running.put(key, replace(execution, details=event.details))


def lost(book: Book, event: facts.AttemptsLost, token: int, now: int) -> None:
    """Ends without a word."""
    for number, execution_id in enumerate(event.executions):
        key = keys.execution_row(event.tenants[event.tenant[number]], execution_id)
        if event.cause == "session_died":
            _worker_died(book, key, event.has_retry[number])
            continue
        has_retry = event.has_retry[number]
        execution = take_running(book, key, event.tokens[number], "lost", "queued" if has_retry else "lost")
        lost = replace(execution, losses=execution.losses + 1)
        if has_retry:
            requeue(book, key, replace(lost, attempt=lost.attempt + 1))
        else:
            book.executions.put(key, replace(lost, status="lost", token=-1, session=""))


def _worker_died(book: Book, key: bytes, has_retry: bool) -> None:
    """A waiting execution was withdrawn from a session that then died: counted as a loss."""
    execution = open_execution(book, key)
    lost = replace(execution, losses=execution.losses + 1)
    if not has_retry:
        require(execution.status, "worker_died", "lost", key)
        unplace(book, key, execution)
        lost = replace(lost, status="lost", indexed_at=NONE_AT)
    book.executions.put(key, lost)


def returned(book: Book, event: facts.GrantsReturned, token: int, now: int) -> None:
    """Granted and not run."""
    more = 1 if event.reason == "withdrawn" else 0
    permitted: list[tuple[bytes, Execution]] = []
    for number, execution_id in enumerate(event.executions):
        key = keys.execution_row(event.tenants[event.tenant[number]], execution_id)
        wait_until = event.wait_until[number]
        waits = wait_until >= 0
        execution = take_back(book, key, event.tokens[number], "returned", "scheduled" if waits else "queued")
        if execution.permits:
            permitted.append((key, execution))
        execution = replace(execution, withdrawals=execution.withdrawals + more, permits=[])
        if not waits:
            requeue(book, key, execution)
            continue
        at = max(wait_until, now)
        book.index.put(keys.index_row(at, keys.EXECUTION, key), b"")
        book.executions.put(key, replace(execution, status="scheduled", token=-1, session="", indexed_at=at))
    if permitted:
        lay_down(book, permitted, now)


def dead(book: Book, event: facts.ExecutionDead, token: int, now: int) -> None:
    """Given up; remembered for a redrive."""
    key = keys.execution_row(event.tenant, event.execution)
    execution = open_execution(book, key)
    if execution.status not in ("failed", "lost"):
        if event.cause != "deadline":
            raise BrokenFrameError(f"{key!r} is {execution.status}, it cannot be given up")
        require(execution.status, "expired", "failed", key)
        unplace(book, key, execution)
        execution = replace(execution, status="failed", indexed_at=NONE_AT)
    day, version = remember(book, now), keys.spec_row(keys.job_of_execution(key), event.version)
    book.shelf.put(keys.remembered_row(day, version), spec_of(book, key, event.version))
    given_up = DeadExecution(
        **msgspec.structs.asdict(execution),
        given_up_at=event.given_up_at,
        cause=event.cause,
        error_type=event.error_type,
    )
    book.recall(book.dead, key)  # that of an earlier request of the same id, days ago
    book.dead.put(keys.remembered_row(day, key), given_up)
    book.executions.delete(key)
    end(book, key, execution, "dead", now)
    alerts.note(book, event.tenant, alerts.DEAD, event.execution, now)


def expired(book: Book, event: facts.ExecutionExpired, token: int, now: int) -> None:
    """Waited past a deadline."""
    key = keys.execution_row(event.tenant, event.execution)
    execution = open_execution(book, key)
    require(execution.status, "expired", "skipped", key)
    drop_waiting(book, key, execution)
    end(book, key, execution, "skipped", now)


def stopped(book: Book, event: facts.AttemptCancelled, token: int, now: int) -> None:
    """A running attempt ended without success, and nothing follows."""
    key = keys.execution_row(event.tenant, event.execution)
    end(book, key, take_running(book, key, event.token, "stopped", "cancelled"), "cancelled", now)
