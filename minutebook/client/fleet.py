"""What the API says of workers and of the tasks that they declare."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw

from minutebook.client.models import DurationText, InstantText, Name


class DeclaredTask(msgspec.Struct, kw_only=True):
    """A task that a worker has declared. `version` grows with each change of the payload that it takes."""

    name: Name
    version: int
    typed: Annotated[bool, Meta(description="payloads are checked when a job is created")]
    declared_at: InstantText
    declared_by: str


class DeclaredTaskPage(msgspec.Struct):
    """Tasks by name."""

    items: list[DeclaredTask]
    next_cursor: str | None


class WholeTask(DeclaredTask, kw_only=True):
    """A declared task and what it takes."""

    payload_schema: Annotated[Raw, Meta(description="JSON Schema of the payload; null = any payload")]


class ServedQueue(msgspec.Struct):
    """A queue that a worker serves; `cap`: at most so many of its executions at once, for each partition."""

    name: Name
    cap: int | None = None


class Worker(msgspec.Struct, kw_only=True):
    """A worker as its pulses say. It is `silent` once its lease is over; what it held is lost then."""

    id: Name
    name: str
    version: str
    status: Literal["active", "quiet", "leaving", "silent"]
    running: Annotated[int, Meta(description="executions that it holds, of all tenants")]
    offered: Annotated[int, Meta(description="executions that it would take besides, over all partitions")]
    tasks: list[str]
    queues: list[ServedQueue]
    lease: DurationText
    last_pulse_at: InstantText


class WorkerPage(msgspec.Struct):
    """Workers by name, then id."""

    items: list[Worker]
    next_cursor: str | None


class WorkerSession(msgspec.Struct, kw_only=True):
    """A worker toward one partition."""

    partition: int
    session: str
    running: int
    offered: int
    last_pulse_at: InstantText


class HeldExecution(msgspec.Struct, kw_only=True):
    """An execution that a worker runs."""

    execution_id: str
    job_id: Name
    task: Name
    queue: Name
    attempt: int
    since: InstantText
    partition: int


class WholeWorker(Worker, kw_only=True):
    """A worker with what it runs. Of other tenants' executions, and of what is too much to show, there is a count alone."""

    sessions: list[WorkerSession]
    executions: list[HeldExecution]
    not_shown: int
