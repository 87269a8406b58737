"""What the API takes and answers of calendars, typed once for both sides. Dates are ISO 8601 text, such as 2026-12-25."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from minutebook.client.models import InstantText, Name

DateText = Annotated[
    str, Meta(extra_json_schema={"format": "date"}, description="from 1970-01-01 to 2200-12-31")
]
_Reason = Annotated[str, Meta(max_length=1000)]


class DateRange(msgspec.Struct, forbid_unknown_fields=True):
    """Dates in a row, both ends included."""

    first: DateText
    last: DateText


Dates = Annotated[list[DateText | DateRange], Meta(description="in order; at most 1,000 ranges")]


class CalendarRequest(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The dates of a calendar, in any order; they take the place of those that it had."""

    dates: Annotated[
        list[DateText | DateRange],
        Meta(min_length=1, description="at most 1,000 ranges, dates in a row being one"),
    ]
    reason: _Reason = ""


class Calendar(msgspec.Struct):
    """A calendar: its dates in order, those in a row as one range."""

    name: Name
    version: int
    dates: Dates


class CalendarEntry(msgspec.Struct):
    """A calendar in a list: from which date to which, and how many there are."""

    name: Name
    version: int
    first: DateText
    last: DateText
    count: int


class CalendarPage(msgspec.Struct):
    """Calendars by name."""

    items: list[CalendarEntry]
    next_cursor: str | None


class InstantCount(msgspec.Struct):
    """Instants, and of how many jobs they are."""

    instants: int
    jobs: int


class CalendarEffect(msgspec.Struct, kw_only=True):
    """What a change of a calendar would do to the coming instants of the jobs that name it. Nothing was changed."""

    name: Name
    until: Annotated[InstantText, Meta(description="instants up to here were looked at")]
    jobs: Annotated[int, Meta(description="jobs that were looked at")]
    complete: Annotated[bool, Meta(description="false = more jobs name it than were looked at")]
    removed: InstantCount
    added: InstantCount
    moved: Annotated[int, Meta(description="jobs whose next instant would be another one")]
    ended: Annotated[int, Meta(description="jobs that would have no instant left, which completes them")]
