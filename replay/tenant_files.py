"""What the log holds of one tenant as files: nothing of another's, with the chain's head after each record, so that whoever
has the log can find every event there again.

A folder holds one Avro object container file per partition and `tenant.json`, which says of which stretch they are. A
record of theirs is a valid frame cut down to the tenant's part (`part`), with the broker's stamp, the head after the
whole record and the time of the decision before it. The last valid frame of a stretch is there in any case.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from fastavro import parse_schema, writer

from minutebook.errors import DecodeError, SettingsError
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken
from minutebook.log.written import write_whole
from minutebook.wire.frames import Frame, decode_frame, encode_frame
from replay.files import Cut, Exported, Manifest, Stretch, data_in, manifest_in, new_folder, sha256_of
from replay.part import bare, part_of
from replay.reading import TO_THE_END, Advance, Log, Until, unheard

MANIFEST: Final = "tenant.json"
FORMAT: Final = 1
SCHEMA: Final = parse_schema(
    {
        "type": "record",
        "name": "TenantRecord",
        "namespace": "minutebook",
        "doc": "A valid frame as far as it is one tenant's.",
        "fields": [
            {"name": "offset", "type": "long"},
            {"name": "stamp", "type": "long", "doc": "the broker's, ms since the epoch, UTC"},
            {"name": "head", "type": "bytes", "doc": "the chain's after the whole record, 32 bytes"},
            {
                "name": "before_at",
                "type": "long",
                "doc": "time of the valid frame before it, whoever that is about; -1 = none in this stretch",
            },
            {"name": "frame", "type": "bytes", "doc": "the part, in single-object encoding"},
        ],
    }
)


class TenantManifest(Manifest, frozen=True, kw_only=True):
    """What a folder holds of one tenant: each file has what is its own of the records of a stretch."""

    tenant: str


class TenantRecord(NamedTuple):
    """A record of the files."""

    offset: int
    stamp: int
    head: bytes
    before_at: int
    frame: Frame


def export_tenant(
    log: Log,
    folder: Path,
    tenant: str,
    since: int = 0,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
) -> TenantManifest:
    """`write_tenant` into a new folder, which is there with all of it or not at all. Raises SettingsError, LogError,
    KafkaError, OSError.
    """
    with new_folder(folder) as made:
        return write_tenant(log, made, tenant, since, until, advance)


def write_tenant(
    log: Log,
    folder: Path,
    tenant: str,
    since: int = 0,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
) -> TenantManifest:
    """Write what `log` holds of `tenant` in records stamped `since` (ms) or later, up to `until`, into the empty
    `folder`. Raises LogError, KafkaError, OSError.
    """
    partitions = log.partitions()
    stretches = [
        _export_one(Cut(log, partition, since, until, advance), folder, partition, tenant)
        for partition in partitions
    ]
    manifest = TenantManifest(
        format=FORMAT, tenant=tenant, topic=log.topic, partitions=len(partitions), stretches=stretches
    )
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    write_whole(folder / MANIFEST, text + b"\n")
    return manifest


def _export_one(cut: Cut, folder: Path, partition: int, tenant: str) -> Stretch:
    name = f"partition-{partition}.avro"
    with (folder / name).open("wb") as out:
        writer(out, SCHEMA, map(_datum, _parts(cut, tenant)), codec="deflate", sync_interval=1 << 20)
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


def _datum(record: TenantRecord) -> dict[str, Any]:
    return record._asdict() | {"frame": encode_frame(record.frame)}


def _parts(cut: Cut, tenant: str) -> Iterator[TenantRecord]:
    """The tenant's parts of a stretch."""
    reader, parts = None, Parts(tenant)
    for record in cut.records():
        reader = reader or FrameReader(cut.start - 1, cut.head_before)
        taken = reader.take(record)
        if isinstance(taken, Taken):
            yield from parts.take(taken, reader.head)
    yield from parts.rest()


class Parts:
    """Valid frames of a stretch to records of one tenant's files: those that hold anything of it, and the last one."""

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant
        self._before_at = -1
        self._last: TenantRecord | None = None

    def take(self, taken: Taken, head: bytes) -> Iterator[TenantRecord]:
        """The next one, and the chain's head after it."""
        frame = taken.frame
        part = part_of(frame, self._tenant)
        record = TenantRecord(frame.offset, taken.stamp, head, self._before_at, part or bare(frame))
        self._before_at = frame.now
        self._last = record if part is None else None
        if part is not None:
            yield record

    def rest(self) -> Iterator[TenantRecord]:
        """The stretch ends here."""
        if self._last is not None:
            yield self._last


def holds_tenant(folder: Path) -> bool:
    """Whether a folder holds one tenant's files."""
    return (folder / MANIFEST).exists()


class TenantLog(Exported[TenantManifest]):
    """What was exported of one tenant into `folder`; as a `Log` as far as its frames go, and no further.

    Raises SettingsError for files that are not as the manifest says.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, manifest_in(folder, MANIFEST, TenantManifest, FORMAT))

    @property
    def tenant(self) -> str:
        """Whose it is."""
        return self.manifest.tenant

    def read(self, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        """Raises SettingsError: whole records are not here."""
        raise SettingsError(
            f"{self._folder} holds what is of the tenant {self.tenant} alone: this needs the whole log"
        )

    def records(self, partition: int) -> Iterator[TenantRecord]:
        """What is here of a partition. Raises SettingsError for what is no frame."""
        for datum in data_in(self._folder / self.stretch(partition).file):
            try:
                frame = decode_frame(datum["frame"])
            except DecodeError as error:
                raise SettingsError(
                    f"{self._folder}: partition {partition}, offset {datum['offset']}: {error}"
                ) from error
            yield TenantRecord(datum["offset"], datum["stamp"], datum["head"], datum["before_at"], frame)

    def frames(self, partition: int, until: Until, advance: Advance, at: FrameReader) -> Iterator[Frame]:
        """Frames as of a whole log, but without what is others'; `at` tells afterwards how far it was read.

        Before each stands an empty one with the time of the decision before it.
        """
        for record in self.records(partition):
            if until.is_over(RawRecord(record.offset, record.stamp, None, None)):
                return
            frame = record.frame
            if record.before_at >= 0:
                yield msgspec.structs.replace(
                    frame, offset=record.offset - 1, now=record.before_at, events=[]
                )
            at.position, at.head = record.offset, record.head
            yield frame
            advance(partition, 1)
