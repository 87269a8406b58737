"""Alerts: what people must hear of, decided with its cause. At most one an hour for each job and kind.

What the hour leaves out is counted by the fold of its cause, and told by the next alert of that job and kind.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.placing import spec_of
from minutebook.domain.record_folds import remember
from minutebook.domain.records import Alert
from minutebook.domain.state import NONE_AT, Alerted, Spec
from minutebook.errors import BrokenFrameError

DEAD: Final = "execution_dead"
STUCK: Final = "attempt_stuck"
UNKNOWN: Final = "task_unknown"
KINDS: Final = (DEAD, STUCK, UNKNOWN)
QUIET_MS: Final = 3_600_000
"""After an alert, no other of that job and kind for so long."""
TEXT_CHARS_MAX: Final = 500

_encode = msgspec.json.Encoder(order="sorted").encode


class Waiting(NamedTuple):
    """A lane of one tenant, queue and task in which executions wait although no live worker could run them."""

    tenant: str
    queue: str
    task: str
    executions: int
    waited_ms: int


def alert_of(book: Book, cause: Event, now: int) -> facts.AlertRaised | None:
    """The alert that follows from an event already folded; None if none does, or the hour has one."""
    match cause:
        case facts.ExecutionDead():
            return _dead(book, cause, now)
        case facts.AttemptStuck():
            return _stuck(book, cause, now)
        case _:
            return None


def unknown_task(book: Book, waiting: Waiting, now: int) -> facts.AlertRaised | None:
    """The alert that a task is known to no live worker; None if the hour has one."""
    subject = _subject(waiting.tenant, UNKNOWN, f"{waiting.queue}\0{waiting.task}")
    if _is_quiet(_alerted(book, subject), now):
        return None
    minutes = waiting.waited_ms // keys.MINUTE_MS
    return facts.AlertRaised(
        tenant=waiting.tenant,
        kind=UNKNOWN,
        job_id="",
        execution="",
        task=waiting.task,
        queue=waiting.queue,
        at=now,
        text=f"no worker has offered to run {waiting.task} from queue {waiting.queue} for {minutes} minutes; "
        f"{waiting.executions} wait",
        notify="",
        left_out=0,
        details=_encode({"waiting": waiting.executions, "waited_ms": waiting.waited_ms}),
    )


def _dead(book: Book, dead: facts.ExecutionDead, now: int) -> facts.AlertRaised | None:
    alerted = _alerted(book, _subject(dead.tenant, DEAD, ids.job_of(dead.execution)))
    if _is_quiet(alerted, now):
        return None
    key = keys.execution_row(dead.tenant, dead.execution)
    spec = book.remembered(book.shelf, keys.spec_row(keys.job_of_execution(key), dead.version))
    if spec is None:
        raise BrokenFrameError(f"version {dead.version} of dead {dead.execution} is not there")
    text = f"{dead.execution} was given up at attempt {dead.attempt} ({dead.cause}): {dead.error_type}: {dead.message}"
    details = {
        "cause": dead.cause,
        "error_type": dead.error_type,
        "attempt": dead.attempt,
        "generation": dead.generation,
    }
    return _about(dead, DEAD, spec, alerted, now, text, details)


def _stuck(book: Book, stuck: facts.AttemptStuck, now: int) -> facts.AlertRaised | None:
    alerted = _alerted(book, _subject(stuck.tenant, STUCK, ids.job_of(stuck.execution)))
    key = keys.execution_row(stuck.tenant, stuck.execution)
    execution = book.running.get(key)
    if execution is None or _is_quiet(alerted, now):
        return None
    spec = spec_of(book, key, execution.version)
    silent_ms = now - stuck.since_at
    text = f"attempt {stuck.attempt} of {stuck.execution} has shown no progress for {silent_ms // 1_000} s"
    details = {"attempt": stuck.attempt, "silent_ms": silent_ms}
    return _about(stuck, STUCK, spec, alerted, now, text, details)


def _about(
    cause: facts.ExecutionDead | facts.AttemptStuck,
    kind: str,
    spec: Spec,
    alerted: Alerted,
    now: int,
    text: str,
    details: dict[str, Any],
) -> facts.AlertRaised:
    return facts.AlertRaised(
        tenant=cause.tenant,
        kind=kind,
        job_id=ids.job_of(cause.execution),
        execution=cause.execution,
        task=spec.task,
        queue=spec.queue,
        at=now,
        text=text[:TEXT_CHARS_MAX],
        notify=spec.notify,
        left_out=alerted.causes - 1,
        details=_encode(details),
    )


def record_of(event: facts.AlertRaised, partition: int) -> Alert:
    """The record of an alert that `partition` raised."""
    subject = event.job_id or f"{event.queue}/{event.task}"
    return Alert(
        id=ids.alert_id(event.tenant, event.kind, subject, partition, event.at),
        kind=event.kind,
        tenant=event.tenant,
        job_id=event.job_id,
        execution=event.execution,
        task=event.task,
        queue=event.queue,
        at=event.at,
        text=event.text,
        notify=event.notify,
        left_out=event.left_out,
        details=event.details,
    )


# -- folds


def note(book: Book, tenant: str, kind: str, execution: str, now: int) -> None:
    """Fold: a cause of an alert has come; the alert that tells of it, if there is one, comes next."""
    subject = _subject(tenant, kind, ids.job_of(execution))
    found = book.recall(book.alerts, subject) or Alerted()
    _put(book, subject, msgspec.structs.replace(found, causes=found.causes + 1), now)


def stuck(book: Book, event: facts.AttemptStuck, token: int, now: int) -> None:
    """Fold: an attempt shows no progress."""
    note(book, event.tenant, STUCK, event.execution, now)


def raised(book: Book, event: facts.AlertRaised, token: int, now: int) -> None:
    """Fold: an alert tells of everything since the one before it."""
    subject = _subject(event.tenant, event.kind, event.job_id or f"{event.queue}\0{event.task}")
    book.recall(book.alerts, subject)
    _put(book, subject, Alerted(event.at), now)


def _put(book: Book, subject: bytes, row: Alerted, now: int) -> None:
    book.alerts.put(keys.remembered_row(remember(book, now), subject), row)


def _subject(tenant: str, kind: str, about: str) -> bytes:
    return f"{tenant}\0{kind}\0{about}".encode()


def _alerted(book: Book, subject: bytes) -> Alerted:
    return book.remembered(book.alerts, subject) or Alerted()


def _is_quiet(alerted: Alerted, now: int) -> bool:
    return alerted.raised_at != NONE_AT and now - alerted.raised_at < QUIET_MS
