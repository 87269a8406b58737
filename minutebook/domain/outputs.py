"""Outputs: the records that follow from a frame. A function of its events and of immutable rows, so repeatable.

They are sent only after the frame is known to be valid, and sent again by a fresh owner, with the same ids.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.alerts import record_of
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.names import Names
from minutebook.domain.operation import OperationFact
from minutebook.domain.operations import count_of
from minutebook.domain.permit_mail import permit_mail
from minutebook.domain.queues import queue_fact
from minutebook.domain.records import (
    Alert,
    CalendarFact,
    DeadLetter,
    ForwardedCommand,
    Granted,
    Inbox,
    LimitFact,
    Mail,
    QueueFact,
)
from minutebook.domain.retries import deadline_at
from minutebook.domain.state import NONE_AT, Execution, Spec
from minutebook.errors import BrokenFrameError

START_WITHIN_MS: Final = 1_500
INBOX_PAYLOAD_BYTES_MAX: Final = 768 << 10
GRANT_PAYLOAD_BYTES_MAX: Final = 8 << 20


class ToSession(NamedTuple):
    """One inbox record. `stuck_after_ms`: of its grants, empty where no job sets it, else one per row, -1 = none.
    `ready_at`: when each came to wait for its grant.
    """

    session: str
    record: Inbox
    stuck_after_ms: tuple[int, ...] = ()
    ready_at: Sequence[int] = ()


class ToPartition(NamedTuple):
    """One piece of mail."""

    partition: int
    record: Mail


class ToDeadLetters(NamedTuple):
    """One dead letter; `offset` and `row` say where it was decided, `traceparent` the job's trace context, empty = none."""

    key: str
    record: DeadLetter
    offset: int
    row: int
    traceparent: str = ""


class ToAlerts(NamedTuple):
    """One alert; `offset` says where it was decided."""

    record: Alert
    offset: int


class ToRejected(NamedTuple):
    """One record that could not be taken; its bytes are fetched from where it lies."""

    topic: str
    partition: int
    offset: int
    reason: str


Output = ToSession | ToPartition | ToDeadLetters | ToRejected | ToAlerts


_Grant = tuple[str, str, Execution, Spec]
"""Tenant, id, execution, and the version of its job."""


def _same(texts: list[str]) -> tuple[list[str], list[int]]:
    """Dictionary and column of `texts`."""
    names = Names()
    column = names.column(texts)
    return names.texts, column


def granted(grants: list[_Grant]) -> Granted:
    """Grants to one session, tokens rising, as columns."""
    tenants_of, names, executions, specs = map(list, zip(*grants, strict=True))
    traces = [spec.traceparent for spec in specs]
    explicit = [spec.explicit for spec in specs]
    has_policies = any(explicit)
    details = [execution.details for execution in executions]
    tenants, tenant = _same(tenants_of)
    queues, queue = _same([spec.queue for spec in specs])
    tasks, task = _same([spec.task for spec in specs])
    return Granted(
        tenants=tenants,
        queues=queues,
        tasks=tasks,
        rows=[execution.token & 0xFFFF for execution in executions],
        tenant=tenant,
        queue=queue,
        task=task,
        executions=names,
        attempts=[execution.attempt for execution in executions],
        versions=[execution.version for execution in executions],
        scheduled_at=[execution.scheduled_at for execution in executions],
        due_at=[execution.due_at for execution in executions],
        timeout_ms=[spec.timeout_ms for spec in specs],
        payloads=[spec.payload for spec in specs],
        traceparents=traces if any(traces) else [],
        max_attempts=[spec.policy.max_attempts for spec in specs] if has_policies else [],
        deadlines_at=_deadlines_at(grants) if has_policies else [],
        details=details if any(details) else [],
    )


def _deadlines_at(grants: list[_Grant]) -> list[int]:
    ends = [deadline_at(spec.policy, execution) for _, _, execution, spec in grants]
    return [NONE_AT if end is None else end for end in ends] if any(end is not None for end in ends) else []


def _stuck_after_ms(grants: list[_Grant]) -> tuple[int, ...]:
    """After how long without progress each is stuck; empty where none can be."""
    policies = [spec.explicit for _, _, _, spec in grants]
    if not any(policies):
        return ()
    return tuple(
        -1 if spec.policy.stuck_after_ms is None else spec.policy.stuck_after_ms for _, _, _, spec in grants
    )


def _split(grants: list[_Grant]) -> Iterable[list[_Grant]]:
    """Grants in portions that fit an inbox record."""
    portion: list[_Grant] = []
    size = 0
    for grant in grants:
        _, _, execution, spec = grant
        more = len(spec.payload) + len(execution.details) + 200
        if portion and size + more > INBOX_PAYLOAD_BYTES_MAX:
            yield portion
            portion, size = [], 0
        portion.append(grant)
        size += more
    if portion:
        yield portion


def _collect(book: Book, event: Any, token: int, by_session: dict[str, list[_Grant]]) -> None:
    """What workers must know of the grants in one event; nothing of those whose token runs no more."""
    executions, specs = book.running.get, book.specs.get
    tenants = [(tenant, tenant.encode() + b"\0") for tenant in event.tenants]
    lists = [by_session[session] for session in event.sessions]
    rows = zip(event.tenant, event.executions, event.session, strict=True)
    for place, (number, name, session) in enumerate(rows, token):
        tenant, prefix = tenants[number]
        key = prefix + name.encode()
        execution = executions(key)
        if execution is None or execution.token != place:
            continue
        spec = specs(keys.spec_row(key[: key.rindex(b":")], execution.version))
        if spec is None:
            raise BrokenFrameError(f"version {execution.version} of {key!r} is not there")
        lists[session].append((tenant, name, execution, spec))


