"""Events of bulk operations; `events` names them with all others."""

from __future__ import annotations

import msgspec

from minutebook.domain.operation import OperationFact


class OperationStarted(msgspec.Struct, frozen=True, gc=False):
    """At the operation's home."""

    command_id: str
    fact: OperationFact


class OperationCancelled(msgspec.Struct, frozen=True, gc=False):
    """At the operation's home; who wanted it and why."""

    command_id: str
    actor: str
    reason: str
    accepted_at: int
    fact: OperationFact


class OperationCopied(msgspec.Struct, frozen=True, gc=False):
    """At each partition, the home's too."""

    fact: OperationFact


class OperationAdvanced(msgspec.Struct, frozen=True, gc=False):
    """How far this partition is with its share."""

    tenant: str
    operation: str
    home: int
    matched: int  # -1 = it still counts
    counting: int  # executions counted so far
    done: int
    refused: int
    through: bytes  # last row looked at; empty = from the start
    next_at: int  # earliest instant of the next piece of work
    is_finished: bool
    is_reported: bool  # the home is told


class OperationCounted(msgspec.Struct, frozen=True, gc=False):
    """At the home: what a partition told."""

    tenant: str
    operation: str
    partition: int
    matched: int
    done: int
    refused: int
    is_finished: bool


class OperationEnded(msgspec.Struct, frozen=True, gc=False):
    """At the home: every partition has finished its share."""

    tenant: str
    operation: str
    matched: int
    done: int
    refused: int
    is_cancelled: bool
