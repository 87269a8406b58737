"""Events about workers and what they can run; a part of `events`, where the union is."""

from __future__ import annotations

import msgspec


class TaskDeclared(msgspec.Struct, frozen=True, gc=False):
    """At the task's home: what payload it takes from now on."""

    name: str
    version: int
    payload_schema: str  # JSON Schema as JSON text; empty = any payload
    command_id: str
    actor: str
    accepted_at: int


class WorkerAsked(msgspec.Struct, frozen=True, gc=False):
    """At the worker's home: what it is asked to do."""

    worker: str  # its id
    what: str  # quiet, resume or stop
    command_id: str
    actor: str
    reason: str
    accepted_at: int
