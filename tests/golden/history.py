"""Golden histories as files: a folder each, with an export of the log as `replay` makes it, what owners consumed, what the
log folds to, and its story for people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from fastavro import writer

from minutebook.domain import book, view_rows
from minutebook.history.steps import Wanted, steps_of
from minutebook.history.story import sentence
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken
from minutebook.times import format_instant
from minutebook.wire.frames import Frame
from replay.files import SCHEMA, FileLog, export
from replay.reading import Log
from tests.golden.scene import TENANT, Scene, kept
from tests.simulation.copies import CopiedLog
from tests.simulation.folds import folded, viewed

HISTORIES: Final = Path(__file__).parent / "histories"


class Folded(msgspec.Struct, frozen=True):
    """What a partition folds to: SHA-256 of the owner's state and of the view, in hex."""

    state: str
    view: str


class Expected(msgspec.Struct, frozen=True):
    """What a history comes to. `rules`: the version of the rules that its frames were decided by."""

    rules: int
    folded: list[Folded]


def names() -> list[str]:
    """Of all histories."""
    return sorted(path.name for path in HISTORIES.iterdir() if path.is_dir())


def save(scene: Scene, folder: Path) -> None:
    """The records of a scene, in a folder that is not there yet."""
    export(CopiedLog(*(desk.records for desk in scene.desks)), folder, list(range(len(scene.desks))))
    for desk in scene.desks:
        for topic, records in kept(desk).items():
            if records:
                with (folder / f"{topic}-{desk.partition}.avro").open("wb") as out:
                    writer(out, SCHEMA, map(_datum, records), codec="deflate")


def _datum(record: RawRecord) -> dict[str, Any]:
    return record._asdict() | {"headers": []}


def log_of(name: str) -> FileLog:
    """The log of a history."""
    return FileLog(HISTORIES / name)


def expected_of(name: str) -> Expected:
    """What a history must come to."""
    return msgspec.json.decode((HISTORIES / name / "expected.json").read_bytes(), type=Expected)


def records_of(log: Log, partition: int) -> list[RawRecord]:
    """All records of a partition."""
    return list(log.read(partition, *log.bounds(partition)))


def fold(log: Log) -> list[Folded]:
    """What each partition of a log folds to."""
    found = []
    for partition in log.partitions():
        records = records_of(log, partition)
        _, rows = viewed(records, partition=partition)
        found.append(Folded(book.digest(folded(records)).hex(), view_rows.digest(rows, partition).hex()))
    return found


def frames_of(records: Sequence[RawRecord]) -> Iterator[Frame]:
    """Valid frames of a partition."""
    reader = FrameReader()
    for record in records:
        taken = reader.take(record)
        if isinstance(taken, Taken):
            yield taken.frame


def story(log: Log) -> list[dict[str, object]]:
    """Each event of a log, with what it means for jobs in plain words."""
    return [
        line
        for partition in log.partitions()
        for frame in frames_of(records_of(log, partition))
        for line in _lines(partition, frame)
    ]


def _lines(partition: int, frame: Frame) -> Iterator[dict[str, object]]:
    steps = list(steps_of(partition, frame, Wanted(TENANT)))
    for index, event in enumerate(frame.events):
        said = [f"{step.job_id}: {sentence(step)}" for step in steps if step.place.index == index]
        place = f"{partition}.{frame.offset}.{index}"
        yield {"place": place, "at": format_instant(frame.now), "event": type(event).__name__, "said": said}
