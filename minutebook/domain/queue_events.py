"""Events of queues; `events` names them with all others."""

from __future__ import annotations

import msgspec


class QueueDeclared(msgspec.Struct, frozen=True, gc=False):
    """At the queue's home."""

    name: str
    version: int
    is_open: bool
    tenants: list[str]
    command_id: str
    actor: str
    accepted_at: int
    is_paused: bool = False
    is_draining: bool = False
    reason: str = ""


class QueueCopied(msgspec.Struct, frozen=True, gc=False):
    """At each partition, the home's too."""

    name: str
    version: int
    is_open: bool
    tenants: list[str]
    is_paused: bool = False
    is_draining: bool = False
