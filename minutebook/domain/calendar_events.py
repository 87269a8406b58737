"""Events of calendars; `events` names them with all others."""

from __future__ import annotations

import msgspec


class CalendarDeclared(msgspec.Struct, frozen=True, gc=False):
    """At the calendar's home."""

    tenant: str
    name: str
    version: int
    first_days: list[int]  # of each range of dates, days since the epoch
    last_days: list[int]
    is_deleted: bool
    command_id: str
    actor: str
    reason: str
    accepted_at: int  # the broker's stamp of the command


class CalendarCopied(msgspec.Struct, frozen=True, gc=False):
    """At each partition, the home's too; an older version than the known one changes nothing."""

    tenant: str
    name: str
    version: int
    first_days: list[int]
    last_days: list[int]
    is_deleted: bool
