"""Calendars in the client: what is sent for each call, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import httpx
import msgspec
from pydantic import SecretStr

from minutebook.client import (
    Calendar,
    CalendarEffect,
    CalendarEntry,
    Client,
    ClientSettings,
    Command,
    DateRange,
    SyncClient,
)
from minutebook.client.calendar_models import CalendarPage, InstantCount

RANGE = DateRange("2026-12-31", "2027-01-01")
CALENDAR = Calendar("c", 1, ["2026-12-25", RANGE])
ENTRY = CalendarEntry("c", 1, "2026-12-25", "2027-01-01", 3)
NOTHING = InstantCount(0, 0)
EFFECT = CalendarEffect(
    name="c",
    until="2027-01-01T00:00:00.000Z",
    jobs=0,
    complete=True,
    removed=NOTHING,
    added=NOTHING,
    moved=0,
    ended=0,
)
SETTINGS = ClientSettings(url="http://api", api_key=SecretStr("k"), retries_max=0)


def answer(status: int, body: Any = None) -> httpx.Response:
    return httpx.Response(status, content=b"" if body is None else msgspec.json.encode(body))


def respond(request: httpx.Request) -> httpx.Response:
    if request.url.params.get("dry_run") == "true":
        return answer(200, EFFECT)
    if request.method == "DELETE":
        return answer(204)
    return answer(200, CalendarPage([ENTRY], None) if request.url.path == "/v1/calendars" else CALENDAR)


def client_of(handle: Callable[[httpx.Request], httpx.Response]) -> Client:
    return Client(SETTINGS, transport=httpx.MockTransport(handle))


async def test_calls_name_the_calendar_and_say_what_is_given() -> None:
    seen: list[tuple[str, str, bytes]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.url.raw_path.decode(), request.content))
        return respond(request)

    async with client_of(handle) as client:
        calendars = client.calendars
        dates = [date(2026, 12, 25), ("2026-12-31", date(2027, 1, 1))]
        assert await calendars.set("c", dates, reason="2026") == CALENDAR
        assert await calendars.would_set("c", ["2026-12-25", RANGE]) == EFFECT
        assert await calendars.get("a b") == CALENDAR
        assert await calendars.delete("c") is None
        assert await calendars.would_delete("c") == EFFECT
    body = b'{"dates":["2026-12-25",{"first":"2026-12-31","last":"2027-01-01"}]'
    assert seen == [
        ("PUT", "/v1/calendars/c", body + b',"reason":"2026"}'),
        ("PUT", "/v1/calendars/c?dry_run=true", body + b"}"),
        ("GET", "/v1/calendars/a%20b", b""),
        ("DELETE", "/v1/calendars/c", b""),
        ("DELETE", "/v1/calendars/c?dry_run=true", b""),
    ]


async def test_undecided_change_is_a_command() -> None:
    command = Command(command_id="c", outcome=None)
    async with client_of(lambda request: answer(202, command)) as client:
        assert await client.calendars.set("c", ["2026-12-25"]) == command
        assert await client.calendars.delete("c") == command


def test_sync_client_does_the_same() -> None:
    with SyncClient(SETTINGS, transport=httpx.MockTransport(respond)) as client:
        calendars = client.calendars
        assert list(calendars.all()) == [ENTRY]
        assert calendars.set("c", ["2026-12-25"]) == calendars.get("c") == CALENDAR
        assert calendars.would_set("c", ["2026-12-25"]) == calendars.would_delete("c") == EFFECT
        assert calendars.delete("c") is None
