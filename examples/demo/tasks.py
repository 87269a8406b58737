"""The tasks of the demo. Each says on disk that it started before it does anything, and how it ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from examples.demo.witness import FOLDER, Witness
from minutebook import App, Context

app = App()


class Report(msgspec.Struct):
    """Payload of `demo.report`."""

    pages: int

    def __post_init__(self) -> None:
        """What no schema can say, and so no API refuses: the worker does, before the task begins."""
        if self.pages < 1:
            raise ValueError("a report has a page at least")


class BrokenPipeOfTheDay(Exception):
    """What the failing tasks of the demo raise."""


@app.task("demo.note")
async def note(payload: Any, ctx: Context) -> None:
    """Take half a second, as an e-mail would."""
    async with _witnessed(ctx):
        await asyncio.sleep(0.5)


@app.task("demo.minutely")
async def minutely(payload: Any, ctx: Context) -> None:
    """Run on a cron expression."""
    async with _witnessed(ctx):
        await asyncio.sleep(0.05)


@app.task("demo.slow")
async def slow(payload: Any, ctx: Context) -> None:
    """Take longer than the interval of its job."""
    async with _witnessed(ctx):
        await asyncio.sleep(5)


@app.task("demo.third-time-lucky")
async def third_time_lucky(payload: Any, ctx: Context) -> None:
    """Fail twice, then work."""
    async with _witnessed(ctx):
        if ctx.attempt < 3:
            raise BrokenPipeOfTheDay(f"attempt {ctx.attempt} fails, as planned")


@app.task("demo.hopeless")
async def hopeless(payload: Any, ctx: Context) -> None:
    """Fail always."""
    async with _witnessed(ctx):
        raise BrokenPipeOfTheDay("fails every time, as planned")


@app.task("demo.report")
async def report(payload: Report, ctx: Context) -> None:
    """Take a typed payload: one that does not fit never reaches this function."""
    async with _witnessed(ctx):
        await asyncio.sleep(0.05)


@asynccontextmanager
async def _witnessed(ctx: Context) -> AsyncIterator[None]:
    seen = (ctx.execution_id, ctx.attempt, round(ctx.due_at.timestamp() * 1000))
    _witness().record("started", *seen)
    try:
        yield
    except BrokenPipeOfTheDay:
        _witness().record("raised", *seen)
        raise
    _witness().record("finished", *seen)


@cache
def _witness() -> Witness:
    return Witness(Path(os.environ.get(FOLDER, ".minutebook/witness")))
