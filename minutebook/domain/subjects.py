"""What a command is about: whose it is, under which name its answer is kept, and the key that fixes its partition."""

from __future__ import annotations

from typing import Final

from minutebook import ids
from minutebook.domain.commands import (
    AskWorker,
    CalendarCommand,
    Command,
    DeclareTask,
    JobCommand,
    KeyCommand,
    LimitCommand,
    NamedCommand,
    OperationCommand,
    QueueCommand,
)

KIND_OF: Final[dict[str, str]] = {
    command.__name__: kind
    for kind, commands in {
        "job": JobCommand.__args__,
        "queue": QueueCommand.__args__,
        "limit": LimitCommand.__args__,
        "calendar": CalendarCommand.__args__,
        "operation": OperationCommand.__args__,
        "key": KeyCommand.__args__,
        "task": (DeclareTask,),
        "worker": (AskWorker,),
    }.items()
    for command in commands
}
"""Name of a command -> kind of what it is about."""


def name_in(subject: str) -> str:
    """The name in a subject: what follows `limit:` and the like, or all of it."""
    return subject.rpartition(":")[2]


def subject_of(command: Command) -> tuple[str, str]:
    """(tenant, job id) under which a command's answer is kept; what stands for them where it is about no job."""
    if isinstance(command, JobCommand):
        return command.tenant, command.job_id
    if isinstance(command, NamedCommand):
        return "", command.name
    if isinstance(command, OperationCommand):
        return command.tenant, ids.operation_subject(command.operation)
    if isinstance(command, CalendarCommand):
        return command.tenant, ids.calendar_subject(command.name)
    if isinstance(command, KeyCommand):
        return command.tenant, ids.key_subject(command.key)
    return command.tenant, ids.limit_subject(command.name)


def key_of(command: Command) -> str:
    """Key of a command's record on `job-commands`."""
    if isinstance(command, JobCommand):
        return ids.job_key(command.tenant, command.job_id)
    if isinstance(command, NamedCommand):
        return _key_of_named(command)
    if isinstance(command, OperationCommand):
        return ids.operation_key(command.tenant, command.operation)
    if isinstance(command, CalendarCommand):
        return ids.calendar_key(command.tenant, command.name)
    if isinstance(command, KeyCommand):
        return ids.key_key(command.tenant, command.key)
    return ids.limit_key(command.tenant, command.name)


def _key_of_named(command: NamedCommand) -> str:
    if isinstance(command, DeclareTask):
        return ids.task_key(command.name)
    if isinstance(command, AskWorker):
        return ids.worker_key(command.name)
    return ids.queue_key(command.name)


def is_addressed(command: Command) -> bool:
    """Whether the names that make up the command's key are names."""
    if isinstance(command, JobCommand):
        return ids.is_name(command.tenant) and ids.is_name(command.job_id)
    if isinstance(command, NamedCommand | OperationCommand):
        return True
    if isinstance(command, CalendarCommand):
        return ids.is_name(command.tenant) and ids.is_name(command.name)
    if isinstance(command, KeyCommand):
        return ids.is_name(command.tenant) and ids.is_name(command.key)
    return ids.is_name(command.tenant) and (not command.name or ids.is_name(command.name))
