"""Commands that change nothing: why one is refused, and the events that say so."""

from __future__ import annotations

from typing import Final

from minutebook.domain import events as facts
from minutebook.domain.commands import REASON_CHARS_MAX, Command, JobCommand
from minutebook.domain.subjects import subject_of
from minutebook.ids import NAME_MAX

_SUBJECT_MAX = 2 * NAME_MAX
"""Characters of a subject: a name, and what says of which kind it is."""

ACTOR_CHARS_MAX: Final = 256
"""Of a refused command a longer one is cut: anybody may send it."""


class Refusal(Exception):
    """Inside decisions: why a command is refused. `reason` is the code, `field` what is wrong, `detail` the remedy."""

    def __init__(self, reason: str, field: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.field = field
        self.detail = detail


def answered(command: Command, reason: str) -> facts.CommandAnswered:
    """It is already as the command wants it; `reason` says how."""
    kind = type(command).__name__
    return facts.CommandAnswered(
        *subject_of(command), command.command_id, reason, kind, command.actor, _why(command)
    )


def rejected(command: Command, refusal: Refusal) -> facts.CommandRejected:
    """The refusal on record; where the command is about no job, its subject stands for the job id."""
    tenant, job_id = subject_of(command)
    command_id = command.command_id
    if not isinstance(command, JobCommand):
        tenant, job_id, command_id = tenant[:NAME_MAX], job_id[:_SUBJECT_MAX], command_id[:64]
    return facts.CommandRejected(
        tenant,
        job_id,
        command_id,
        type(command).__name__,
        refusal.reason,
        refusal.field,
        refusal.detail,
        command.actor[:ACTOR_CHARS_MAX],
        _why(command),
    )


def _why(command: Command) -> str:
    """The sender's reason; some commands have none."""
    reason: str = getattr(command, "reason", "")
    return reason[:REASON_CHARS_MAX]
