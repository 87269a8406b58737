"""What a preview of a schedule takes and answers."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from minutebook.client.models import CalendarsRequest, DurationText, InstantText, Name
from minutebook.schedule import DayMatch, Fold, Gap

PREVIEW_MAX: Final = 1000
"""Instants of one preview."""


class PreviewRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A schedule whose next instants are asked for: cron or every, as in a create body."""

    cron: (
        Annotated[str, Meta(max_length=256, description="as in a create body, or every in its place")]
        | UnsetType
    ) = UNSET
    every: Annotated[DurationText | UnsetType, Meta(description="fixed interval, PT1S to P366D")] = UNSET
    zone: Annotated[str, Meta(max_length=128, description="IANA name")] = "UTC"
    start_at: Annotated[
        InstantText | UnsetType,
        Meta(description="no instant before; an interval counts from here, or else from `after`"),
    ] = UNSET
    end_at: Annotated[InstantText | UnsetType, Meta(description="no instant from then on")] = UNSET
    calendars: CalendarsRequest | UnsetType = UNSET
    after: Annotated[InstantText | UnsetType, Meta(description="with an offset; now if left out")] = UNSET
    count: Annotated[int, Meta(ge=1, le=PREVIEW_MAX)] = 10
    gap: Annotated[Gap, Meta(description="local times that a clock change leaves out")] = "auto"
    fold: Annotated[Fold, Meta(description="local times that come twice")] = "auto"
    day_match: Annotated[DayMatch, Meta(description="of two restricted day fields either, or both")] = "or"
    jitter: Annotated[DurationText, Meta(description="each instant is due up to so much later")] = "PT0S"
    job_id: Annotated[Name | UnsetType, Meta(description="what `H` and jitter take their values from")] = (
        UNSET
    )


class PreviewInstant(msgspec.Struct, omit_defaults=True):
    """One instant: in UTC, on the wall clock of the zone with its offset, and what a clock change does to it."""

    utc: InstantText
    local: InstantText
    note: str | None
    due_at: Annotated[InstantText | UnsetType, Meta(description="with its jitter, for the job named")] = UNSET
    due_in_minute: Annotated[
        int | UnsetType, Meta(description="jobs of the tenant whose next instant lies in that minute")
    ] = UNSET
    hint: Annotated[str | UnsetType, Meta(description="where the minute is crowded: a better one")] = UNSET


class Preview(msgspec.Struct):
    """What a schedule means, and its next instants."""

    description: str
    items: list[PreviewInstant]
