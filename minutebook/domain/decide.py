"""Commands to events. What is refused is an event too, with a code, the field and the remedy.

Every instant counts from the broker's stamp of the command's record, so no decision depends on when it is made.
"""

from __future__ import annotations

from typing import Final, assert_never

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.api_keys import decide_key
from minutebook.domain.book import Book
from minutebook.domain.calendars import decide_calendar
from minutebook.domain.changes import OPEN, check_version, edit, pause, resume
from minutebook.domain.commands import (
    REASON_CHARS_MAX,
    AskWorker,
    CalendarCommand,
    CancelExecution,
    CancelJob,
    Command,
    DeclareTask,
    DiscardExecution,
    EditJob,
    JobCommand,
    KeyCommand,
    LimitCommand,
    NamedCommand,
    OperationCommand,
    PauseJob,
    PurgeJob,
    RedriveExecution,
    ResumeJob,
    RunJobNow,
    SubmitJob,
)
from minutebook.domain.discard import discard
from minutebook.domain.events import Event
from minutebook.domain.limits import decide_limit
from minutebook.domain.operations import decide_operation
from minutebook.domain.purge import PURGED, about_purged, purge
from minutebook.domain.queues import decide_queue
from minutebook.domain.redrive import redrive
from minutebook.domain.refusal import Refusal, answered, rejected
from minutebook.domain.state import Job
from minutebook.domain.subjects import subject_of
from minutebook.domain.submit import submit
from minutebook.domain.tasks import declare_task
from minutebook.domain.workers import ask_worker

COMMAND_AGE_MAX_MS: Final = 7 * keys.DAY_MS
COMMAND_AHEAD_MAX_MS: Final = keys.DAY_MS
"""With the age, what answers are remembered for: a command never outlives the memory of its answer."""


def decide(book: Book, command: Command, stamp: int) -> list[Event]:
    """Events that answer `command`, whose record the broker stamped `stamp` (ms, UTC).

    Empty for a command whose answer is on record already.
    """
    row = keys.job_row(*subject_of(command))
    try:
        _check_names(command)
        if isinstance(command, JobCommand):
            return _decide_job(book, row, command, stamp)
        if _is_answered(book, row, command):
            return []
        _check_age(command, stamp)
        if isinstance(command, LimitCommand):
            return decide_limit(book, command, stamp)
        if isinstance(command, OperationCommand):
            return decide_operation(book, command, stamp)
        if isinstance(command, CalendarCommand):
            return decide_calendar(book, command, stamp)
        if isinstance(command, KeyCommand):
            return [decide_key(book, command, stamp)]
        return _decide_named(book, command, stamp)
    except Refusal as refusal:
        return [rejected(command, refusal)]


def _decide_named(book: Book, command: NamedCommand, stamp: int) -> list[Event]:
    match command:
        case DeclareTask():
            return [declare_task(book, command, stamp)]
        case AskWorker():
            return [ask_worker(book, command, stamp)]
        case _:
            return decide_queue(book, command, stamp)


def _decide_job(book: Book, row: bytes, command: JobCommand, stamp: int) -> list[Event]:
    known = _known(book, row)
    is_first = known is not None and known.command_id == command.command_id
    if is_first or _is_answered(book, row, command):
        return []
    _check_age(command, stamp)
    if known is not None and known.status == PURGED:
        return [about_purged(command)]
    if isinstance(command, SubmitJob):
        return [submit(book, row, known, command, stamp)]
    if known is None:
        raise Refusal("not_found", "id", "no such job")
    match command:
        case CancelJob():
            return [_cancel(book, row, known, command, stamp)]
        case RunJobNow():
            return [_run_now(book, row, known, command, stamp)]
        case CancelExecution():
            return [_cancel_execution(book, command, stamp)]
        case RedriveExecution():
            return [redrive(book, known, command, stamp)]
        case DiscardExecution():
            return [discard(book, command, stamp)]
        case PauseJob():
            return [pause(known, command, stamp)]
        case ResumeJob():
            return resume(book, row, known, command, stamp)
        case EditJob():
            return edit(book, row, known, command, stamp)
        case PurgeJob():
            return [purge(book, row, command, stamp)]
        case _:
            assert_never(command)


