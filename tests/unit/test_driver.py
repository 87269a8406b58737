"""What Faust's consumer commits, and when it fetches."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from types import SimpleNamespace

from aiokafka import ConsumerRecord, TopicPartition

from streams.driver import GATHER_MAX_S, InputConsumer, InputThread, delay_s, reports_among


def fetched(partition: int, *offsets: int) -> list[ConsumerRecord]:
    return [
        ConsumerRecord(
            "worker-reports", partition, at, 1_000 + at, 1, b"k", b"%d" % at, None, 1, 1, (("h", b"1"),)
        )
        for at in offsets
    ]


def test_the_last_message_taken_is_committed_with_all_before_it() -> None:
    """Messages are as far apart as their records are many."""
    place = TopicPartition("worker-reports", 0)
    consumer = InputConsumer.__new__(InputConsumer)
    consumer._acked = defaultdict(list, {place: [4, 9]})
    consumer._acked_index = defaultdict(set, {place: {4, 9}})
    assert consumer._new_offset(place) == 10
    assert consumer._new_offset(place) is None
    consumer._acked[place].append(300)
    assert consumer._new_offset(place) == 301


def test_commands_and_mail_keep_no_fetch_waiting() -> None:
    reports = {TopicPartition("x.worker-reports", number): fetched(number, 1, 2, 3) for number in (0, 1)}
    assert reports_among(reports) == 6
    for topic in ("x.job-commands", "x.partition-mail"):
        assert reports_among(reports | {TopicPartition(topic, 0): []}) == 6
        assert reports_among(reports | {TopicPartition(topic, 0): fetched(0, 1)}) == 0
    assert reports_among({}) == 0


def test_the_more_a_fetch_brought_the_longer_the_next_one_waits() -> None:
    waits = [delay_s(brought) for brought in range(100)]
    assert waits[0] == 0.0
    assert waits == sorted(waits)
    assert waits[-1] == GATHER_MAX_S


async def test_only_a_fetch_that_brought_nothing_lets_the_next_one_go_at_once() -> None:
    """Not that what was fetched is asked for more often: it may not have come yet."""
    thread, brought = InputThread.__new__(InputThread), iter((True, False))
    thread._brought = 3

    async def fetch(*request: object) -> bool:
        return next(brought)

    thread._fetch = fetch
    assert await thread._fetch_later("assignment", 1, "request")
    thread.consumer = SimpleNamespace(flow_active=False)  # type: ignore[assignment]  # as much as is asked
    assert await thread._fetch_records(None, set()) == {}
    assert thread._brought == 3
    assert not await thread._fetch_later("assignment", 1, "request")
    assert thread._brought == 0


async def test_a_fetch_that_is_cancelled_while_it_waits_brought_nothing() -> None:
    """The fetcher takes an exception for the end of itself."""
    thread, asked = InputThread.__new__(InputThread), list[tuple[object, ...]]()

    async def fetch(*request: object) -> bool:
        asked.append(request)
        return True

    thread._fetch = fetch
    assert await thread._fetch_later("assignment", 1, "request")
    thread._brought = 1_000_000
    late = asyncio.create_task(thread._fetch_later("assignment", 2, "request"))
    await asyncio.sleep(0)
    late.cancel()
    assert not await late
    assert asked == [("assignment", 1, "request")]
