"""The HTTP API as the demo uses it: submit, cancel, read. Nothing of the product is imported."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import httpx

_AT_ONCE: Final = 16
_TRIES: Final = 40
_PAUSE_S: Final = 0.25
_TIMEOUT_S: Final = 15.0


class ApiError(Exception):
    """The API answered something else than was asked for."""


class Api:
    """The API at `url` with the credential `key`. A request that meets a closed door is sent again: all of
    them may be.
    """

    def __init__(self, url: str, key: str) -> None:
        limits = httpx.Limits(max_connections=_AT_ONCE)
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=_TIMEOUT_S,
            limits=limits,
            trust_env=False,
        )
        self._gate = asyncio.Semaphore(_AT_ONCE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def submit(self, body: Mapping[str, Any]) -> None:
        """Create a job; it is decided, or at least durable (202), when this returns."""
        await self._send("POST", "/v1/jobs", {200, 201, 202}, json=dict(body))

    async def cancel(self, job_id: str) -> None:
        """Cancel a job; decided when this returns."""
        await self._send("DELETE", f"/v1/jobs/{job_id}", {204})

    async def pause(self, job_id: str) -> None:
        """Let no instant of a job come due; decided when this returns."""
        await self._send("POST", f"/v1/jobs/{job_id}/pause", {200})

    async def resume(self, job_id: str) -> None:
        """Let a job go on, and make up for what it missed as its misfire policy says."""
        await self._send("POST", f"/v1/jobs/{job_id}/resume", {200}, json={"catch_up": True})

    async def job(self, job_id: str) -> dict[str, Any]:
        """A job as it is now."""
        found: dict[str, Any] = (await self._send("GET", f"/v1/jobs/{job_id}", {200})).json()
        return found

    async def attempts(self, job_id: str) -> list[dict[str, Any]]:
        """All attempts of a job, in order of due instant and number."""
        found: list[dict[str, Any]] = []
        more: dict[str, str] = {}
        while True:
            page = (await self._send("GET", f"/v1/jobs/{job_id}/executions", {200}, params=more)).json()
            found += page["items"]
            if page["next_cursor"] is None:
                return found
            more = {"cursor": page["next_cursor"]}

    async def _send(self, verb: str, path: str, wanted: set[int], **more: Any) -> httpx.Response:
        async with self._gate:
            for _ in range(_TRIES):
                try:
                    answer = await self._http.request(verb, path, **more)
                except httpx.TransportError:
                    await asyncio.sleep(_PAUSE_S)
                    continue
                if answer.status_code in wanted:
                    return answer
                if answer.status_code not in (202, 429, 503):
                    raise ApiError(f"{verb} {path} answered {answer.status_code}: {answer.text[:500]}")
                await asyncio.sleep(_PAUSE_S)
        raise ApiError(f"{verb} {path} was not answered with {sorted(wanted)} in {_TRIES} tries")
