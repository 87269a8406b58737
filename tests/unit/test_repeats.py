"""Idle pulses known by their bytes: read as the decoder would read them, or left to it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.domain.records import Failed, FullPulse, Pulse, QueueOffer, Report, Succeeded
from minutebook.wire import codec
from minutebook.wire.numbers import varint
from minutebook.wire.schemas import HEADER_BYTES
from streams.repeats import BYTES_MAX, SESSIONS_MAX, Repeats

SEQUENCES = st.integers(-(2**63), 2**63 - 1)


def report(sequence: int, session: str = "w.0", offer: int = 4, held: tuple[int, ...] = ()) -> Report:
    full = FullPulse("w", "1", ["t"], [QueueOffer("default")], 10_000, 3_000, list(held))
    return Report(session, sequence, Pulse(offer, -1), full)


def heard(*reports: Report) -> Repeats:
    """What is known after these were decoded."""
    repeats = Repeats()
    for one in reports:
        repeats.keep(codec.encode(one), one)
    return repeats


@settings(deadline=None)
@given(SEQUENCES, SEQUENCES, st.text(max_size=200), st.lists(SEQUENCES, max_size=3))
def test_a_repeat_is_read_as_the_decoder_reads_it(
    first: int, then: int, session: str, held: list[int]
) -> None:
    value = codec.encode(report(then, session, held=tuple(held)))
    repeats = heard(report(first, session, held=tuple(held)))
    assert repeats.read(value) in (None, codec.decode(value))
    assert bool(repeats.again(value)) == (session != "" and repeats.read(value) is not None)


@pytest.mark.parametrize("before", [b"", codec.encode(report(1))[:HEADER_BYTES]])
def test_a_number_without_an_end_is_left_to_the_decoder_at_once(before: bytes) -> None:
    """Read to its end, a million bytes of it would take half a minute, and stop every partition of the process."""
    value = before + b"\xff" * (1 << 20)
    started_s = time.process_time()
    assert heard(report(1)).again(value) == ""
    assert heard(report(1)).read(value) is None
    assert time.process_time() - started_s < 5
    with pytest.raises(IndexError):
        varint(b"\xff" * 11 + b"\x01", 0)


def test_the_same_again_is_a_repeat_whatever_its_sequence() -> None:
    repeats = heard(report(1))
    for sequence in (2, 63, 64, 1_000_000, 2**62 - 1):
        assert repeats.read(codec.encode(report(sequence))) == report(sequence)


def test_what_differs_is_no_repeat() -> None:
    repeats = heard(report(1))
    others = (report(2, offer=5), report(2, held=(7,)), report(2, "w.1"), report(2, "x.0"))
    assert not any(repeats.again(codec.encode(other)) for other in others)


def test_each_session_is_compared_with_what_it_said_last() -> None:
    repeats = heard(report(1), report(2, "x.0", offer=9), report(3, offer=5))
    found = [repeats.again(codec.encode(report(4, offer=offer))) for offer in (4, 5, 9)]
    assert found == ["", "w.0", ""]


def test_the_same_after_another_report_is_news_and_need_not_be_decoded() -> None:
    """The other one may have changed the offer."""
    pulse = report(1)
    many = 2 * BYTES_MAX
    done = Succeeded(["a"], [0] * many, ["j:1"] * many, [5] * many, [0] * many, [0] * many)
    for other in (Report("w.0", 2, Pulse(0, -1)), Report("w.0", 2, pulse.pulse, None, done)):
        repeats = heard(pulse, other)
        value = codec.encode(report(3))
        assert not repeats.again(value)
        assert repeats.read(value) == report(3)
        assert repeats.again(codec.encode(report(4)))
    assert heard(pulse, Report("x.0", 2, Pulse(0, -1))).again(codec.encode(report(3)))


def test_a_report_that_brings_something_is_decoded_each_time() -> None:
    pulse = report(1)
    failed = Failed("a", "j:1", 5, "E", "m", "", 0, 0)
    succeeded = Succeeded(["a"], [0], ["j:1"], [5], [0], [0])
    for more in (
        Report("w.0", 1, pulse.pulse, pulse.full, succeeded),
        Report("w.0", 1, pulse.pulse, pulse.full, failed=[failed]),
        Report("w.0", 1, pulse.pulse),
    ):
        assert not heard(more).again(codec.encode(more))


def test_bytes_that_are_no_report_are_left_to_the_decoder() -> None:
    value = codec.encode(report(1))
    repeats = heard(report(1))
    start = HEADER_BYTES + 1 + len("w.0")
    for longer in (9, 10):
        sequence = b"\x80" * (longer - 1) + b"\x01"
        assert bool(repeats.again(value[:start] + sequence + value[start + 1 :])) == (longer == 9)
    endless = value[:HEADER_BYTES] + b"\xff" * 20
    negative = value[:HEADER_BYTES] + b"\x03" + value[HEADER_BYTES + 1 :]
    for broken in (None, b"", value[:HEADER_BYTES], value[: HEADER_BYTES + 3], endless, negative):
        assert repeats.read(broken) is None
        repeats.keep(broken, report(1))
    assert repeats.read(value + b"\0") is None


def test_another_version_of_the_schema_is_another_speaker() -> None:
    value = codec.encode(report(1))
    assert not heard(report(1)).again(b"\xc3\x01" + b"another!" + value[HEADER_BYTES:])


def test_memory_is_bounded() -> None:
    long = report(1, held=tuple(range(2**40, 2**40 + BYTES_MAX // 6)))
    assert len(codec.encode(long)) > BYTES_MAX
    repeats = heard(long)
    assert not repeats.again(codec.encode(long))
    value = codec.encode(report(1))
    repeats.keep(value, report(1))
    for number in range(SESSIONS_MAX):
        repeats.keep(codec.encode(report(1, f"{number}.0")), report(1, f"{number}.0"))
    assert len(repeats) <= SESSIONS_MAX
    assert not repeats.again(value)
