"""Names and derived ids: pure functions of their arguments, the same in every process and for ever.

Random ids are made in `minutebook/mint.py` alone. Sources: docs/explanation/identities.md.
"""

from __future__ import annotations

import re
import uuid
from typing import Final, NewType

Instant = NewType("Instant", int)
"""Milliseconds since the epoch, UTC."""

NAME_MAX: Final = 128
NAMESPACE: Final = uuid.UUID("7d0c1b0e-5b67-5c1f-9d43-0a8e3f6b2a11")
"""Root of all job ids derived from an Idempotency-Key; never to be changed."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")
_COMMAND_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_KEY = re.compile(r"[\x21-\x7e]{1,255}\Z")


def is_name(text: str) -> bool:
    """Whether `text` is a tenant, job id, task or queue name: 1-128 ASCII letters, digits, `._-`.

    `.` and `..` are none: every HTTP client drops them from a path.
    """
    return _NAME.match(text) is not None and text not in (".", "..")


def is_command_id(text: str) -> bool:
    """Whether `text` is a command id: 1-64 of the characters of a name."""
    return _COMMAND_ID.match(text) is not None


def is_execution_id(text: str) -> bool:
    """Whether `text` can be the id of an execution: `<job id>:<instant>` or `<job id>:r<command id>`."""
    job, _, suffix = text.rpartition(":")
    return is_name(job) and is_name(suffix)


def is_idempotency_key(text: str) -> bool:
    """Whether `text` is an Idempotency-Key: 1-255 visible ASCII characters."""
    return _KEY.match(text) is not None


def job_id_from_key(tenant: str, key: str) -> str:
    """Job id of a create that carries an Idempotency-Key: uuid5(uuid5(NAMESPACE, tenant), key)."""
    return str(uuid.uuid5(uuid.uuid5(NAMESPACE, tenant), key))


def command_id_from_key(tenant: str, subject: str, key: str) -> str:
    """Command id of an action that carries an Idempotency-Key, so that a repeat changes nothing.

    `subject`: id of the job or execution that it is about.
    """
    return str(uuid.uuid5(uuid.uuid5(uuid.uuid5(NAMESPACE, tenant), subject), key))


def operation_command_id(tenant: str, subject: str, operation: str) -> str:
    """Id of the command that an operation stands for, about that job or execution."""
    return command_id_from_key(tenant, subject, f"operation:{operation}")


def operation_actor(actor: str, operation: str) -> str:
    """Who is on record for what an operation does: the one who started it, and the operation."""
    return f"{actor} by operation {operation}"


def execution_id(job_id: str, scheduled_at: int) -> str:
    """Id of the execution of `job_id` at the nominal instant `scheduled_at` (ms)."""
    return f"{job_id}:{scheduled_at}"


def requested_execution_id(job_id: str, command_id: str) -> str:
    """Id of the execution that a run-now command asks for."""
    return f"{job_id}:r{command_id}"


def alert_id(tenant: str, kind: str, subject: str, partition: int, at: int) -> str:
    """Id of the alert of that kind that `partition` raised at `at` (ms). `subject`: the job, or else `<queue>/<task>`."""
    return str(uuid.uuid5(uuid.uuid5(NAMESPACE, tenant), f"alert {kind} {subject} {partition} {at}"))


def job_of(execution: str) -> str:
    """Job id inside an execution id. Names hold no colon, so the last one parts them."""
    return execution.rpartition(":")[0]


def job_key(tenant: str, job_id: str) -> str:
    """Key of a job's records on `job-commands`; it fixes the job's partition for life."""
    return f"{tenant}/{job_id}"


def queue_key(name: str) -> str:
    """Key of a queue's records on `job-commands`. Queues are global, so the tenant part is empty."""
    return f"queue::{name}"


def limit_key(tenant: str, name: str) -> str:
    """Key of a limit's records on `job-commands`. An empty name is that of the tenant-wide limit."""
    return f"limit:{tenant}:{name}"


def limit_subject(name: str) -> str:
    """What stands for the job id where the answer to a limit's command is kept; no job has such an id."""
    return f"limit:{name}"


def calendar_key(tenant: str, name: str) -> str:
    """Key of a calendar's records on `job-commands`; it fixes the calendar's home."""
    return f"calendar:{tenant}:{name}"


def calendar_subject(name: str) -> str:
    """What stands for the job id where the answer to a calendar's command is kept; no job has such an id."""
    return f"calendar:{name}"


def key_key(tenant: str, key: str) -> str:
    """Key of an API key's records on `job-commands`; it fixes the home of the API key. `key`: its id."""
    return f"key:{tenant}:{key}"


def key_subject(key: str) -> str:
    """What stands for the job id where the answer to an API key's command is kept; no job has such an id."""
    return f"key:{key}"


def operation_key(tenant: str, operation: str) -> str:
    """Key of a bulk operation's records on `job-commands`; it fixes the operation's home."""
    return f"operation:{tenant}:{operation}"


def operation_subject(operation: str) -> str:
    """What stands for an operation where the answer to a command names a job: no job id has a colon."""
    return f"operation:{operation}"


def task_key(name: str) -> str:
    """Key of a task's declarations on `job-commands`. Tasks are global, like queues."""
    return f"task::{name}"


def worker_key(worker_id: str) -> str:
    """Key of what a worker is asked to do, on `job-commands`; it fixes the partition that asks it, its home."""
    return f"worker::{worker_id}"


def worker_of(session: str) -> str:
    """Worker id inside a session id `<worker id>.<n>`."""
    return session.rpartition(".")[0]
