"""A consumer that silently stops delivering is found out by what the broker has."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.errors import KafkaError

from minutebook.log.kafka import read_range
from minutebook.log.settings import KafkaSettings
from streams.deliveries import Deliveries
from streams.feed import Feed

TOPIC = "job-commands"


class Watched:
    """A feed that has nothing yet, looked at by hand."""

    def __init__(self) -> None:
        self.deliveries = Deliveries()
        self.feed = Feed(KafkaSettings(), TOPIC, 0, 10, lambda: None, lambda error: None)

    def deliver(self, offset: int) -> None:
        """What `offer` notes of a record."""
        self.feed.delivered = self.feed.seen = offset

    def look(self, end: int) -> bool:
        """Whether the feed stood still; what it missed counts as read from the topic then."""
        found = self.deliveries.look([self.feed], {(TOPIC, 0): end})
        if found:
            self.feed.seen = end - 1
        return bool(found)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_an_input_without_news_stands_still_for_good_reason(watched: Watched) -> None:
    assert [watched.look(10) for _ in range(9)] == [False] * 9
    assert watched.deliveries.longest() == 0


def test_what_is_on_its_way_has_one_look_of_time(watched: Watched) -> None:
    assert not watched.look(11)
    watched.deliver(10)
    assert not watched.look(12)
    watched.deliver(11)
    assert not watched.look(13)
    assert watched.deliveries.longest() == 0


def test_what_the_broker_had_for_two_looks_is_missed(watched: Watched) -> None:
    assert not watched.look(11)
    assert watched.look(11)
    assert watched.deliveries.longest() == 1


def test_once_found_out_each_further_record_is_missed_at_once(watched: Watched) -> None:
    watched.look(11)
    assert [watched.look(11), watched.look(11), watched.look(12), watched.look(13)] == [
        True,
        False,
        True,
        True,
    ]
    assert watched.deliveries.longest() == 3


def test_a_delivery_makes_it_good_again(watched: Watched) -> None:
    watched.look(11)
    assert watched.look(11)
    watched.deliver(11)
    assert not watched.look(12)
    assert watched.deliveries.longest() == 0


def test_what_lay_there_at_the_start_need_not_be_delivered(watched: Watched) -> None:
    """The group's commits may run ahead of the frames: then the consumer begins behind them."""
    watched.feed.delivered = watched.feed.seen = 19
    assert [watched.look(20) for _ in range(3)] == [False] * 3


def test_a_feed_that_is_gone_is_forgotten(watched: Watched) -> None:
    watched.look(11)
    assert watched.look(11)
    watched.deliveries.look([], {})
    assert watched.deliveries.longest() == 0


async def test_a_reader_whose_broker_says_nothing_gives_up() -> None:
    """It accepts connections and never answers."""
    held: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    kafka = KafkaSettings(bootstrap_servers=f"127.0.0.1:{port}")
    try:
        with pytest.raises(KafkaError):
            await anext(read_range(kafka, TOPIC, 0, 0, 1, stall_s=0.5))
    finally:
        server.close()
        for writer in held:
            writer.close()
