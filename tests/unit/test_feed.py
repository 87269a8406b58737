"""What a feed hands to its owner: each record once, in order, and the owner is called for it."""

from __future__ import annotations

from minutebook.log.port import RawRecord
from minutebook.log.settings import KafkaSettings
from streams.feed import Feed


class Called:
    """A feed that expects offset 0, and how often it called its owner."""

    def __init__(self) -> None:
        self.times = 0
        self.feed = Feed(KafkaSettings(), "worker-reports", 0, 0, self._wake, self._halt)

    def _wake(self) -> None:
        self.times += 1

    def _halt(self, error: BaseException) -> None:
        raise AssertionError from error

    def offer(self, *offsets: int) -> None:
        self.feed.offer([RawRecord(offset, 0, None, b"") for offset in offsets])


def taken(feed: Feed) -> list[int]:
    return [feed.take().offset for _ in range(len(feed.waiting))]


def test_what_arrives_calls_the_owner() -> None:
    called = Called()
    called.offer(0, 1)
    assert called.times > 0
    assert taken(called.feed) == [0, 1]


def test_what_was_delivered_before_is_dropped() -> None:
    called = Called()
    called.offer(0, 1)
    called.offer(0, 1)
    called.offer(1, 2)
    assert taken(called.feed) == [0, 1, 2]
    assert called.feed.has_all_below(3)


def test_what_is_put_back_comes_again_in_its_order() -> None:
    called = Called()
    called.offer(0, 1, 2)
    called.feed.put_back([called.feed.take(), called.feed.take()])
    assert taken(called.feed) == [0, 1, 2]
