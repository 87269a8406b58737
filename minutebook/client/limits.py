"""Limits of a tenant and of its jobs, over the API. `None` for a name is the tenant-wide limit.

Every change is answered once every partition knows it; a Command comes back where that takes long.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from typing import Any, Protocol
from urllib.parse import quote

import httpx
import msgspec

from minutebook.client.answers import decided, decoded
from minutebook.client.models import Command, Limit, LimitPage, LimitRequest, PauseRequest, ReasonRequest
from minutebook.client.reasons import reason_headers
from minutebook.client.stepping import each
from minutebook.times import format_duration, format_instant, instant_of

Until = str | datetime | timedelta
"""An aware datetime, a timedelta from now, or either as text: RFC 3339 with an offset, ISO 8601 such as PT30S."""


class _Send(Protocol):
    """Sends a request. Raises as `Client` says."""

    async def __call__(
        self,
        method: str,
        path: str,
        *,
        body: msgspec.Struct | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response: ...


class _Items(Protocol):
    """Items of a list, page after page."""

    def __call__(self, path: str, kind: type[Any]) -> AsyncIterator[Any]: ...


class Limits:
    """Part of `Client`, and raises what its methods raise."""

    def __init__(self, send: _Send, items: _Items) -> None:
        self._send = send
        self._items = items

    async def set(self, name: str | None, bounds: LimitRequest) -> Limit | Command:
        """Declare a limit, or replace its bounds; what `bounds` leaves out is not bounded."""
        return decided(await self._send("PUT", _path(name), body=bounds), Limit)

    async def get(self, name: str | None) -> Limit:
        """A limit as it stands."""
        return decoded(await self._send("GET", _path(name)), Limit)

    async def all(self) -> AsyncIterator[Limit]:
        """All limits of the tenant by name, the tenant-wide one first."""
        async for item in self._items("/v1/limits", LimitPage):
            yield item

    async def pause(self, name: str | None, until: Until, *, reason: str = "") -> Limit | Command:
        """Start nothing under a limit until then; what runs goes on. Raises ValueError for a datetime without a zone."""
        body = PauseRequest(_until_text(until), reason)
        return decided(await self._send("POST", _path(name) + "/pause", body=body), Limit)

    async def resume(self, name: str | None, *, reason: str = "") -> Limit | Command:
        """End the pause of a limit."""
        return decided(await self._send("POST", _path(name) + "/resume", body=ReasonRequest(reason)), Limit)

    async def delete(self, name: str | None, *, reason: str = "") -> Command | None:
        """Free the jobs of a limit from it. None = done; a Command where it takes long."""
        answer = await self._send("DELETE", _path(name), headers=reason_headers(reason))
        return decoded(answer, Command) if answer.status_code == 202 else None


class SyncLimits:
    """`Limits` for code without an event loop. Part of `SyncClient`."""

    def __init__(self, limits: Limits, runner: asyncio.Runner) -> None:
        self._limits = limits
        self._runner = runner

    def set(self, name: str | None, bounds: LimitRequest) -> Limit | Command:
        """See `Limits.set`."""
        return self._runner.run(self._limits.set(name, bounds))

    def get(self, name: str | None) -> Limit:
        """See `Limits.get`."""
        return self._runner.run(self._limits.get(name))

    def all(self) -> Iterator[Limit]:
        """See `Limits.all`."""
        return each(self._runner, self._limits.all())

    def pause(self, name: str | None, until: Until, *, reason: str = "") -> Limit | Command:
        """See `Limits.pause`."""
        return self._runner.run(self._limits.pause(name, until, reason=reason))

    def resume(self, name: str | None, *, reason: str = "") -> Limit | Command:
        """See `Limits.resume`."""
        return self._runner.run(self._limits.resume(name, reason=reason))

    def delete(self, name: str | None, *, reason: str = "") -> Command | None:
        """See `Limits.delete`."""
        return self._runner.run(self._limits.delete(name, reason=reason))


def _path(name: str | None) -> str:
    return "/v1/tenant-limit" if name is None else f"/v1/limits/{quote(name, safe='')}"


def _until_text(until: Until) -> str:
    if isinstance(until, datetime):
        return format_instant(instant_of(until))
    if isinstance(until, timedelta):
        return format_duration(until // timedelta(milliseconds=1))
    return until
