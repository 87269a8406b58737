"""Stretches of the log as files, and the log read back from them.

A folder holds one Avro object container file per partition, `partition-<n>.avro`, with the records as they lie: offset,
stamp, key, value, headers; and `manifest.json`, which says where the stretch begins and ends, and the chain's head before
and after it. Whoever keeps the heads can prove later that the files are a part of the chain.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec
from fastavro import parse_schema, reader, writer

from minutebook.errors import SettingsError
from minutebook.log.port import RawRecord
from minutebook.log.reader import next_head
from minutebook.log.written import beside, folders_whole, write_whole
from replay.reading import TO_THE_END, Advance, Log, Until, unheard

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
SCHEMA: Final = parse_schema(
    {
        "type": "record",
        "name": "ExportedRecord",
        "namespace": "minutebook",
        "doc": "One record of a partition, as it lies in the log.",
        "fields": [
            {"name": "offset", "type": "long"},
            {"name": "stamp", "type": "long", "doc": "the broker's, ms since the epoch, UTC"},
            {"name": "key", "type": ["null", "bytes"]},
            {"name": "value", "type": ["null", "bytes"]},
            {
                "name": "headers",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "ExportedHeader",
                        "fields": [
                            {"name": "name", "type": "string"},
                            {"name": "value", "type": ["null", "bytes"]},
                        ],
                    },
                },
            },
        ],
    }
)


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds of a partition: records from `start` up to and without `end`.

    `head_before` and `head_after`: the chain's heads around it, in hex; `sha256` is that of the file.
    """

    partition: int
    file: str
    start: int
    end: int
    head_before: str
    head_after: str
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder holds. `partitions`: how many the log has, whether their stretches are here or not."""

    format: int
    topic: str
    partitions: int
    stretches: list[Stretch]


def export(
    log: Log,
    folder: Path,
    partitions: list[int],
    since: int = 0,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
) -> Manifest:
    """`write_log` into a new folder, which is there with all of it or not at all. Raises SettingsError, KafkaError, OSError."""
    with new_folder(folder) as made:
        return write_log(log, made, partitions, since, until, advance)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill; it becomes `folder` if all goes well. Raises SettingsError where something is in that, OSError."""
    folder = folder.resolve()
    with folders_whole(beside(folder), [folder]) as (made,):
        yield made


def write_log(
    log: Log,
    folder: Path,
    partitions: list[int],
    since: int = 0,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
) -> Manifest:
    """Write the records of `partitions` stamped `since` (ms) or later, up to `until`, into the empty `folder`.

    Records before the stretch are read as well: the chain's head follows from all of them. Raises KafkaError, OSError.
    """
    stretches = [_export_one(log, folder, partition, since, until, advance) for partition in partitions]
    manifest = Manifest(format=FORMAT, topic=log.topic, partitions=len(log.partitions()), stretches=stretches)
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    write_whole(folder / MANIFEST, text + b"\n")
    return manifest


def _export_one(
    log: Log, folder: Path, partition: int, since: int, until: Until, advance: Advance
) -> Stretch:
    cut = Cut(log, partition, since, until, advance)
    name = f"partition-{partition}.avro"
    with (folder / name).open("wb") as out:
        writer(out, SCHEMA, map(_datum, cut.records()), codec="deflate", sync_interval=1 << 20)
        out.flush()
        os.fsync(out.fileno())
    return Stretch(
        partition=partition,
        file=name,
        start=cut.start,
        end=cut.end,
        head_before=cut.head_before.hex(),
        head_after=cut.head.hex(),
        sha256=sha256_of(folder / name),
    )


class Cut:
    """A stretch of one partition on its way: the chain is followed from the log's first record on. Before each record that
    it gives out, `head` is the chain's after it, and `start` and `head_before` are those of the stretch.
    """

    def __init__(self, log: Log, partition: int, since: int, until: Until, advance: Advance) -> None:
        first, self._last = log.bounds(partition)
        self._log = log
        self._partition = partition
        self._since = since
        self._until = until
        self._advance = advance
        self._first = first
        self.start = self.end = first
        self.head = self.head_before = log.head_before(partition)

    def records(self) -> Iterator[RawRecord]:
        """Those of the stretch."""
        is_in = False
        for record in self._log.read(self._partition, self._first, self._last):
            if self._until.is_over(record):
                return
            self._advance(self._partition, 1)
            is_in = is_in or record.stamp >= self._since
            self.head = next_head(self.head, record)
            self.end = record.offset + 1
            if is_in:
                yield record
            else:
                self.start, self.head_before = self.end, self.head


