"""Why a command is refused, and the event that says so."""

from __future__ import annotations

from minutebook.domain import events as facts
from minutebook.domain.commands import Command, JobCommand
from minutebook.domain.subjects import subject_of


class Refusal(Exception):
    """Inside decisions: why a command is refused. `reason` is the code, `field` what is wrong, `detail` the remedy."""

    def __init__(self, reason: str, field: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.field = field
        self.detail = detail


def rejected(command: Command, refusal: Refusal) -> facts.CommandRejected:
    """The refusal on record; where the command is about no job, its subject stands for the job id."""
    tenant, job_id = subject_of(command)
    command_id = command.command_id
    if not isinstance(command, JobCommand):
        tenant, job_id, command_id = tenant[:128], job_id[:128], command_id[:64]
    kind = type(command).__name__
    return facts.CommandRejected(
        tenant, job_id, command_id, kind, refusal.reason, refusal.field, refusal.detail
    )
