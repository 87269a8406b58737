"""The first fields of a report: who pulses, and how. What it reports is not read, which is most of it where much runs."""

from __future__ import annotations

import io
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from fastavro import parse_schema, schemaless_reader

from minutebook.domain.records import FullPulse, Pulse
from minutebook.wire import schemas
from minutebook.wire.codec import NAMESPACE

_LAST: Final = "full"
"""Avro has no marks between fields, so the first ones can be read by a schema that ends with this one."""


class ReportHead(NamedTuple):
    """A report without its results. `session` is `<worker id>.<n>`."""

    session: str
    pulse: Pulse | None
    full: FullPulse | None


def read_head(data: bytes | None) -> ReportHead | None:
    """The head of the report in `data`; None for anything else, such as a tick, and for what is damaged."""
    schema = None if data is None else _heads().get(data[: schemas.HEADER_BYTES])
    if data is None or schema is None:
        return None
    source = io.BytesIO(data)
    source.seek(schemas.HEADER_BYTES)
    try:
        datum: Any = schemaless_reader(source, schema, None)
        return ReportHead(
            datum["session"],
            None if datum["pulse"] is None else msgspec.convert(datum["pulse"], Pulse),
            None if datum["full"] is None else msgspec.convert(datum["full"], FullPulse),
        )
    except Exception:  # fastavro raises many kinds on damaged bytes; each means the same here
        return None


@cache
def _heads() -> dict[bytes, Any]:
    """Schemas of heads, by the ten bytes that the records start with."""
    return {
        header: parse_schema(_cut(schema.parsed["fields"], schema.version))
        for header, schema in schemas.by_header().items()
        if schema.name == "Report"
    }


def _cut(fields: list[Any], version: int) -> dict[str, Any]:
    names = [field["name"] for field in fields]
    kept = fields[: names.index(_LAST) + 1]
    return {"type": "record", "name": f"{NAMESPACE}.ReportHead{version}", "fields": kept}
