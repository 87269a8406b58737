"""Events of jobs and of their instants; `events` names them with all others."""

from __future__ import annotations

from typing import Final

import msgspec

from minutebook.domain.policy import Policy
from minutebook.domain.timing import Timing

MISFIRE: Final = "misfire"
OVERLAP: Final = "overlap"
BACKFILL: Final = "backfill"
"""Causes of placing executions; the first two are reasons of skipping them, too."""


class JobSubmitted(msgspec.Struct, frozen=True, gc=False):
    """A job and its first version."""

    tenant: str
    job_id: str
    command_id: str
    actor: str
    issued_at: int
    accepted_at: int  # the broker's stamp of the command
    fingerprint: bytes
    task: str
    payload: bytes
    key_id: int  # 0 = clear
    payload_sha256: bytes
    queue: str
    cron: str  # empty = none
    zone: str
    late: str
    timeout_ms: int
    priority: int
    next_at: int  # first instant
    traceparent: str
    policy: Policy | None = None  # None = the defaults
    limit: str = ""  # empty = none
    notify: str = ""  # where its alerts go; empty = the tenant's target
    every_ms: int = -1  # interval; -1 = none
    anchor_at: int = -1  # what the interval counts from; -1 = no interval
    timing: Timing | None = None  # None = the defaults
    tags: list[str] = []


class JobEdited(msgspec.Struct, frozen=True, gc=False):
    """Another version of a job, from the next instant on."""

    version: int
    reason: str
    job: JobSubmitted  # as it is from here on, and the command


class JobPaused(msgspec.Struct, frozen=True, gc=False):
    """No instant comes due until the job is resumed."""

    tenant: str
    job_id: str
    command_id: str  # empty = not by a command
    actor: str
    reason: str
    accepted_at: int
    cause: str  # command, or failure: an execution was given up


class JobResumed(msgspec.Struct, frozen=True, gc=False):
    """Instants come due again; those of the pause are skipped beside this, or made up for."""

    tenant: str
    job_id: str
    command_id: str
    actor: str
    reason: str
    accepted_at: int
    is_caught_up: bool
    next_at: int  # next instant, -1 = none


class JobPurged(msgspec.Struct, frozen=True, gc=False):
    """A closed job and its history are shown no more."""

    tenant: str
    job_id: str
    command_id: str
    actor: str
    reason: str
    accepted_at: int  # the broker's stamp of the command


class ExecutionsPlaced(msgspec.Struct, frozen=True, gc=False):
    """Instants of a job that do not come due at their time: executions of their own from here on."""

    tenant: str
    job_id: str
    cause: str  # misfire, overlap or backfill
    version: int
    scheduled_at: list[int]
    due_at: list[int]
    place_at: list[int]  # when it is queued; -1 = once nothing before it is open
    next_at: int  # next instant of the schedule, -1 = none, -2 = unchanged
    operation: str = ""  # that it is a part of; empty = none


class JobsRescheduled(msgspec.Struct, frozen=True, gc=False):
    """Next instants that were computed anew."""

    cause: str  # for people
    tenants: list[str]
    tenant: list[int]
    job_ids: list[str]
    next_at: list[int]  # -1 = none
    work: str  # what asked for it; empty = the instants themselves came due
    through: bytes  # row that the work has reached
    is_finished: bool


class ReschedulingStarted(msgspec.Struct, frozen=True, gc=False):
    """Next instants of many jobs are computed anew, piece by piece."""

    work: str
    cause: str  # for people


class ExecutionDiscarded(msgspec.Struct, frozen=True, gc=False):
    """A dead execution needs no attention any more; it stays as it ended."""

    tenant: str
    job_id: str
    command_id: str
    actor: str
    reason: str
    accepted_at: int  # the broker's stamp of the command
    execution: str
    operation: str = ""  # that it was a part of; empty = discarded alone
