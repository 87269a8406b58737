"""Coroutines begun outside of a task: those that need not wait, wait, are cancelled, or fail. And how fetches are paced."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import pytest
from aiokafka.protocol.fetch import FetchRequest

from streams.driver import FETCH_GAP_S, Begun, Paced


async def test_one_that_need_not_wait_ends_at_once() -> None:
    async def quick() -> int:
        return 7

    begun = Begun(quick())
    assert (begun.is_done, begun.result) == (True, 7)


async def test_one_that_waits_goes_on_in_a_task() -> None:
    given: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def slow() -> int:
        await asyncio.sleep(0)
        return await given + await given

    begun = Begun(slow())
    assert not begun.is_done
    task = asyncio.ensure_future(begun)
    given.set_result(4)
    assert await task == 8


async def test_a_cancel_reaches_it_where_it_waits() -> None:
    seen: list[str] = []

    async def patient() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    task = asyncio.ensure_future(Begun(patient()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


async def test_a_failure_is_raised_at_once_or_later() -> None:
    async def broken(wait: bool) -> NoReturn:
        if wait:
            await asyncio.sleep(0)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        Begun(broken(False))
    begun = Begun(broken(True))
    with pytest.raises(ValueError, match="broken"):
        await begun


async def test_fetches_of_one_broker_are_passed_on_at_a_distance() -> None:
    clock = asyncio.get_running_loop().time
    fetch = FetchRequest(50, 1, 1 << 20, 0, [])

    async def send(node_id: int, request: object, **more: object) -> float:
        return clock()

    paced = Paced(send)
    began = clock()
    for _ in range(4):
        await paced(1, fetch)
    assert clock() - began >= 3 * FETCH_GAP_S * 0.9, "timers may fire a moment early"


async def test_requests_that_fetch_nothing_are_not_held_up() -> None:
    clock = asyncio.get_running_loop().time

    async def send(node_id: int, request: object, **more: object) -> float:
        return clock()

    paced = Paced(send)
    began = clock()
    for _ in range(10_000):
        await paced(1, object())
    assert clock() - began < 10_000 * FETCH_GAP_S / 4
