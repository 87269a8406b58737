"""A thousand edits of copied logs, from fixed seeds: each is found and named, or lies where the audit says that only a kept head
can tell, and is found and named with one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from rich.console import Console

from minutebook.errors import DecodeError
from minutebook.log.port import RawRecord
from minutebook.store.memory import MemoryRows
from minutebook.wire.frames import Frame, decode_frame, encode_frame
from replay.heads import Heads
from replay.report import Finding, Report, heads_of, write_table
from replay.verify import verify
from tests.simulation.busy_log import BusyLog
from tests.simulation.copies import CopiedLog

replace = msgspec.structs.replace
Records = list[RawRecord]

SEEDS = range(10)
EDITS_OF_ONE = 100
PARTITION = 0


class Edited(NamedTuple):
    """An edited log, and the offsets between which the edit lies."""

    records: Records
    first: int
    last: int


Edit = Callable[[random.Random, Records], Edited | None]


def in_memory(_folder: Path, families: tuple[str, ...]) -> MemoryRows:
    return MemoryRows(families)


def audit(records: Records, kept: Heads | None = None) -> Report:
    return verify(CopiedLog(records), [PARTITION], make_rows=in_memory, kept=kept)


def renumbered(records: Records) -> Records:
    return [record._replace(offset=offset) for offset, record in enumerate(records)]


def changed(records: Records, at: int, **fields: object) -> Edited | None:
    """One record is another."""
    other = records[at]._replace(**fields)
    return None if other == records[at] else Edited([*records[:at], other, *records[at + 1 :]], at, at)


def frames(records: Records) -> list[tuple[int, Frame]]:
    """Those that are valid."""
    found = []
    for record in records:
        try:
            frame = decode_frame(record.value)
        except DecodeError:
            continue
        if frame.offset == record.offset:
            found.append((record.offset, frame))
    return found


def place(chance: random.Random, records: Records) -> int:
    return chance.randrange(len(records))


# -- one record


def flip_a_bit(chance: random.Random, records: Records) -> Edited | None:
    at = place(chance, records)
    value = bytearray(records[at].value or b"")
    if not value:
        return None
    value[chance.randrange(len(value))] ^= 1 << chance.randrange(8)
    return changed(records, at, value=bytes(value))


def change_a_byte_of_the_header(chance: random.Random, records: Records) -> Edited | None:
    """Where a frame says who it is: the fingerprint, the offset, the head."""
    at = place(chance, records)
    value = bytearray(records[at].value or b"")
    if len(value) < 50:
        return None
    value[chance.randrange(50)] ^= chance.randrange(1, 256)
    return changed(records, at, value=bytes(value))


def cut_a_value(chance: random.Random, records: Records) -> Edited | None:
    at = place(chance, records)
    value = records[at].value or b""
    return changed(records, at, value=value[: chance.randrange(len(value))]) if value else None


def lengthen_a_value(chance: random.Random, records: Records) -> Edited | None:
    at = place(chance, records)
    return changed(records, at, value=(records[at].value or b"") + chance.randbytes(chance.randint(1, 9)))


def empty_a_value(chance: random.Random, records: Records) -> Edited | None:
    return changed(records, place(chance, records), value=chance.choice((None, b"")))


def change_a_key(chance: random.Random, records: Records) -> Edited | None:
    return changed(records, place(chance, records), key=chance.choice((None, b"", b"key", b"other")))


def change_a_stamp(chance: random.Random, records: Records) -> Edited | None:
    at = place(chance, records)
    return changed(records, at, stamp=records[at].stamp + chance.choice((-1, 1, 100_000, -100_000)))


def change_headers(chance: random.Random, records: Records) -> Edited | None:
    headers = chance.choice(((("a", b"b"),), (("a", b""),), (("", None),), (("a", b"b"), ("a", b"b"))))
    return changed(records, place(chance, records), headers=headers)


def put_another_frame(chance: random.Random, records: Records) -> Edited | None:
    """A frame that is valid in that very place, and says something else."""
    at, frame = chance.choice(frames(records))
    _, donor = chance.choice(frames(records))
    other = chance.choice(
        (
            replace(frame, events=donor.events),
            replace(frame, events=[]),
            replace(frame, events=frame.events[1:]),
            replace(frame, now=frame.now - 1),
            replace(frame, owner="somebody/else"),
            replace(frame, epoch=frame.epoch + 1),
            replace(frame, inputs=donor.inputs, outputs_sent_through=donor.outputs_sent_through),
            replace(donor, offset=frame.offset, head=frame.head),
        )
    )
    return changed(records, at, value=encode_frame(other))


def put_the_frame_of_another_place(chance: random.Random, records: Records) -> Edited | None:
    at, other = place(chance, records), place(chance, records)
    return changed(records, at, value=records[other].value)


def declare_another_place(chance: random.Random, records: Records) -> Edited | None:
    at, frame = chance.choice(frames(records))
    other = chance.choice(
        (
            replace(frame, offset=chance.randrange(-1, 2 * len(records))),
            replace(frame, head=chance.randbytes(32)),
            replace(frame, head=bytes(32)),
        )
    )
    return changed(records, at, value=encode_frame(other))


# -- several records


def drop_some(chance: random.Random, records: Records) -> Edited | None:
    at = place(chance, records)
    count = chance.randint(1, 3)
    left = [*records[:at], *records[at + count :]]
    if at + count >= len(records):
        return None  # that is a cut tail
    return Edited(renumbered(left) if chance.random() < 0.5 else left, at, at + count - 1)


def cut_the_front(chance: random.Random, records: Records) -> Edited | None:
    count = chance.randint(1, len(records) - 1)
    left = records[count:]
    return Edited(renumbered(left) if chance.random() < 0.5 else left, 0, count - 1)


def swap_two(chance: random.Random, records: Records) -> Edited | None:
    at, other = sorted((place(chance, records), place(chance, records)))
    swapped = list(records)
    swapped[at], swapped[other] = swapped[other], swapped[at]
    swapped = renumbered(swapped)
    return None if swapped == records else Edited(swapped, at, other)


def swap_values(chance: random.Random, records: Records) -> Edited | None:
    """Stamps and keys stay in their places."""
    at, other = sorted((place(chance, records), place(chance, records)))
    mine, others = records[at], records[other]
    swapped = list(records)
    swapped[at], swapped[other] = mine._replace(value=others.value), others._replace(value=mine.value)
    return None if swapped == records else Edited(swapped, at, other)


def move_one(chance: random.Random, records: Records) -> Edited | None:
    at, to = place(chance, records), place(chance, records)
    moved = [*records[:at], *records[at + 1 :]]
    moved = renumbered([*moved[:to], records[at], *moved[to:]])
    return None if moved == records else Edited(moved, min(at, to), max(at, to))


def insert_one(chance: random.Random, records: Records) -> Edited | None:
    """Behind the last one it would be a record like any that comes later."""
    at = place(chance, records)
    extra = chance.choice((records[place(chance, records)], RawRecord(0, records[at].stamp, None, b"junk")))
    return Edited(renumbered([*records[:at], extra, *records[at:]]), at, len(records))


def repeat_one(chance: random.Random, records: Records) -> Edited | None:
    at = chance.randrange(len(records) - 1)
    return Edited(renumbered([*records[: at + 1], *records[at:]]), at + 1, len(records))


def cut_the_tail(chance: random.Random, records: Records) -> Edited | None:
    at = chance.randrange(1, len(records))
    return Edited(records[:at], at, len(records) - 1)


EDITS: tuple[Edit, ...] = (
    flip_a_bit,
    flip_a_bit,
    change_a_byte_of_the_header,
    cut_a_value,
    lengthen_a_value,
    empty_a_value,
    change_a_key,
    change_a_stamp,
    change_headers,
    put_another_frame,
    put_another_frame,
    put_the_frame_of_another_place,
    declare_another_place,
    drop_some,
    cut_the_front,
    swap_two,
    swap_values,
    move_one,
    insert_one,
    repeat_one,
    cut_the_tail,
)


def names(found: Finding, edited: Edited) -> bool:
    """Its partition, and a stretch that the edit lies in."""
    return (
        found.partition == PARTITION
        and found.first <= found.offset <= found.last
        and found.first <= edited.last
        and found.last >= edited.first
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hundred_edits_are_all_found_and_named(seed: int) -> None:
    chance = random.Random(seed)
    records = BusyLog(seed).run(40).records
    whole = audit(records)
    assert whole.ok, whole.findings
    kept = heads_of(whole)
    done: Counter[str] = Counter()
    while done.total() < EDITS_OF_ONE:
        edit = chance.choice(EDITS)
        edited = edit(chance, records)
        if edited is None:
            continue
        done[edit.__name__] += 1
        report = audit(edited.records)
        if report.findings and names(report.findings[0], edited):
            continue
        what = f"{edit.__name__} at {edited.first} to {edited.last}"
        assert edited.last >= report.partitions[0].unproven_from, f"{what} was not found"
        findings = audit(edited.records, kept).findings
        assert any(names(found, edited) for found in findings), f"{what}: {findings}"


def test_a_cut_tail_is_said_to_be_beyond_what_the_chain_can_show() -> None:
    records = BusyLog(1).run(40).records
    console = Console(file=StringIO(), width=400)
    kept = heads_of(audit(records))
    cut = audit(records[:-3])
    assert cut.ok
    write_table(cut, console)
    assert (
        "Whether records behind the last one are gone, only a head that was kept can show"
        in console.file.getvalue()
    )
    report = audit(records[:-3], kept)
    assert [(found.first, found.last) for found in report.findings] == [(len(records) - 3, len(records) - 1)]
