"""The one reader of the log: which records are frames, which are void, and what halts a partition."""

from __future__ import annotations

import hashlib
import struct

import msgspec
import pytest

from minutebook.domain import events as facts
from minutebook.errors import BrokenFrameError, LogGapError
from minutebook.log.port import RawRecord
from minutebook.log.reader import CLOCK_BOUND_MS, HEAD_BEFORE_ALL, FrameReader, Taken, Void, next_head
from minutebook.wire.frames import Frame, encode_frame
from tests.simulation.log_maker import T0, LogMaker, submit

replace = msgspec.structs.replace


def log_of_three() -> LogMaker:
    maker = LogMaker()
    maker.open()
    maker.command(submit("a"))
    maker.due()
    return maker


def at_the_end(maker: LogMaker) -> FrameReader:
    reader = FrameReader()
    for record in maker.records:
        assert isinstance(reader.take(record), Taken)
    return reader


def next_record(maker: LogMaker, frame: Frame, stamp: int | None = None) -> RawRecord:
    return RawRecord(
        len(maker.records), maker.clock.now() if stamp is None else stamp, None, encode_frame(frame)
    )


def test_the_chain_is_sha256_over_every_part_of_a_record() -> None:
    """Written out once more by hand: the formula is part of the log for ever."""
    record = RawRecord(7, 1234, None, b"value", (("name", b"of header"),))
    text = bytes(range(32)) + struct.pack(">qq", 7, 1234) + b"\xff\xff\xff\xff" + b"\0\0\0\5value"
    text += b"\0\0\0\4name" + b"\0\0\0\x09of header"
    assert next_head(bytes(range(32)), record) == hashlib.sha256(text).digest()


@pytest.mark.parametrize(
    "changed",
    [
        {"offset": 8},
        {"stamp": 1235},
        {"key": b""},
        {"value": None},
        {"value": b"valu"},
        {"headers": ()},
        {"headers": (("name", b""),)},
        {"headers": (("name", b"of header"), ("name", b"of header"))},
    ],
    ids=str,
)
def test_each_part_of_a_record_changes_the_head(changed: dict) -> None:  # type: ignore[type-arg]
    record = RawRecord(7, 1234, None, b"value", (("name", b"of header"),))
    assert next_head(HEAD_BEFORE_ALL, record) != next_head(HEAD_BEFORE_ALL, record._replace(**changed))


def test_frames_in_place_are_taken_in_order() -> None:
    maker = log_of_three()
    reader = at_the_end(maker)
    assert (reader.position, reader.head) == (2, maker.reader.head)
    assert reader.head == next_head(reader.head_before, maker.records[-1])


def test_a_frame_at_another_offset_is_void() -> None:
    maker = log_of_three()
    reader = at_the_end(maker)
    frame = replace(maker.made([], T0), offset=2)
    assert reader.take(next_record(maker, frame)) == Void(3, "declared for offset 2", "offset")
    assert reader.position == 3


def test_a_frame_on_another_head_is_void() -> None:
    maker = log_of_three()
    frame = replace(maker.made([], T0), head=bytes(32))
    assert at_the_end(maker).take(next_record(maker, frame)) == Void(
        3, "built on another head of the chain", "head"
    )


@pytest.mark.parametrize(
    ("ahead_ms", "is_valid"), [(0, True), (CLOCK_BOUND_MS, True), (CLOCK_BOUND_MS + 1, False)]
)
def test_a_frame_ahead_of_the_brokers_stamp_is_void(ahead_ms: int, is_valid: bool) -> None:
    maker = log_of_three()
    record = next_record(maker, maker.made([], T0 + ahead_ms), stamp=T0)
    assert isinstance(at_the_end(maker).take(record), Taken) is is_valid
    assert at_the_end(maker).own(record, T0 + ahead_ms) is is_valid


def test_a_frame_long_before_its_stamp_is_valid() -> None:
    """A slow append is no fault of its frame."""
    maker = log_of_three()
    record = next_record(maker, maker.made([], T0), stamp=T0 + 86_400_000)
    assert isinstance(at_the_end(maker).take(record), Taken)


@pytest.mark.parametrize("value", [None, b"", b"\xc3", b"text"])
def test_what_does_not_claim_to_be_ours_is_void(value: bytes | None) -> None:
    maker = log_of_three()
    reader = at_the_end(maker)
    before = reader.head
    assert isinstance(reader.take(RawRecord(3, T0, None, value)), Void)
    assert reader.head != before


def test_void_records_count_in_the_chain() -> None:
    maker = log_of_three()
    maker.void(b"junk")
    maker.add()
    reader = FrameReader()
    found = [reader.take(record) for record in maker.records]
    assert [isinstance(one, Taken) for one in found] == [True, True, True, False, True]


@pytest.mark.parametrize("value", [b"\xc3\x01", b"\xc3\x01" + bytes(8), b"\xc3\x01damaged frame"])
def test_what_claims_to_be_ours_and_is_damaged_halts(value: bytes) -> None:
    maker = log_of_three()
    with pytest.raises(BrokenFrameError, match="offset 3"):
        at_the_end(maker).take(RawRecord(3, T0, None, value))


@pytest.mark.parametrize("offset", [0, 2, 4, 100])
def test_a_gap_halts(offset: int) -> None:
    maker = log_of_three()
    reader = at_the_end(maker)
    for take in (reader.take, lambda record: reader.own(record, T0)):
        with pytest.raises(LogGapError, match=f"offset {offset} follows 2"):
            take(RawRecord(offset, T0, None, b"x"))
    assert reader.position == 2


def test_of_two_frames_for_one_place_the_first_is_valid() -> None:
    maker = log_of_three()
    mine = encode_frame(maker.made([], T0))
    other = encode_frame(maker.made([facts.MailTaken(1, 1, 1)], T0, owner="owner-2/b"))
    reader = at_the_end(maker)
    assert isinstance(reader.take(RawRecord(3, T0, None, other)), Taken)
    assert reader.take(RawRecord(4, T0, None, mine)) == Void(4, "declared for offset 3", "offset")


def test_a_reader_goes_on_from_a_kept_place() -> None:
    maker = log_of_three()
    maker.add()
    kept = FrameReader()
    for record in maker.records[:2]:
        kept.take(record)
    resumed = FrameReader(kept.position, kept.head)
    assert all(isinstance(resumed.take(record), Taken) for record in maker.records[2:])
    assert resumed.head == maker.reader.head