def outputs(
    book: Book, placed: Iterable[tuple[Event, int]], partition: int, partitions: int, start_at: int
) -> list[Output]:
    """Outputs of one frame in the order in which they go out.

    `placed` are its events with the token of their first row; `start_at` is the frame's `now`, or that of the
    present owner's take-over where the outputs are sent again.
    """
    by_session: dict[str, list[_Grant]] = defaultdict(list)
    found: list[Output] = []
    frame = 0
    for event, token in placed:
        frame = token >> 16
        if isinstance(event, facts.ExecutionsDueGranted | facts.ExecutionsGranted):
            _collect(book, event, token, by_session)
        else:
            found.extend(_single(book, event, token, partition, partitions, start_at))
    for session, grants in by_session.items():
        for portion in _split(grants):
            record = Inbox(session, partition, frame, start_at + START_WITHIN_MS, [], granted(portion))
            ready_at = [execution.ready_at for _, _, execution, _ in portion]
            found.append(ToSession(session, record, _stuck_after_ms(portion), ready_at))
    return found


def _single(
    book: Book, event: Event, token: int, partition: int, partitions: int, at: int
) -> Iterable[Output]:
    frame, row = token >> 16, token & 0xFFFF
    match event:
        case facts.JobSubmitted() | facts.AttemptsSucceeded() | facts.ExecutionsQueued():
            return  # most events are of these, so they are looked for first
        case facts.QueueDeclared():
            yield from _to_all_others(queue_fact(event), partition, partitions, frame, row)
        case facts.LimitDeclared():
            yield from _to_all_others(limit_fact(event), partition, partitions, frame, row)
        case facts.CalendarDeclared():
            yield from _to_all_others(calendar_fact(event), partition, partitions, frame, row)
        case facts.OperationStarted() | facts.OperationCancelled():
            yield from _to_all_others(event.fact, partition, partitions, frame, row)
        case facts.OperationAdvanced(is_reported=True) if event.home != partition:
            yield ToPartition(event.home, Mail(partition, frame, row, count_of(event)))
        case facts.CommandForwarded():
            forwarded = ForwardedCommand(event.accepted_at, partition, event.source_offset, event.command)
            yield ToPartition(event.partition, Mail(partition, frame, row, forwarded))
        case facts.PermitsAsked() | facts.PermitsGranted() | facts.PermitsReleased():
            for to, number, said in permit_mail(event, token):
                yield ToPartition(to, Mail(partition, frame, number, said))
        case facts.RecordRejected():
            yield ToRejected(event.topic, event.partition, event.offset, event.reason)
        case facts.JobCancelled():
            for name, granted_as in zip(event.stopping, event.tokens, strict=True):
                yield from _cancel(book, event.tenant, name, granted_as, partition, frame, at)
        case facts.ExecutionCancelled():
            yield from _cancel(book, event.tenant, event.execution, event.token, partition, frame, at)
        case facts.ExecutionDead():
            yield _dead_letter(book, event, frame, row)
        case facts.AlertRaised():
            yield ToAlerts(record_of(event, partition), frame)
        case _:
            return


def limit_fact(event: facts.LimitDeclared) -> LimitFact:
    """What the home of a limit tells of it."""
    return LimitFact(
        event.tenant,
        event.name,
        event.version,
        event.concurrency,
        event.rate_count,
        event.rate_period_ms,
        event.paused_until,
        event.is_deleted,
    )


def calendar_fact(event: facts.CalendarDeclared) -> CalendarFact:
    """What the home of a calendar tells of it."""
    return CalendarFact(
        event.tenant, event.name, event.version, event.first_days, event.last_days, event.is_deleted
    )


def _to_all_others(
    fact: QueueFact | LimitFact | OperationFact | CalendarFact,
    partition: int,
    partitions: int,
    frame: int,
    row: int,
) -> Iterable[Output]:
    for other in range(partitions):
        if other != partition:
            yield ToPartition(other, Mail(partition, frame, row, fact))


def _cancel(
    book: Book, tenant: str, name: str, token: int, partition: int, frame: int, at: int
) -> Iterable[Output]:
    """The request to stop, where that attempt still runs."""
    execution = book.running.get(keys.execution_row(tenant, name))
    if execution is not None and execution.token == token:
        record = Inbox(execution.session, partition, frame, at, [], None, [token])
        yield ToSession(execution.session, record)


def _dead_letter(book: Book, event: facts.ExecutionDead, frame: int, row: int) -> Output:
    job_id = ids.job_of(event.execution)
    version = keys.spec_row(keys.job_row(event.tenant, job_id), event.version)
    spec = book.remembered(book.shelf, version)
    if spec is None:
        raise BrokenFrameError(f"version {event.version} of dead {event.execution} is not there")
    record = DeadLetter(
        tenant=event.tenant,
        job_id=job_id,
        execution=event.execution,
        generation=event.generation,
        attempt=event.attempt,
        cause=event.cause,
        error_type=event.error_type,
        message=event.message,
        task=spec.task,
        queue=spec.queue,
        payload=spec.payload,
        scheduled_at=event.scheduled_at,
        due_at=event.due_at,
        given_up_at=event.given_up_at,
    )
    return ToDeadLetters(ids.job_key(event.tenant, job_id), record, frame, row, spec.traceparent)