def _check_names(command: Command) -> None:
    """Raises Refusal for what cannot be a name, or an id."""
    if isinstance(command, JobCommand):
        _check_job_names(command)
        return
    if isinstance(command, NamedCommand):
        if not ids.is_name(command.name) or not ids.is_command_id(command.command_id):
            detail = "names have 1-128, command ids 1-64 ASCII letters, digits, . _ -"
            raise Refusal("invalid", "name", detail)
        return
    if not ids.is_name(command.tenant):
        raise Refusal("invalid", "tenant", "1-128 ASCII letters, digits, . _ -")
    if isinstance(command, LimitCommand):
        if command.name and not ids.is_name(command.name):
            raise Refusal(
                "invalid", "name", "1-128 ASCII letters, digits, . _ -; empty = the tenant-wide one"
            )
    elif isinstance(command, OperationCommand):
        if not ids.is_name(command.operation):
            raise Refusal("invalid", "operation", "1-128 ASCII letters, digits, . _ -")
    elif isinstance(command, CalendarCommand):
        if not ids.is_name(command.name):
            raise Refusal("invalid", "name", "1-128 ASCII letters, digits, . _ -")
    elif isinstance(command, KeyCommand) and not ids.is_name(command.key):
        raise Refusal("invalid", "key", "1-128 ASCII letters, digits, . _ -")
    _check_command_id(command)


def _check_command_id(command: Command) -> None:
    if not ids.is_command_id(command.command_id):
        raise Refusal("invalid", "command_id", "1-64 ASCII letters, digits, . _ -")


def _check_job_names(command: JobCommand) -> None:
    if not ids.is_name(command.tenant):
        raise Refusal("invalid", "tenant", "1-128 ASCII letters, digits, . _ -")
    if not ids.is_name(command.job_id):
        raise Refusal("invalid", "id", "1-128 ASCII letters, digits, . _ -")
    _check_command_id(command)
    if isinstance(command, CancelExecution | RedriveExecution | DiscardExecution):
        name = command.execution
        if not ids.is_execution_id(name) or ids.job_of(name) != command.job_id:
            raise Refusal("invalid", "execution", "an execution of this job: <job id>:<what follows>")
    if isinstance(command, EditJob):
        job = command.job
        if (job.tenant, job.job_id, job.command_id) != (command.tenant, command.job_id, command.command_id):
            raise Refusal("invalid", "job", "under the same tenant, job id and command id as the edit")


def _check_age(command: Command, stamp: int) -> None:
    if stamp - command.issued_at > COMMAND_AGE_MAX_MS:
        raise Refusal("too_old", "issued_at", "commands are taken for 7 days; send it anew")
    if command.issued_at - stamp > COMMAND_AHEAD_MAX_MS:
        raise Refusal("invalid", "issued_at", "more than a day ahead; set the sender's clock right")


def _is_answered(book: Book, row: bytes, command: Command) -> bool:
    """Whether this very command has an answer on record, beside the job that it made."""
    return book.remembered(book.commands, row + b"\0" + command.command_id.encode()) is not None


def _known(book: Book, row: bytes) -> Job | None:
    """The job, active or closed within the days that are remembered."""
    return book.jobs.get(row) or book.remembered(book.closed, row)


def _cancel(book: Book, row: bytes, job: Job, command: CancelJob, stamp: int) -> Event:
    if job.status == "cancelled":
        return answered(command, "cancelled")
    if job.status not in OPEN:
        raise Refusal("job_closed", "id", f"the job is {job.status}")
    check_version(job, command.expected_version)
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


def _run_now(book: Book, row: bytes, job: Job, command: RunJobNow, stamp: int) -> Event:
    if job.status not in OPEN:
        raise Refusal("job_closed", "id", f"the job is {job.status}; submit a new one")
    if book.specs.get(keys.spec_row(row, job.version)) is None:
        raise Refusal("job_closed", "id", "the job was closed, only a redriven execution of it is open")
    name = ids.requested_execution_id(command.job_id, command.command_id)
    if book.execution(keys.execution_row(command.tenant, name)) is not None:
        return answered(
            command, "requested"
        )  # days ago: the command is forgotten, what it asked for is open still
    reason = command.reason[:REASON_CHARS_MAX]
    return facts.ExecutionRequested(
        command.tenant, command.job_id, command.command_id, command.actor, reason, stamp, name
    )


def _cancel_execution(book: Book, command: CancelExecution, stamp: int) -> Event:
    """A waiting execution is cancelled at once, a running attempt asked to stop."""
    execution = book.execution(keys.execution_row(command.tenant, command.execution))
    if execution is None:
        raise Refusal("not_open", "execution", "it is not open: it has ended, or is not due yet")
    if execution.is_stopping:
        return answered(command, "cancelled")
    return facts.ExecutionCancelled(
        command.tenant,
        command.job_id,
        command.command_id,
        command.actor,
        command.reason[:REASON_CHARS_MAX],
        stamp,
        command.execution,
        execution.token if execution.status == "running" else -1,
    )
