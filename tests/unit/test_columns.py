"""Records with columns are written and read by parts, and nobody can tell from the bytes."""

from __future__ import annotations

import io
from typing import Any

import pytest
from fastavro import schemaless_reader, schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.domain.events import AttemptsSucceeded, SessionEnded
from minutebook.domain.records import Pulse, Report, Succeeded
from minutebook.errors import DecodeError
from minutebook.wire import codec, schemas
from minutebook.wire.columns import Blobs, Numbers, layouts
from minutebook.wire.frames import Frame, decode_frame, encode_frame
from minutebook.wire.numbers import as_varint, varint
from minutebook.wire.plain import Node, read_plain
from minutebook.wire.schemas import Schema
from tests.unit.avro_samples import GOLDEN, collect, strategy, written

SCHEMAS = sorted(schemas.by_header().values())
NUMBERS = {"type": "array", "items": "long"}
SUCCEEDED = f"{codec.NAMESPACE}.Succeeded"
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)


def by_fastavro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, schema, value)
    return out.getvalue()


def by_parts(layout: Node, value: Any) -> bytes:
    out = io.BytesIO()
    layout.write(out, value)
    return out.getvalue()


def read_by_parts(layout: Node, data: bytes) -> tuple[Any, bytes]:
    """The value, and what was left."""
    source = io.BytesIO(data)
    value = layout.read(data, source)
    return value, source.read()


@given(LONGS)
def test_a_number_is_written_and_read(number: int) -> None:
    assert as_varint(number) == by_fastavro("long", number)
    assert varint(as_varint(number), 0) == (number, len(as_varint(number)))


@given(LONGS, st.integers(0, 100), st.lists(LONGS, max_size=3))
def test_a_column_of_numbers_is_as_fastavro_has_it(number: int, count: int, more: list[int]) -> None:
    column, layout = [number] * count + more, Numbers(NUMBERS, {})
    data = by_parts(layout, column)
    assert data == by_fastavro(NUMBERS, column)
    assert read_by_parts(layout, data + b"more") == (column, b"more")


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_a_column_of_bytes_is_as_fastavro_has_it(column: list[bytes]) -> None:
    schema = {"type": "array", "items": "bytes"}
    assert by_parts(Blobs(schema, {}), column) == by_fastavro(schema, column)


@pytest.mark.parametrize(
    "blocks",
    [
        as_varint(2) + as_varint(7) * 2 + as_varint(1) + as_varint(8) + b"\0",
        as_varint(-2) + as_varint(2) + as_varint(7) * 2 + b"\0",
    ],
    ids=["two blocks", "with its size"],
)
def test_a_column_in_blocks_is_read_whole(blocks: bytes) -> None:
    """No encoder of ours writes so, but Avro allows it."""
    expected = schemaless_reader(io.BytesIO(blocks), NUMBERS, None)
    assert read_by_parts(Numbers(NUMBERS, {}), blocks) == (expected, b"")


@pytest.mark.parametrize("count", [1 << 40, 1_000, 3])
def test_a_column_that_claims_to_be_longer_than_it_is_makes_nothing(count: int) -> None:
    with pytest.raises(Exception):  # noqa: B017  # fastavro raises many kinds
        read_by_parts(Numbers(NUMBERS, {}), as_varint(count) + as_varint(7) * 2)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: f"{schema.name}.v{schema.version}")
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_record_by_parts_is_as_fastavro_has_it(schema: Schema, data: st.DataObject) -> None:
    datum = data.draw(strategy(schema.parsed, collect(schema.parsed, {})))
    whole, layout = written(schema, datum), layouts()[schema.header]
    body = whole[schemas.HEADER_BYTES :]
    assert by_parts(layout, datum) == body
    expected = schemaless_reader(
        io.BytesIO(body), schema.parsed, None, return_record_name=True, return_record_name_override=True
    )
    assert read_by_parts(layout, body) == (expected, b"")


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.bin")), ids=lambda path: path.stem)
def test_a_golden_record_is_the_same_by_parts(path: Any) -> None:
    whole = path.read_bytes()
    value, left = read_by_parts(layouts()[whole[: schemas.HEADER_BYTES]], whole[schemas.HEADER_BYTES :])
    assert (value, left) == (codec.read_datum(whole)[1], b"")


def wide_report(rows: int) -> Report:
    names = [f"job-{row}:1750000000000" for row in range(rows)]
    succeeded = Succeeded(["acme"], [0] * rows, names, list(range(rows)), [5] * rows, [0] * rows)
    return Report("w.0", 7, Pulse(250, 9), None, succeeded)


def wide_frame(rows: int) -> Frame:
    """Its columns come first, then what has none."""
    parts = wide_report(rows).succeeded
    assert parts is not None
    ended = AttemptsSucceeded(
        parts.tenants, parts.tenant, parts.executions, parts.tokens, parts.start_delay_ms, parts.run_ms, []
    )
    ends = [ended, SessionEnded("w.0", "lease_over"), ended]
    return Frame(7, bytes(32), "o", 1, 9, 1, "x", b"", [], [], -1, ends)


@pytest.mark.parametrize("rows", [codec.WIDE_ROWS - 1, codec.WIDE_ROWS, 500])
def test_a_wide_record_is_as_fastavro_has_it(rows: int) -> None:
    report, frame = wide_report(rows), wide_frame(rows)
    for data in (codec.encode(report), encode_frame(frame)):
        name, datum = codec.read_datum(data)
        assert data == written(schemas.newest()[name], named(datum))
    assert codec.decode(codec.encode(report)) == report
    assert decode_frame(encode_frame(frame)) == frame


def named(datum: Any) -> Any:
    """A datum as fastavro wants it for writing."""
    return datum if datum.get("succeeded") is None else datum | {"succeeded": (SUCCEEDED, datum["succeeded"])}


@pytest.mark.parametrize("data", [codec.encode(wide_report(100)), encode_frame(wide_frame(100))])
def test_a_wide_record_that_is_damaged_is_an_error(data: bytes) -> None:
    for end in range(schemas.HEADER_BYTES, len(data)):
        with pytest.raises(DecodeError):
            codec.read_datum(data[:end])
    with pytest.raises(DecodeError):
        codec.read_datum(data + b"\0")


@given(st.integers(schemas.HEADER_BYTES, 5_000), st.binary(min_size=1, max_size=12))
@settings(deadline=None)
def test_a_wide_record_with_other_bytes_is_read_as_fastavro_reads_it(at: int, other: bytes) -> None:
    good = encode_frame(wide_frame(100))
    at %= len(good)
    data = good[:at] + other + good[at + len(other) :]
    schema = schemas.newest()["Frame"]
    source = io.BytesIO(data)
    source.seek(schemas.HEADER_BYTES)
    try:
        expected = read_plain(source, schema.parsed)
    except Exception:  # fastavro raises many kinds
        expected = None
    if data[: schemas.HEADER_BYTES] != schema.header or source.tell() != len(data):
        expected = None
    try:
        _, found = codec.read_datum(data)
    except DecodeError:
        found = None
    assert found == expected
