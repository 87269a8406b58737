"""What is handed on to Faust, and when: idle pulses wait for others, whatever is news takes them along."""

from __future__ import annotations

from aiokafka import ConsumerRecord, TopicPartition

from minutebook.log.port import RawRecord
from minutebook.wire import topics
from streams.gathering import GATHER_S, LATE_S, Gathering

REPORTS = f"x.{topics.REPORTS}"
IDLE, NEWS = b"again", b"news"


def fetched(place: TopicPartition, first: int, *values: bytes) -> dict[TopicPartition, list[ConsumerRecord]]:
    """Records of one partition from the offset `first` on."""
    return {
        place: [
            ConsumerRecord(*place, at, 1_000 + at, 1, b"k", value, None, 1, 1, (("h", b"1"),))
            for at, value in enumerate(values, first)
        ]
    }


def offsets(found: dict[TopicPartition, list[ConsumerRecord]]) -> dict[int, list[int]]:
    """Offsets of the records that went on, by partition."""
    return {
        place.partition: [record.offset for record in message.value]
        for place, [message] in found.items()
        if isinstance(message.value, list)
    }


def gathering() -> Gathering:
    return Gathering(lambda partition, record: record.value == NEWS)


def place(partition: int, topic: str = REPORTS) -> TopicPartition:
    return TopicPartition(topic, partition)


def test_the_records_of_a_partition_travel_as_one_message_at_the_last_offset() -> None:
    fetch = fetched(place(0), 4, IDLE, NEWS, IDLE) | fetched(place(1), 7, NEWS) | {place(2): []}
    found = gathering().sift(fetch, 0.0)
    assert {
        at.partition: [(one.offset, one.key, one.headers) for one in ones] for at, ones in found.items()
    } == {0: [(6, None, ())], 1: [(7, None, ())]}
    assert found[place(0)][0].value == [
        RawRecord(at, 1_000 + at, b"k", value, (("h", b"1"),))
        for at, value in ((4, IDLE), (5, NEWS), (6, IDLE))
    ]


def test_idle_pulses_wait_for_others_and_go_on_in_time() -> None:
    kept = gathering()
    assert kept.sift(fetched(place(0), 4, IDLE), 10.0) == {}
    assert kept.sift(fetched(place(0), 5, IDLE, IDLE), 10.0 + GATHER_S / 2) == {}
    assert offsets(kept.sift({}, 10.0 + GATHER_S)) == {0: [4, 5, 6]}
    assert kept.sift({}, 10.0 + 2 * GATHER_S) == {}


def test_news_takes_along_what_was_kept_back_of_its_partition() -> None:
    kept = gathering()
    kept.sift(fetched(place(0), 4, IDLE) | fetched(place(1), 8, IDLE), 10.0)
    assert offsets(kept.sift(fetched(place(0), 5, IDLE, NEWS), 10.0)) == {0: [4, 5, 6]}
    assert offsets(kept.sift({}, 10.0 + GATHER_S)) == {1: [8]}


def test_commands_and_mail_are_never_kept_back() -> None:
    for topic in (topics.COMMANDS, topics.MAIL):
        assert offsets(gathering().sift(fetched(place(0, topic), 4, IDLE), 10.0)) == {0: [4]}


def test_a_fetch_is_not_waited_for_longer_than_what_is_kept_back_may_wait() -> None:
    kept = gathering()
    assert kept.wait_s(10.0, 1.0) == 1.0
    kept.sift(fetched(place(0), 4, IDLE), 10.0)
    kept.sift(fetched(place(1), 4, IDLE), 10.0 + GATHER_S / 2)
    assert kept.wait_s(10.0, 1.0) == GATHER_S
    assert kept.wait_s(10.0, GATHER_S / 2) == GATHER_S / 2
    assert kept.wait_s(10.0 + GATHER_S, 1.0) == LATE_S
    assert kept.wait_s(10.0 + GATHER_S, LATE_S / 2) == LATE_S / 2


def test_what_was_kept_back_of_a_partition_that_is_taken_away_is_forgotten() -> None:
    kept = gathering()
    kept.sift(fetched(place(0), 4, IDLE) | fetched(place(1), 8, IDLE), 10.0)
    kept.forget([place(0), place(2)])
    assert offsets(kept.sift({}, 10.0 + GATHER_S)) == {1: [8]}
