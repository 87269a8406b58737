"""What the API takes and answers of changes to a job, beside `models`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from minutebook.client.models import (
    DurationText,
    InstantText,
    JobRequest,
    Misfire,
    Name,
    OnStuck,
    Overlap,
    Via,
)
from minutebook.schedule import DayMatch, Fold, Gap

_Default = Meta(description="null = its default")


class RetryChange(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """How failed attempts are to be tried again; what is left out stays, null is the default."""

    max_attempts: Annotated[int | UnsetType | None, _Default] = UNSET
    first: Annotated[DurationText | UnsetType | None, _Default] = UNSET
    max: Annotated[DurationText | UnsetType | None, _Default] = UNSET
    factor: Annotated[float | UnsetType | None, _Default] = UNSET
    jitter: Annotated[float | UnsetType | None, _Default] = UNSET
    non_retryable: Annotated[list[str] | UnsetType | None, _Default] = UNSET


class MisfireChange(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What is to become of missed instants; what is left out stays, null is the default."""

    policy: Annotated[Misfire | UnsetType | None, _Default] = UNSET
    window: Annotated[DurationText | UnsetType | None, _Default] = UNSET
    max: Annotated[int | UnsetType | None, _Default] = UNSET


class CalendarsChange(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Calendars that are to bound the instants; what is left out stays, null is none."""

    exclude: Annotated[list[Name] | UnsetType | None, _Default] = UNSET
    include: Annotated[list[Name] | UnsetType | None, _Default] = UNSET


class JobChange(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What of a job is to be otherwise; what is left out stays, null is the default. Fields as in the create body.

    One of run_at, delay, cron and every takes the place of the one that was there.
    """

    task: Name | UnsetType = UNSET
    payload: Annotated[
        Raw | UnsetType, Meta(description="any JSON; replaced as a whole, kept byte for byte")
    ] = UNSET
    queue: Annotated[Name | UnsetType | None, _Default] = UNSET
    run_at: InstantText | UnsetType = UNSET
    delay: DurationText | UnsetType = UNSET
    cron: str | UnsetType = UNSET
    every: DurationText | UnsetType = UNSET
    zone: Annotated[str | UnsetType | None, _Default] = UNSET
    start_at: Annotated[InstantText | UnsetType | None, _Default] = UNSET
    end_at: Annotated[InstantText | UnsetType | None, _Default] = UNSET
    max_runs: Annotated[int | UnsetType | None, _Default] = UNSET
    calendars: Annotated[CalendarsChange | UnsetType | None, _Default] = UNSET
    gap: Annotated[Gap | UnsetType | None, _Default] = UNSET
    fold: Annotated[Fold | UnsetType | None, _Default] = UNSET
    day_match: Annotated[DayMatch | UnsetType | None, _Default] = UNSET
    jitter: Annotated[DurationText | UnsetType | None, _Default] = UNSET
    misfire: Annotated[MisfireChange | UnsetType | None, _Default] = UNSET
    overlap: Annotated[Overlap | UnsetType | None, _Default] = UNSET
    pause_on_failure: Annotated[bool | UnsetType | None, _Default] = UNSET
    late: Annotated[Literal["refuse", "run"] | UnsetType | None, _Default] = UNSET
    timeout: Annotated[DurationText | UnsetType | None, _Default] = UNSET
    retry: Annotated[RetryChange | UnsetType | None, _Default] = UNSET
    max_losses: Annotated[int | UnsetType | None, _Default] = UNSET
    deadline: Annotated[DurationText | UnsetType | None, _Default] = UNSET
    start_deadline: Annotated[DurationText | UnsetType | None, _Default] = UNSET
    stuck_after: Annotated[DurationText | UnsetType | None, _Default] = UNSET
    on_stuck: Annotated[OnStuck | UnsetType | None, _Default] = UNSET
    priority: Annotated[int | UnsetType | None, _Default] = UNSET
    limit: Annotated[Name | UnsetType | None, _Default] = UNSET
    notify: Annotated[str | UnsetType | None, _Default] = UNSET
    tags: Annotated[list[Name] | UnsetType | None, _Default] = UNSET


class ResumeRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Why a job goes on, and what becomes of the instants of its pause."""

    reason: Annotated[str, Meta(max_length=1000)] = ""
    catch_up: Annotated[
        bool, Meta(description="they are made up for, as the misfire policy says; else skipped, on record")
    ] = False


class JobVersion(msgspec.Struct, kw_only=True):
    """What a job was from one edit to the next. A redrive with another payload takes a number, too, and is not here."""

    version: int
    changed_at: InstantText
    reason: str
    body: Annotated[JobRequest, Meta(description="the create body that says the same")]
    actor: Annotated[
        str, Meta(description="who made it, as on record; empty where an older log does not say")
    ] = ""
    key_id: Annotated[str | None, Meta(description="of the actor; null where it is no key")] = None
    via: Via | None = None
    address: Annotated[str | None, Meta(description="where it came from")] = None
    operation_id: Annotated[
        str | None, Meta(description="the operation that did it as a part of its work")
    ] = None


class JobVersionPage(msgspec.Struct):
    """Versions of a job, the latest first."""

    items: list[JobVersion]
    next_cursor: str | None
