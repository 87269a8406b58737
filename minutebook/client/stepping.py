"""Async iterators for code without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TypeVar

T = TypeVar("T")


def each(runner: asyncio.Runner, found: AsyncIterator[T]) -> Iterator[T]:
    """Items of `found`, each awaited on `runner`."""
    while True:
        try:
            yield runner.run(_next(found))
        except StopAsyncIteration:
            return


async def _next(found: AsyncIterator[T]) -> T:
    return await anext(found)
