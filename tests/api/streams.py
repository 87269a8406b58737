"""Readers of `/v1/stream` in memory: the application is called as a server calls it, one chunk after another."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Final

import msgspec
from fastapi import FastAPI

_LIMIT_S: Final = 10.0


class Event(msgspec.Struct):
    """One event as a browser takes it: `name` empty = a comment alone."""

    name: str = ""
    data: Any = None
    id: str = ""


class Reader:
    """A stream that is read event by event. While `is_stuck`, it takes nothing."""

    def __init__(self, app: FastAPI, key: str, query: str = "", last_event_id: str | None = None) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.last_id = ""
        self.taking = asyncio.Event()
        self.taking.set()
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._gone = asyncio.Event()
        headers = [(b"authorization", f"Bearer {key}".encode()), (b"accept", b"text/event-stream")]
        if last_event_id is not None:
            headers.append((b"last-event-id", last_event_id.encode()))
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/v1/stream",
            "raw_path": b"/v1/stream",
            "query_string": query.encode(),
            "headers": headers,
            "client": ("test", 1),
            "server": ("api", 80),
        }
        self._app = app

    async def __aenter__(self) -> Reader:
        self._call = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.taking.set()
        self._gone.set()
        await self._call

    async def _run(self) -> None:
        await self._app(self._scope, self._receive, self._send)
        self._events.put_nowait(None)

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        await self.taking.wait()
        for text in message["body"].decode().split("\n\n"):
            if text:
                self._events.put_nowait(_parsed(text))

    async def next(self, name: str = "") -> Event:
        """The next event, of that name where one is given; what comes before is passed over."""
        async with asyncio.timeout(_LIMIT_S):
            while (event := await self._events.get()) is not None:
                self.last_id = event.id or self.last_id
                if name in ("", event.name):
                    return event
        raise EOFError("the stream has ended")

    async def changes(self) -> list[tuple[str, str, str]]:
        """(kind, id, status) of the next changes that are told."""
        event = await self.next("changes")
        return [(change["kind"], change["id"], change["status"]) for change in event.data["changes"]]

    def waiting(self) -> int:
        """Events that have come and were not taken."""
        return self._events.qsize()


def _parsed(text: str) -> Event:
    event = Event()
    for line in text.split("\n"):
        field, _, value = line.partition(": ")
        if field == "event":
            event.name = value
        elif field == "data":
            event.data = msgspec.json.decode(value)
        elif field == "id":
            event.id = value
    return event