M = TypeVar("M", bound=Manifest)


def manifest_in(folder: Path, name: str, kind: type[M], known: int) -> M:
    """The manifest `name`. Raises SettingsError where it is none, of another format than `known`, or its files are others."""
    try:
        manifest = msgspec.json.decode((folder / name).read_bytes(), type=kind)
    except FileNotFoundError as error:
        raise SettingsError(f"{folder} holds no export: there is no {name} as `export` writes it") from error
    except (OSError, msgspec.DecodeError) as error:
        raise SettingsError(f"{folder} holds no export: {error}") from error
    if manifest.format != known:
        raise SettingsError(f"{folder} is of format {manifest.format}, {known} is known here")
    for stretch in manifest.stretches:
        path = folder / stretch.file
        if path.parent != folder or not path.is_file() or sha256_of(path) != stretch.sha256:
            raise SettingsError(f"{path} is not the file that was exported: copy it again, or export anew")
    return manifest


class Exported(Generic[M]):
    """What was exported into `folder`, by its manifest. Raises SettingsError for files that are not as that says."""

    def __init__(self, folder: Path, manifest: M) -> None:
        self.manifest = manifest
        self._folder = folder
        self._stretches = {stretch.partition: stretch for stretch in manifest.stretches}

    @property
    def topic(self) -> str:
        """See `Log.topic`."""
        return self.manifest.topic

    def partitions(self) -> list[int]:
        """All partitions of the log that was exported, also those of which nothing is here."""
        return list(range(self.manifest.partitions))

    def bounds(self, partition: int) -> tuple[int, int]:
        """See `Log.bounds`: of the stretch. Raises SettingsError where that partition was not exported."""
        stretch = self.stretch(partition)
        return stretch.start, stretch.end

    def head_before(self, partition: int) -> bytes:
        """See `Log.head_before`."""
        return bytes.fromhex(self.stretch(partition).head_before)

    def stretch(self, partition: int) -> Stretch:
        """That of a partition. Raises SettingsError where there is none."""
        found = self._stretches.get(partition)
        if found is None:
            raise SettingsError(f"partition {partition} is not among the exported files in {self._folder}")
        return found

    def close(self) -> None:
        """See `Log.close`: nothing is open between calls."""


class FileLog(Exported[Manifest]):
    """A log that was exported into `folder`. Raises SettingsError for files that are not as the manifest says."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, manifest_in(folder, MANIFEST, Manifest, FORMAT))

    def head_after(self, partition: int) -> bytes:
        """The chain's head after the last record, as the manifest says it."""
        return bytes.fromhex(self.stretch(partition).head_after)

    def read(self, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        """See `Log.read`."""
        for datum in data_in(self._folder / self.stretch(partition).file):
            if datum["offset"] >= end:
                return
            if datum["offset"] >= start:
                yield _record(datum)


def data_in(path: Path) -> Iterator[Any]:
    """What an Avro file holds, one by one. Raises SettingsError where it breaks off or is damaged, OSError."""
    with path.open("rb") as source:
        count = 0
        try:
            for datum in reader(source):
                yield datum
                count += 1
        except (EOFError, ValueError, LookupError, zlib.error, struct.error) as error:
            raise SettingsError(
                f"{path} is cut or damaged behind its first {count} records: copy it again, or export anew"
            ) from error


def _datum(record: RawRecord) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "stamp": record.stamp,
        "key": record.key,
        "value": record.value,
        "headers": [{"name": name, "value": value} for name, value in record.headers],
    }


def _record(datum: Any) -> RawRecord:
    headers = tuple((header["name"], header["value"]) for header in datum["headers"])
    return RawRecord(datum["offset"], datum["stamp"], datum["key"], datum["value"], headers)


def sha256_of(path: Path) -> str:
    """Digest of a file, in hex."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
