"""Events as Parquet, a row each, for whoever counts and compares: DuckDB, pandas, a spreadsheet.

What is proved are the Avro files beside it, from which this follows: the audits read those. Columns are named as the events
name their fields; what has no column of its own is in `body`, a JSON object.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from minutebook.domain import events as facts
from minutebook.ids import execution_id, job_of
from minutebook.wire.frames import Frame, placed
from replay.files import FileLog
from replay.frames import frames_of
from replay.part import DICTIONARIES, is_blank, is_columns, tenant_of
from replay.tenant_files import TenantLog

_MOMENT: Final = pa.timestamp("ms", tz="UTC")
_NAME: Final = pa.dictionary(pa.int32(), pa.string())
SCHEMA: Final = pa.schema(
    [
        pa.field("event_id", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("at", _MOMENT, nullable=False),
        pa.field("owner", _NAME, nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("event", _NAME, nullable=False),
        ("tenant", _NAME),
        ("job_id", pa.string()),
        ("execution", pa.string()),
        ("version", pa.int64()),
        ("attempt", pa.int64()),
        ("token", pa.int64()),
        ("session", _NAME),
        ("worker", _NAME),
        ("queue", _NAME),
        ("task", _NAME),
        ("limit", _NAME),
        ("priority", pa.int64()),
        ("scheduled_at", _MOMENT),
        ("due_at", _MOMENT),
        ("next_at", _MOMENT),
        ("retry_at", _MOMENT),
        ("accepted_at", _MOMENT),
        ("start_delay_ms", pa.int64()),
        ("run_ms", pa.int64()),
        ("command_id", pa.string()),
        ("actor", pa.string()),
        ("cause", _NAME),
        ("reason", pa.string()),
        ("error_type", pa.string()),
        ("message", pa.string()),
        pa.field("body", pa.string(), nullable=False),
    ]
)
_COLUMNS: Final = frozenset(SCHEMA.names)
_MOMENTS: Final = frozenset(field.name for field in SCHEMA if field.type == _MOMENT)
_ROWS: Final = 20_000
_BODY_CHARS: Final = 16 << 20
"""Of either so much is in memory at a time, and one row."""
_SINGULAR: Final = {
    "executions": "execution",
    "job_ids": "job_id",
    "versions": "version",
    "attempts": "attempt",
    "priorities": "priority",
    "tokens": "token",
    "results": "result",
    "permits": "permit",
}
_PERMITS: Final = ("permit_row", "permit_limit", "permit_ids")
_DIGESTS: Final = ("fingerprint", "payload_sha256", "sha256")
_GRANTS: Final = (facts.ExecutionsDueGranted, facts.ExecutionsGranted)


def write_parquet(log: FileLog | TenantLog, folder: Path) -> list[Path]:
    """Write the events of exported files as `partition-<n>.parquet` into `folder`, made durable; the files.

    Each carries in its metadata, under `minutebook`, which stretch it is of and the chain's heads around it, as JSON.
    Raises LogError where the files cannot be read on.
    """
    written = []
    for stretch in log.manifest.stretches:
        about = {"topic": log.topic} | msgspec.to_builtins(stretch)
        if isinstance(log, TenantLog):
            about["tenant"] = log.tenant
        path = folder / f"partition-{stretch.partition}.parquet"
        schema = SCHEMA.with_metadata({"minutebook": json.dumps(about)})
        with pq.ParquetWriter(path, schema, compression="zstd") as out:
            rows = (
                row
                for frame in frames_of(log, stretch.partition)
                for row in rows_in(stretch.partition, frame)
            )
            for some in _pieces(rows):
                out.write_table(pa.Table.from_pylist(some, schema))
        with path.open("rb") as file:
            os.fsync(file.fileno())
        written.append(path)
    return written


def rows_in(partition: int, frame: Frame) -> Iterator[dict[str, Any]]:
    """A row of `SCHEMA` for each row of each event, in their order. Instants are ms; none is None."""
    for number, (event, token) in enumerate(placed(frame)):
        for row, said in _said(event):
            if isinstance(event, _GRANTS):
                said["token"] = token + row
            yield _row(
                {
                    "event_id": f"{partition}.{frame.offset}.{number}.{row}",
                    "partition": partition,
                    "offset": frame.offset,
                    "at": frame.now,
                    "owner": frame.owner,
                    "epoch": frame.epoch,
                    "event": type(event).__name__,
                },
                said,
            )


def _pieces(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Rows in their order, so many at a time as memory is meant to hold: a payload can be large."""
    piece, chars = list[dict[str, Any]](), 0
    for row in rows:
        piece.append(row)
        chars += len(row["body"])
        if len(piece) >= _ROWS or chars >= _BODY_CHARS:
            yield piece
            piece, chars = [], 0
    if piece:
        yield piece


def _said(event: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """(row, what it says by the names of fields)."""
    if is_columns(event):
        for row, tenant in enumerate(event.tenant):
            if event.tenants[tenant]:  # else it is a blank
                yield row, _of_columns(event, row)
    elif isinstance(event, facts.ExecutionsPlaced):
        for row, at in enumerate(event.scheduled_at):
            own = {name: getattr(event, name)[row] for name in ("scheduled_at", "due_at", "place_at")}
            yield row, msgspec.structs.asdict(event) | own | {"execution": execution_id(event.job_id, at)}
    elif isinstance(event, facts.JobEdited):
        yield 0, msgspec.structs.asdict(event.job) | {"version": event.version, "reason": event.reason}
    elif not is_blank(event):
        yield 0, {"tenant": tenant_of(event) or None} | msgspec.structs.asdict(event)


def _of_columns(event: Any, row: int) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, values in msgspec.structs.asdict(event).items():
        if name in DICTIONARIES.values() or name in _PERMITS:
            continue
        if not isinstance(values, list):
            said[name] = values
        elif values and name in DICTIONARIES:
            said[name] = getattr(event, DICTIONARIES[name])[values[row]]
        elif values:
            said[_SINGULAR.get(name, name)] = values[row]
    if isinstance(event, facts.ExecutionsGranted):
        permits = zip(event.permit_row, event.permit_limit, event.permit_ids, strict=True)
        said["permits"] = [
            {"limit": event.limits[limit], "permit": permit} for of, limit, permit in permits if of == row
        ]
    return said


def _row(place: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """What has a column in it, the rest as JSON."""
    found, body = dict(place), {}
    for name, value in said.items():
        if name not in _COLUMNS or name in place:
            body[name] = _plain(name, value)
        elif (name not in _MOMENTS and name != "token") or value >= 0:
            found[name] = value
    if found.get("execution") and not found.get("job_id"):
        found["job_id"] = job_of(found["execution"])
    found["body"] = json.dumps(body, ensure_ascii=False)
    return found


def _plain(name: str, value: Any) -> Any:
    """As JSON has it; payloads and results as text."""
    if isinstance(value, bytes):
        return value.hex() if name in _DIGESTS else value.decode(errors="replace")
    return msgspec.to_builtins(value)
