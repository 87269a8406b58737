"""Records to bytes and back, in Avro single-object encoding.

fastavro's writer does not check ranges and takes the first union branch that fits a bare dict, so unions of records
are always written as (name, dict). Its reader ignores trailing bytes, so the end is checked here.
"""

from __future__ import annotations

import io
from typing import Any, Final

import msgspec
from fastavro import schemaless_writer

from minutebook.domain import commands, records
from minutebook.domain.operation import OperationCount, OperationFact
from minutebook.errors import DecodeError
from minutebook.wire import columns, schemas
from minutebook.wire.alike import is_plain
from minutebook.wire.plain import read_plain

NAMESPACE = "minutebook"
BATCH_MAX = 500
BATCH_BYTES_MAX = 1 << 20
WIDE_ROWS: Final = 32
WIDE_BYTES: Final = 1_024
"""From here on it pays to look at the columns of a record one by one."""


class CommandBatch(msgspec.Struct, frozen=True, gc=False):
    """Up to 500 commands of one partition in one record of at most 1 MiB."""

    commands: list[commands.Command]


Record = (
    commands.Command
    | CommandBatch
    | records.Report
    | records.Tick
    | records.Mail
    | records.Inbox
    | records.DueRecord
    | records.DeadLetter
    | records.Alert
)

_COMMANDS: dict[str, Any] = {kind.__name__: kind for kind in commands.Command.__args__}
_BODIES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        records.QueueFact,
        records.ForwardedCommand,
        records.LimitFact,
        records.PermitDemand,
        records.PermitGrant,
        records.PermitReturn,
        OperationFact,
        OperationCount,
        records.CalendarFact,
    )
}
_PLAIN: dict[str, Any] = _COMMANDS | {
    kind.__name__: kind
    for kind in (
        records.Report,
        records.Tick,
        records.Inbox,
        records.DueRecord,
        records.DeadLetter,
        records.Alert,
    )
}


_COLUMNS: dict[str, dict[str, Any]] = {
    "Report": {"succeeded": records.Succeeded, "handed_back": records.HandedBack},
    "Inbox": {"granted": records.Granted},
}
"""Fields that are null or a record of columns. Avro has typed their rows already: they are passed on as they are."""
_OPTIONAL: dict[str, tuple[str, ...]] = {
    "Report": ("pulse", "full", "succeeded", "handed_back"),
    "SubmitJob": ("policy", "timing"),
    "Inbox": ("granted",),
}
"""Fields that are null or a record. Named, the writer need not try the whole of it against each branch: half the time."""


def builtins(record: msgspec.Struct) -> Any:
    """`record` as dicts, lists and scalars, bytes kept as bytes."""
    return msgspec.to_builtins(record, builtin_types=(bytes,))


def named(record: msgspec.Struct) -> tuple[str, Any]:
    """`record` as a branch of a union of records."""
    return f"{NAMESPACE}.{type(record).__name__}", builtins(record)


def _datum(record: msgspec.Struct) -> Any:
    if isinstance(record, records.Mail):
        return {"sender": record.sender, "frame": record.frame, "row": record.row, "body": named(record.body)}
    datum = _shallow(record)
    for field in _OPTIONAL.get(type(record).__name__, ()):
        if datum[field] is not None:
            datum[field] = f"{NAMESPACE}.{type(getattr(record, field)).__name__}", datum[field]
    return datum


def _shallow(record: msgspec.Struct) -> dict[str, Any]:
    """`builtins` of a record, without a copy of its columns."""
    columns = _COLUMNS.get(type(record).__name__, {})
    if not columns:
        return dict(builtins(record))
    datum = msgspec.structs.asdict(record)
    for name, value in datum.items():
        if value is not None and name in columns:
            datum[name] = msgspec.structs.asdict(value)
        else:
            datum[name] = msgspec.to_builtins(value, builtin_types=(bytes,))
    return datum


def encode(record: Record) -> bytes:
    """`record` with its ten-byte header, written by the newest schema of its name."""
    if isinstance(record, CommandBatch):
        commands = [
            (f"{NAMESPACE}.SubmitJob", command) if is_plain(command) else named(command)
            for command in record.commands
        ]
        return write_datum("CommandBatch", {"commands": commands}, is_wide=True)
    return write_datum(type(record).__name__, _datum(record), is_wide=_rows(record) >= WIDE_ROWS)


def _rows(record: Record) -> int:
    """How long the columns of a record are."""
    match record:
        case records.Inbox(granted=records.Granted(rows=column)):
            return len(column)
        case records.Report(succeeded=records.Succeeded(tokens=column)):
            return len(column)
        case _:
            return 0


def write_datum(name: str, datum: Any, *, is_wide: bool) -> bytes:
    """A datum with its ten-byte header, by the newest schema of that name. `is_wide`: by the parts that it has."""
    schema = schemas.newest()[name]
    out = io.BytesIO()
    out.write(schema.header)
    if is_wide:
        columns.layouts()[schema.header].write(out, datum)
    else:
        schemaless_writer(out, schema.parsed, datum)
    return out.getvalue()


def read_datum(data: bytes) -> tuple[str, Any]:
    """Name of the record and its datum as builtins. Raises DecodeError with a reason fit for people."""
    schema = schemas.by_header().get(data[: schemas.HEADER_BYTES])
    if schema is None:
        raise DecodeError(
            "unknown schema fingerprint" if data[:2] == b"\xc3\x01" else "not in single-object encoding"
        )
    source = io.BytesIO(data)
    source.seek(schemas.HEADER_BYTES)
    try:
        if len(data) >= WIDE_BYTES:
            datum = columns.layouts()[schema.header].read(data, source)
        else:
            datum = read_plain(source, schema.parsed)
    except Exception as error:  # fastavro raises many kinds on damaged bytes; each means the same here
        raise DecodeError(f"damaged {schema.name}: {type(error).__name__}") from error
    if source.tell() != len(data):
        raise DecodeError(f"{len(data) - source.tell()} bytes after the end of a {schema.name}")
    return schema.name, datum


def _branch(kinds: dict[str, Any], branch: tuple[str, Any]) -> Any:
    return msgspec.convert(branch[1], kinds[branch[0].rpartition(".")[2]])


def decode(data: bytes | None) -> Record:
    """The record in `data`. Raises DecodeError for null, damaged, unknown or oversized data."""
    if data is None:
        raise DecodeError("null value")
    name, datum = read_datum(data)
    try:
        if name == "CommandBatch":
            return _batch(data, datum)
        if name == "Mail":
            return records.Mail(
                datum["sender"], datum["frame"], datum["row"], _branch(_BODIES, datum["body"])
            )
        for field, kind in _COLUMNS.get(name, {}).items():
            if datum[field] is not None:
                datum[field] = kind(**datum[field])
        record: Record = msgspec.convert(datum, _PLAIN[name])
    except (msgspec.ValidationError, KeyError, TypeError) as error:
        raise DecodeError(f"{name} does not belong here: {error}") from error
    return record


def _batch(data: bytes, datum: Any) -> CommandBatch:
    if len(data) > BATCH_BYTES_MAX:
        raise DecodeError(f"a CommandBatch of {len(data)} bytes; the limit is {BATCH_BYTES_MAX}")
    if len(datum["commands"]) > BATCH_MAX:
        raise DecodeError(f"a CommandBatch of {len(datum['commands'])} commands; the limit is {BATCH_MAX}")
    return CommandBatch([_branch(_COMMANDS, branch) for branch in datum["commands"]])
