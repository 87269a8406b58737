"""Commands to events. What is refused is an event too, with a code, the field and the remedy.

Every instant counts from the broker's stamp of the command's record, so no decision depends on when it is made.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final, assert_never

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.commands import CancelJob, Command, DeclareQueue, JobCommand, RunJobNow, SubmitJob
from minutebook.domain.events import Event
from minutebook.domain.state import NONE_AT, Job
from minutebook.errors import ScheduleError
from minutebook.ids import Instant
from minutebook.schedule import next_instant, parse_cron, zone

COMMAND_AGE_MAX_MS: Final = 7 * keys.DAY_MS
COMMAND_AHEAD_MAX_MS: Final = keys.DAY_MS
"""With the age, what answers are remembered for: a command never outlives the memory of its answer."""
HORIZON_MS: Final = 100 * 366 * keys.DAY_MS
LATE_MAX_MS: Final = keys.DAY_MS
PAYLOAD_BYTES_MAX: Final = 256 << 10
TIMEOUT_MIN_MS: Final = 1_000
TIMEOUT_MAX_MS: Final = 7 * keys.DAY_MS
PRIORITY: Final = 5
TENANTS_MAX: Final = 1_000
REASON_CHARS_MAX: Final = 1_000


class Refusal(Exception):
    """Inside this module: why a command is refused. Becomes a CommandRejected."""

    def __init__(self, reason: str, field: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.field = field
        self.detail = detail


def decide(book: Book, command: Command, stamp: int) -> list[Event]:
    """Events that answer `command`, whose record the broker stamped `stamp` (ms, UTC).

    Empty for a command whose answer is on record already.
    """
    if isinstance(command, DeclareQueue):
        return _declare(book, command, stamp)
    row = keys.job_row(command.tenant, command.job_id)
    try:
        _check_names(command)
        if _is_repeat(book, row, command):
            return []
        _check_age(command, stamp)
        return _decide_job(book, row, command, stamp)
    except Refusal as refusal:
        return [_rejected(command, refusal)]


def _decide_job(book: Book, row: bytes, command: JobCommand, stamp: int) -> list[Event]:
    match command:
        case SubmitJob():
            return [_submit(book, row, command, stamp)]
        case CancelJob():
            return [_cancel(book, row, command, stamp)]
        case RunJobNow():
            return [_run_now(book, row, command, stamp)]
        case _:
            assert_never(command)


def _rejected(command: JobCommand, refusal: Refusal) -> Event:
    kind = type(command).__name__
    return facts.CommandRejected(
        command.tenant,
        command.job_id,
        command.command_id,
        kind,
        refusal.reason,
        refusal.field,
        refusal.detail,
    )


def _check_names(command: JobCommand) -> None:
    if not ids.is_name(command.tenant):
        raise Refusal("invalid", "tenant", "1-128 ASCII letters, digits, . _ -")
    if not ids.is_name(command.job_id):
        raise Refusal("invalid", "id", "1-128 ASCII letters, digits, . _ -")
    if not ids.is_command_id(command.command_id):
        raise Refusal("invalid", "command_id", "1-64 ASCII letters, digits, . _ -")


def _check_age(command: Command, stamp: int) -> None:
    if stamp - command.issued_at > COMMAND_AGE_MAX_MS:
        raise Refusal("too_old", "issued_at", "commands are taken for 7 days; send it anew")
    if command.issued_at - stamp > COMMAND_AHEAD_MAX_MS:
        raise Refusal("invalid", "issued_at", "more than a day ahead; set the sender's clock right")


def _is_repeat(book: Book, row: bytes, command: JobCommand) -> bool:
    """Whether this very command was answered before."""
    job = _known(book, row)
    if job is not None and job.command_id == command.command_id:
        return True
    return book.remembered(book.commands, row + b"\0" + command.command_id.encode()) is not None


def _known(book: Book, row: bytes) -> Job | None:
    """The job, active or closed within the days that are remembered."""
    return book.jobs.get(row) or book.remembered(book.closed, row)


# -- submit


def fingerprint(command: SubmitJob) -> bytes:
    """SHA-256 over the fields of the create body that differ from their defaults, sorted by name."""
    default = SubmitJob(tenant="", job_id="", command_id="", issued_at=0, task="", payload=b"null")
    total = hashlib.sha256()
    for name in ("cron", "delay_ms", "late", "payload", "queue", "run_at", "task", "timeout_ms", "zone"):
        value = getattr(command, name)
        if value != getattr(default, name):
            data = value if isinstance(value, bytes) else str(value).encode()
            total.update(f"{name}\0{len(data)}\0".encode() + data)
    return total.digest()


def _submit(book: Book, row: bytes, command: SubmitJob, stamp: int) -> Event:
    print_ = fingerprint(command)
    known = _known(book, row)
    if known is not None:
        return _exists(command, known, print_)
    _check_body(book, command)
    next_at = _first_instant(command, stamp)
    return facts.JobSubmitted(
        tenant=command.tenant,
        job_id=command.job_id,
        command_id=command.command_id,
        actor=command.actor,
        issued_at=command.issued_at,
        accepted_at=stamp,
        fingerprint=print_,
        task=command.task,
        payload=command.payload,
        key_id=0,
        payload_sha256=hashlib.sha256(command.payload).digest(),
        queue=command.queue,
        cron=command.cron or "",
        zone=command.zone,
        late=command.late,
        timeout_ms=command.timeout_ms,
        priority=PRIORITY,
        next_at=next_at,
        traceparent=command.traceparent,
    )


def _exists(command: SubmitJob, known: Job, print_: bytes) -> Event:
    if known.fingerprint == print_:
        return facts.CommandAnswered(command.tenant, command.job_id, command.command_id, "exists")
    if command.is_keyed:
        raise Refusal("key_reused", "Idempotency-Key", "this key was used with another body; take a new key")
    raise Refusal("id_exists", "id", "a job with this id exists with another body; take another id")


def _check_body(book: Book, command: SubmitJob) -> None:
    if not ids.is_name(command.task):
        raise Refusal("invalid", "task", "1-128 ASCII letters, digits, . _ -")
    if len(command.payload) > PAYLOAD_BYTES_MAX:
        raise Refusal(
            "invalid",
            "payload",
            f"at most {PAYLOAD_BYTES_MAX} bytes; store it elsewhere and send a reference",
        )
    if not TIMEOUT_MIN_MS <= command.timeout_ms <= TIMEOUT_MAX_MS:
        raise Refusal("invalid", "timeout", "from 1 second to 7 days")
    queue = book.queue(command.queue)
    if queue is None or (queue.tenants and command.tenant not in queue.tenants):
        raise Refusal("unknown_queue", "queue", "declare the queue first: minutebook queue create")
    given = [name for name in ("run_at", "delay_ms", "cron") if getattr(command, name) is not None]
    if len(given) > 1:
        raise Refusal("invalid", given[1].removesuffix("_ms"), "give at most one of run_at, delay, cron")


def _first_instant(command: SubmitJob, stamp: int) -> int:
    try:
        zone(command.zone)
        if command.cron is not None:
            first = next_cron_instant(command.cron, command.zone, stamp)
            if first == NONE_AT:
                raise Refusal("invalid", "cron", "it has no instant left")
            return first
    except ScheduleError as error:
        raise Refusal("invalid", error.field, error.reason) from error
    if command.delay_ms is not None:
        return _within(stamp + command.delay_ms, "delay", command, stamp)
    return _within(stamp if command.run_at is None else command.run_at, "run_at", command, stamp)


def _within(at: int, field: str, command: SubmitJob, stamp: int) -> int:
    if at - stamp > HORIZON_MS:
        raise Refusal("invalid", field, "at most 100 years ahead")
    if at < 0 or (field == "delay" and at < stamp):
        raise Refusal("invalid", field, "must not be negative")
    if stamp - at > LATE_MAX_MS and command.late != "run":
        raise Refusal("invalid", field, "more than a day past; give late=run to run it all the same")
    return at


@lru_cache(maxsize=1 << 16)
def next_cron_instant(cron: str, zone_name: str, after: int) -> int:
    """First instant of the schedule strictly later than `after` (ms, UTC), NONE_AT if there is none.

    Computed once per distinct (cron, zone, after). Raises ScheduleError.
    """
    found = next_instant(parse_cron(cron), zone_name, Instant(after))
    return NONE_AT if found is None else found


# -- cancel, run now, queues


def _cancel(book: Book, row: bytes, command: CancelJob, stamp: int) -> Event:
    job = _known(book, row)
    if job is None:
        raise Refusal("not_found", "id", "no such job")
    if job.status == "cancelled":
        return facts.CommandAnswered(command.tenant, command.job_id, command.command_id, "cancelled")
    if job.status != "active":
        raise Refusal("job_closed", "id", f"the job is {job.status}")
    waiting: list[str] = []
    stopping: list[str] = []
    tokens: list[int] = []
    for key, execution in book.executions_of(row):
        name = keys.names(key)[1]
        if execution.status == "running":
            stopping.append(name)
            tokens.append(execution.token)
        else:
            waiting.append(name)
    reason = command.reason[:REASON_CHARS_MAX]
    return facts.JobCancelled(
        command.tenant,
        command.job_id,
        command.command_id,
        command.actor,
        reason,
        stamp,
        waiting,
        stopping,
        tokens,
    )


def _run_now(book: Book, row: bytes, command: RunJobNow, stamp: int) -> Event:
    job = _known(book, row)
    if job is None:
        raise Refusal("not_found", "id", "no such job")
    if job.status != "active":
        raise Refusal("job_closed", "id", f"the job is {job.status}; submit a new one")
    name = ids.requested_execution_id(command.job_id, command.command_id)
    reason = command.reason[:REASON_CHARS_MAX]
    return facts.ExecutionRequested(
        command.tenant, command.job_id, command.command_id, command.actor, reason, stamp, name
    )


def _declare(book: Book, command: DeclareQueue, stamp: int) -> list[Event]:
    """Decided at the queue's home; its copy there is an event of its own, like everywhere."""
    row = keys.job_row("", command.name)
    if book.remembered(book.commands, row + b"\0" + command.command_id.encode()) is not None:
        return []
    try:
        if not ids.is_name(command.name) or not ids.is_command_id(command.command_id):
            detail = "queue names have 1-128, command ids 1-64 ASCII letters, digits, . _ -"
            raise Refusal("invalid", "name", detail)
        if len(command.tenants) > TENANTS_MAX or not all(map(ids.is_name, command.tenants)):
            raise Refusal("invalid", "tenants", f"at most {TENANTS_MAX} names of tenants")
        _check_age(command, stamp)
    except Refusal as refusal:
        name, command_id = command.name[:128], command.command_id[:64]
        return [
            facts.CommandRejected(
                "", name, command_id, "DeclareQueue", refusal.reason, refusal.field, refusal.detail
            )
        ]
    known = book.queues.get(command.name.encode())
    if known is not None and (known.is_open, known.tenants) == (
        command.is_open,
        sorted(set(command.tenants)),
    ):
        return [facts.CommandAnswered("", command.name, command.command_id, "exists")]
    version = 1 if known is None else known.version + 1
    tenants = sorted(set(command.tenants))
    return [
        facts.QueueDeclared(
            command.name, version, command.is_open, tenants, command.command_id, command.actor, stamp
        ),
        facts.QueueCopied(command.name, version, command.is_open, tenants),
    ]
