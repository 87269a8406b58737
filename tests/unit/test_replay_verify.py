"""`replay verify` on logs made in memory: what agrees passes, and whatever was changed is found and named."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from minutebook.domain import book
from minutebook.domain import events as facts
from minutebook.domain.view_retention import Retention
from minutebook.log.port import RawRecord
from minutebook.store.memory import MemoryRows
from minutebook.store.rocks import RocksRows
from minutebook.wire.frames import encode_frame
from replay.report import Report
from replay.verify import Copies, Until, copies_in, verify
from tests.simulation.busy_log import BusyLog
from tests.simulation.copies import CopiedLog, copy_state, copy_view
from tests.simulation.log_maker import LogMaker, submit, success

replace = msgspec.structs.replace


def small_log() -> LogMaker:
    """Six frames: a job, due and granted, done, and two frames that decide nothing."""
    maker = LogMaker()
    maker.open()
    maker.command(submit("a"))
    maker.due("w1.1")
    maker.report(success(maker.running()))
    maker.add()
    maker.add()
    return maker


def copies_of(folder: Path, records: Sequence[RawRecord]) -> Copies:
    copy_state(folder, 0, records)
    copy_view(folder, [records])
    return copies_in(folder)


def in_memory(folder: Path, families: tuple[str, ...]) -> MemoryRows:
    return MemoryRows(families)


def audit(records: Sequence[RawRecord], copies: Copies | None = None, until: Until | None = None) -> Report:
    return verify(CopiedLog(records), [0], copies, until or Until(), make_rows=in_memory)


# -- what agrees


def test_an_untouched_log_agrees_with_every_copy(tmp_path: Path) -> None:
    maker = BusyLog(7).run(400)
    report = verify(CopiedLog(maker.records), [0], copies_of(tmp_path, maker.records))
    assert report.findings == []
    assert report.ok
    only = report.partitions[0]
    assert (only.state, only.view) == ("equal", "equal")
    assert only.records == only.frames + only.void == len(maker.records)
    assert only.head == maker.reader.head.hex()
    assert only.digest == book.digest(maker.rows).hex()
    assert only.unproven_from == len(maker.records)


@pytest.mark.parametrize(("told", "state"), [(Retention(1), "equal"), (None, "different")])
def test_a_view_is_folded_with_the_retention_that_its_copy_tells(
    tmp_path: Path, told: Retention | None, state: str
) -> None:
    records = BusyLog(7).run(300).records
    copy_state(tmp_path, 0, records)
    copy_view(tmp_path, [records], retention=Retention(1))
    copies = {
        part: {number: replace(copy, retention=told) for number, copy in held.items()}
        for part, held in copies_in(tmp_path).items()
    }
    assert audit(records, copies).partitions[0].view == state


def test_copies_made_midway_are_compared_where_they_were_made(tmp_path: Path) -> None:
    records = BusyLog(8).run(200).records
    copy_state(tmp_path, 0, records[:120])
    copy_view(tmp_path, [records[:150]])
    report = audit(records, copies_in(tmp_path))
    assert report.ok, report.findings
    assert report.partitions[0].position == len(records) - 1


def test_partitions_are_folded_apart_from_one_another(tmp_path: Path) -> None:
    makers = [LogMaker(partition, 2) for partition in range(2)]
    for maker in makers:
        maker.open()
        maker.command(submit("same-id"))
        maker.due()
        copy_state(tmp_path, maker.partition, maker.records, f"owner-{maker.partition}")
    copy_view(tmp_path, [maker.records for maker in makers])
    report = verify(CopiedLog(*(maker.records for maker in makers)), [0, 1], copies_in(tmp_path))
    assert report.ok, report.findings
    assert [item.view for item in report.partitions] == ["equal", "equal"]


def test_the_newest_copy_of_a_partition_counts(tmp_path: Path) -> None:
    records = small_log().records
    copy_state(tmp_path, 0, records[:2], "owner-1")
    copy_state(tmp_path, 0, records[:4], "owner-2")
    copy_state(tmp_path, 0, records[:3], "owner-3")
    assert copies_in(tmp_path)["streams"][0].position == 3


def test_frames_that_lost_a_race_are_void_and_no_fault(tmp_path: Path) -> None:
    maker = small_log()
    loser = encode_frame(maker.made([], maker.clock.now(), owner="owner-2/b"))
    maker.add()
    maker.void(loser)
    report = audit(maker.records)
    assert report.ok, report.findings
    assert report.partitions[0].void == 1


def test_an_empty_log_has_nothing_to_find() -> None:
    report = audit([])
    assert report.ok
    assert report.partitions[0].records == 0


def test_a_log_cut_by_request_leaves_later_copies_open(tmp_path: Path) -> None:
    maker = small_log()
    copies = copies_of(tmp_path, maker.records)
    report = audit(maker.records, copies, Until(offset=2))
    assert report.ok
    assert report.partitions[0].position == 2
    assert report.partitions[0].state == "not reached"
    assert audit(maker.records, copies, Until(at=maker.records[0].stamp - 1)).partitions[0].records == 0


# -- what does not


def test_a_missing_copy_is_a_difference(tmp_path: Path) -> None:
    records = small_log().records
    copy_state(tmp_path, 0, records)
    report = audit(records, copies_in(tmp_path))
    assert not report.ok
    assert (report.partitions[0].state, report.partitions[0].view) == ("equal", "no copy")


def test_a_changed_row_of_a_copy_is_named(tmp_path: Path) -> None:
    records = small_log().records
    copies = copies_of(tmp_path, records)
    rows = RocksRows(Path(copies["streams"][0].path), book.FAMILIES)
    rows.write({"executions": {b"acme\0a:1": b"x"}}, [])
    rows.close()
    report = audit(records, copies)
    assert [finding.offset for finding in report.findings] == [len(records) - 1]
    assert r"row b'acme\x00a:1' of executions is too much" in report.findings[0].what
    assert (report.partitions[0].state, report.partitions[0].view) == ("different", "equal")


def test_a_damaged_copy_is_a_difference(tmp_path: Path) -> None:
    records = small_log().records
    copies = copies_of(tmp_path, records)
    for path in Path(copies["streams"][0].path).glob("*.sst"):
        path.write_bytes(b"\0" * path.stat().st_size)
    report = audit(records, copies)
    assert report.partitions[0].state == "different"
    assert report.partitions[0].view == "equal"


def test_a_valid_frame_that_no_fold_can_take_is_named() -> None:
    maker = small_log()
    succeeded = facts.AttemptsSucceeded(["acme"], [0], ["a:1"], [1], [0], [0])
    maker.log.put(0, encode_frame(maker.made([succeeded], maker.clock.now())))
    records = [
        *maker.records,
        RawRecord(6, maker.clock.now(), None, encode_frame(maker.made([succeeded], maker.clock.now()))),
    ]
    report = audit(records)
    assert [finding.offset for finding in report.findings] == [6]
    assert "cannot be folded" in report.findings[0].what


def test_the_log_of_another_partition_is_found() -> None:
    maker = LogMaker(1, 2)
    maker.open()
    report = audit(maker.records)
    assert "partition 1" in report.findings[0].what


# -- tampering


def flip(value: bytes, at: int, bit: int) -> bytes:
    return value[:at] + bytes([value[at] ^ 1 << bit]) + value[at + 1 :]


def test_each_changed_byte_is_named_with_its_offset() -> None:
    """Every byte of every frame but the last two, of which nothing more is known than the log itself."""
    records = small_log().records
    chance = random.Random(3)
    for offset, record in enumerate(records[:-2]):
        assert record.value is not None
        for at in range(len(record.value)):
            changed = list(records)
            changed[offset] = record._replace(value=flip(record.value, at, chance.randrange(8)))
            report = audit(changed)
            assert not report.ok, f"byte {at} of {offset}"
            assert report.findings[0].offset == offset, f"byte {at} of {offset}: {report.findings[0]}"


def test_the_last_frames_bytes_are_named_where_a_copy_proves_them(tmp_path: Path) -> None:
    records = small_log().records
    copies = copies_of(tmp_path, records)
    for offset in (len(records) - 2, len(records) - 1):
        value = records[offset].value
        assert value is not None
        for at in range(0, len(value), 7):
            changed = list(records)
            changed[offset] = records[offset]._replace(value=flip(value, at, 1))
            report = audit(changed, copies)
            assert not report.ok, f"byte {at} of {offset}"
            assert report.findings[0].offset == offset, f"byte {at} of {offset}: {report.findings[0]}"


def test_a_changed_last_record_needs_a_copy_to_be_found(tmp_path: Path) -> None:
    records = small_log().records
    changed = [*records[:-1], records[-1]._replace(key=b"k")]
    assert audit(changed).ok
    assert audit(changed).partitions[0].unproven_from == len(records) - 1
    report = audit(changed, copies_of(tmp_path, records))
    assert report.findings[0].offset == len(records) - 1


def test_a_cut_tail_is_found_by_the_kept_head(tmp_path: Path) -> None:
    records = small_log().records
    report = audit(records[:-2], copies_of(tmp_path, records))
    assert report.findings[0].offset == len(records) - 2
    assert "the log ends before" in report.findings[0].what


def test_a_loser_of_a_race_proves_what_lies_before_its_place() -> None:
    """Junk lies at 6, the frame at 7 was changed, and a frame that lost to it at 8 vouches for everything up to 6."""
    maker = small_log()
    maker.void(b"junk")
    loser = encode_frame(maker.made([], maker.clock.now(), owner="owner-2/b"))
    winner = replace(maker.made([], maker.clock.now()), head=bytes(32))
    maker.void(encode_frame(winner))
    maker.void(loser)
    (finding,) = audit(maker.records).findings
    assert (finding.offset, finding.first, finding.last) == (7, 7, 7)


@pytest.mark.parametrize("declared", [99, 0, -1])
def test_a_last_frame_with_a_changed_offset_is_named_without_a_copy(declared: int) -> None:
    maker = small_log()
    maker.void(encode_frame(replace(maker.made([], maker.clock.now()), offset=declared)))
    (finding,) = audit(maker.records).findings
    assert (finding.offset, finding.first, finding.last) == (6, 6, 6)


def test_a_frame_whose_time_goes_back_is_named() -> None:
    maker = small_log()
    maker.void(encode_frame(maker.made([], maker.clock.now() - 1)))
    (finding,) = audit(maker.records).findings
    assert finding.offset == 6
    assert "its time" in finding.what


def test_missing_records_are_named() -> None:
    records = small_log().records
    report = audit([*records[:2], *records[4:]])
    assert (report.findings[0].first, report.findings[0].last) == (2, 3)
    front = audit(records[3:])
    assert (front.findings[0].first, front.findings[0].last) == (0, 2)


def test_a_frame_on_a_wrong_head_is_no_fault_once_the_chain_goes_on() -> None:
    """Somebody wrote nonsense at the right place; the owner's next frame proves that it was written like that."""
    maker = small_log()
    nonsense = maker.made([], maker.clock.now())
    maker.void(encode_frame(replace(nonsense, head=bytes(32))))
    assert not audit(maker.records).ok
    maker.add()
    assert audit(maker.records).ok


def test_a_log_that_is_void_from_somewhere_on_is_read_to_its_end() -> None:
    """Nothing behind a changed frame is valid; the time for each of those records must not grow with their number."""
    records = small_log().records
    changed = [*records[:3], records[3]._replace(key=b"k"), *records[4:]]
    last = changed[-1]
    changed += [last._replace(offset=last.offset + number) for number in range(1, 21_000)]
    report = audit(changed)
    assert report.partitions[0].records == len(changed)
    assert report.findings[0].first == 3
    assert any("nothing is folded from here on" in found.what for found in report.findings)
