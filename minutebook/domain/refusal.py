"""Why a command is refused, and the event that says so."""

from __future__ import annotations

from minutebook.domain import events as facts
from minutebook.domain.commands import Command, NamedCommand


class Refusal(Exception):
    """Inside decisions: why a command is refused. `reason` is the code, `field` what is wrong, `detail` the remedy."""

    def __init__(self, reason: str, field: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.field = field
        self.detail = detail


def rejected(command: Command, refusal: Refusal) -> facts.CommandRejected:
    """The refusal on record; of a command without a tenant the name stands for the job id."""
    if isinstance(command, NamedCommand):
        tenant, job_id, command_id = "", command.name[:128], command.command_id[:64]
    else:
        tenant, job_id, command_id = command.tenant, command.job_id, command.command_id
    kind = type(command).__name__
    return facts.CommandRejected(
        tenant, job_id, command_id, kind, refusal.reason, refusal.field, refusal.detail
    )
