"""Creating jobs by the thousand: an iterable, which may be endless, cut into batches that are under way side by side.

Memory is bounded by the batches under way: while they are, nothing more is taken from the iterable.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from minutebook.client.errors import UnavailableError
from minutebook.client.models import BatchItem, BatchResult, JobRequest, Problem

ITEMS_MAX: Final = 500
"""Jobs of a batch: what the API takes."""
BYTES_MAX: Final = 4 << 20
"""Bytes of a batch after which it is cut, well below what the API takes."""
IN_FLIGHT: Final = 4
LINGER_S: Final = 0.05
"""How long a batch waits for more from an async iterable before it goes out as it is."""

Send = Callable[["Body", str], Awaitable[BatchResult]]


class Body(msgspec.Struct):
    """A batch as it is sent: each job is encoded once, however often it is."""

    jobs: list[Raw]


class Submitted(NamedTuple):
    """What became of a job of the iterable."""

    number: int
    """Its place there, from 0."""
    status: int
    """201 created (or was there already, from the same key), 202 durable but not decided yet, else refused."""
    job_id: str | None
    """None where it was refused."""
    command_id: str | None
    problem: Problem | None
    """Why it was refused; of status 503 it may be repeated."""


class Tally(NamedTuple):
    """How far a bulk submit has come: jobs by what became of them."""

    created: int = 0
    undecided: int = 0
    refused: int = 0

    def plus(self, items: list[Submitted]) -> Tally:
        """With `items` counted too."""
        created = sum(item.status == 201 for item in items)
        undecided = sum(item.status == 202 for item in items)
        return Tally(
            self.created + created,
            self.undecided + undecided,
            self.refused + len(items) - created - undecided,
        )


class _Batch(NamedTuple):
    first: int
    jobs: list[Raw]


async def submit_each(
    send: Send,
    jobs: Iterable[JobRequest] | AsyncIterable[JobRequest],
    key: str,
    *,
    is_ordered: bool,
    in_flight: int,
    linger_s: float | None,
    on_progress: Callable[[Tally], None] | None,
) -> AsyncGenerator[Submitted, None]:
    """What became of each job: in their order, or as batches are answered. `send` takes a body and its key.

    What ends the iterable with an error, or `send` with another one than UnavailableError, ends this too.
    """
    tally = Tally()
    under_way: deque[asyncio.Task[list[Submitted]]] = deque()
    async with aclosing(_cut(jobs, linger_s)) as batches:
        coming: asyncio.Task[_Batch | None] | None = asyncio.create_task(_next(batches))
        try:
            while coming is not None or under_way:
                waited: set[asyncio.Task[object]] = {*under_way} if not is_ordered else {*list(under_way)[:1]}
                if coming is not None and len(under_way) < in_flight:
                    waited.add(coming)
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if coming in waited and coming is not None and coming.done():
                    batch = coming.result()
                    coming = None
                    if batch is not None:
                        under_way.append(asyncio.create_task(_sent(send, batch, f"{key}.{batch.first}")))
                        coming = asyncio.create_task(_next(batches))
                for sent in [task for task in under_way if task in waited and task.done()]:
                    under_way.remove(sent)
                    items = sent.result()
                    tally = tally.plus(items)
                    if on_progress is not None:
                        on_progress(tally)
                    for item in items:
                        yield item
        finally:
            left = [*under_way, *([coming] if coming is not None else [])]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)


async def _sent(send: Send, batch: _Batch, key: str) -> list[Submitted]:
    try:
        items = (await send(Body(batch.jobs), key)).items
    except UnavailableError as error:
        items = [_unavailable(error)] * len(batch.jobs)
    return [
        Submitted(number, item.status, item.id, item.command_id, item.problem)
        for number, item in enumerate(items, batch.first)
    ]


def _unavailable(error: UnavailableError) -> BatchItem:
    problem = error.problem or Problem(
        type="about:blank",
        title="Unavailable",
        status=503,
        detail=str(error),
        code="unavailable",
        trace_id="",
    )
    return BatchItem(status=503, problem=problem)


async def _next(batches: AsyncIterator[_Batch]) -> _Batch | None:
    return await anext(batches, None)


async def _cut(
    jobs: Iterable[JobRequest] | AsyncIterable[JobRequest], linger_s: float | None
) -> AsyncGenerator[_Batch, None]:
    """`jobs` as batches: full by number or bytes, or as full as they are when no more came for a while."""
    encoder = msgspec.json.Encoder()
    number, held, size = 0, list[Raw](), 0
    source = _paused(jobs, linger_s) if isinstance(jobs, AsyncIterable) else _plain(jobs)
    async with aclosing(source):
        async for job in source:
            if job is not None:
                held.append(Raw(encoder.encode(job)))
                size += len(held[-1])
            if held and (job is None or len(held) == ITEMS_MAX or size >= BYTES_MAX):
                yield _Batch(number, held)
                number, held, size = number + len(held), [], 0
    if held:
        yield _Batch(number, held)


async def _plain(jobs: Iterable[JobRequest]) -> AsyncGenerator[JobRequest | None, None]:
    for job in jobs:
        yield job


async def _paused(
    jobs: AsyncIterable[JobRequest], linger_s: float | None
) -> AsyncGenerator[JobRequest | None, None]:
    """`jobs`, and None wherever the next one does not come within `linger_s`."""
    iterator = aiter(jobs)
    while True:
        coming = asyncio.ensure_future(anext(iterator))
        try:
            while linger_s is not None and not (await asyncio.wait({coming}, timeout=linger_s))[0]:
                yield None
            yield await coming
        except StopAsyncIteration:
            return
        finally:
            coming.cancel()
