"""When a feed calls its owner: for news at once, for what is none when it has gathered."""

from __future__ import annotations

import asyncio

import pytest

from minutebook.log.port import RawRecord
from minutebook.log.settings import KafkaSettings
from streams import feed as feeds
from streams.feed import Feed

NEWS, NO_NEWS = b"news", b"again"


class Called:
    """A feed that expects offset 0, and how often it called its owner."""

    def __init__(self) -> None:
        self.times = 0
        self.woken = asyncio.Event()
        self.feed = Feed(
            KafkaSettings(),
            "worker-reports",
            0,
            0,
            self._wake,
            self._halt,
            lambda record: record.value == NEWS,
        )
        self._next = 0

    def _wake(self) -> None:
        self.times += 1
        self.woken.set()

    def _halt(self, error: BaseException) -> None:
        raise AssertionError from error

    def offer(self, *values: bytes) -> None:
        records = [RawRecord(self._next + number, 0, None, value) for number, value in enumerate(values)]
        self._next += len(values)
        self.feed.offer(records)


async def test_news_calls_at_once() -> None:
    called = Called()
    called.offer(NEWS)
    assert (called.times, called.feed.has_news) == (1, True)


async def test_what_is_no_news_gathers_and_calls_once() -> None:
    called = Called()
    called.offer(NO_NEWS, NO_NEWS)
    called.offer(NO_NEWS)
    assert (called.times, called.feed.has_news, len(called.feed.waiting)) == (0, False, 3)
    await asyncio.wait_for(called.woken.wait(), 10)
    assert (called.times, called.feed.has_news) == (1, True)


async def test_what_was_taken_meanwhile_calls_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "GATHER_S", 0.0)
    called = Called()
    called.offer(NO_NEWS)
    called.feed.take()
    over = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.0, over.set_result, None)
    await over
    assert (called.times, called.feed.has_news) == (0, False)
    called.offer(NO_NEWS)
    await asyncio.wait_for(called.woken.wait(), 10)


async def test_news_takes_along_what_had_gathered() -> None:
    called = Called()
    called.offer(NO_NEWS, NEWS)
    assert called.feed.has_news
    called.feed.take()
    assert called.feed.has_news
    called.feed.take()
    assert not called.feed.has_news


async def test_what_is_put_back_is_decided_again_at_once() -> None:
    called = Called()
    called.offer(NO_NEWS)
    called.feed.put_back([called.feed.take()])
    assert called.feed.has_news


async def test_a_closed_feed_calls_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "GATHER_S", 0.0)
    called = Called()
    called.offer(NO_NEWS)
    await called.feed.close()
    over = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.0, over.set_result, None)
    await over
    assert called.times == 0
