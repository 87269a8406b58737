"""Records on the wire: golden bytes decode for ever, structs and schemas say the same, damage is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import parse as parse_avro
from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.domain import commands, events, records
from minutebook.errors import BrokenFrameError, DecodeError
from minutebook.wire import codec, frames, schemas
from minutebook.wire.codec import CommandBatch, decode, encode
from minutebook.wire.frames import Frame, decode_frame, encode_frame, placed
from minutebook.wire.schemas import Schema
from tests.unit import avro_samples
from tests.unit.avro_samples import GOLDEN, collect, strategy, written

NEWEST = sorted(schemas.newest().values())
GOLDEN_FILES = sorted(GOLDEN.glob("*.bin"))
STRUCTS: dict[str, Any] = {
    kind.__name__: kind
    for module in (commands, events, records, frames, codec)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
}


def again(data: bytes) -> bytes:
    """Decoded to structs and encoded from them."""
    is_frame = data[:10] == schemas.newest()["Frame"].header
    return encode_frame(decode_frame(data)) if is_frame else encode(decode(data))


# -- golden records


def test_every_schema_has_golden_records() -> None:
    wanted = {name for schema in schemas.by_header().values() for name in avro_samples.samples(schema)}
    assert {path.stem for path in GOLDEN_FILES} >= wanted


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=lambda path: path.stem)
def test_a_golden_record_decodes_to_what_is_written_beside_it(path: Path) -> None:
    _, datum = codec.read_datum(path.read_bytes())
    assert json.loads(avro_samples.legible(datum)) == json.loads(path.with_suffix(".json").read_text())


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=lambda path: path.stem)
def test_a_golden_record_survives_its_structs(path: Path) -> None:
    """Every field and every branch reaches the structs and comes back; what was written by an older schema is
    only decoded.
    """
    data = path.read_bytes()
    if data[:10] in {schema.header for schema in NEWEST}:
        assert again(data) == data
    elif path.stem.startswith("frame."):
        decode_frame(data)
    else:
        decode(data)


def newest_golden(name: str, stem: str) -> bytes:
    return (GOLDEN / f"{stem}.v{schemas.newest()[name].version}.bin").read_bytes()


def test_golden_records_name_every_event_and_command() -> None:
    _, frame = codec.read_datum(newest_golden("Frame", "frame"))
    assert {name.rpartition(".")[2] for name, _ in frame["events"]} == {
        kind.__name__ for kind in get_args(events.Event)
    }
    _, batch = codec.read_datum(newest_golden("CommandBatch", "command-batch"))
    assert {name.rpartition(".")[2] for name, _ in batch["commands"]} == {
        kind.__name__ for kind in get_args(commands.Command)
    }


# -- structs and schemas


def named_records() -> list[Any]:
    found: dict[str, Any] = {}
    for schema in NEWEST:
        found |= {name: part for name, part in collect(schema.parsed, {}).items() if part["type"] == "record"}
    return [found[name] for name in sorted(found)]


@pytest.mark.parametrize("record", named_records(), ids=lambda record: record["name"])
def test_a_schema_and_its_struct_have_the_same_fields(record: Any) -> None:
    struct = STRUCTS[record["name"].rpartition(".")[2]]
    assert [field["name"] for field in record["fields"]] == list(struct.__struct_fields__)


@pytest.mark.parametrize("record", named_records(), ids=lambda record: record["name"])
def test_a_schema_and_its_struct_have_the_same_defaults(record: Any) -> None:
    struct = STRUCTS[record["name"].rpartition(".")[2]]
    if struct.__name__ in {kind.__name__ for kind in get_args(events.Event)} | {"Frame"}:
        return  # written by owners alone, always in full
    by_struct = {}
    for field in msgspec.structs.fields(struct):
        if field.default is not msgspec.NODEFAULT:
            by_struct[field.encode_name] = field.default
        elif field.default_factory is not msgspec.NODEFAULT:
            by_struct[field.encode_name] = field.default_factory()
    by_schema = {
        field["name"]: field["default"].encode() if field["type"] == "bytes" else field["default"]
        for field in record["fields"]
        if "default" in field
    }
    assert by_struct == by_schema


def test_every_struct_on_the_wire_has_a_schema() -> None:
    known = {record["name"].rpartition(".")[2] for record in named_records()}
    assert {kind.__name__ for kind in get_args(events.Event)} <= known
    assert {kind.__name__ for kind in get_args(codec.Record)} <= known


@pytest.mark.parametrize("schema", NEWEST, ids=lambda schema: schema.name)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_datum_survives_its_structs(schema: Schema, data: st.DataObject) -> None:
    """What the schema allows, the structs hold; what the structs hold, the schema writes."""
    datum = data.draw(strategy(schema.parsed, collect(schema.parsed, {})))
    record = written(schema, datum)
    assert again(record) == record


UNKNOWN = {
    "Frame": ("reader union lacking writer type: RECORD", "reader enum is missing symbols"),
    "CommandBatch": ("reader union lacking writer type: RECORD",),
}


@pytest.mark.parametrize("name", sorted(schemas.newest()))
def test_versions_of_a_schema_read_one_another(name: str) -> None:
    """But for what an older reader does not know and must not pass over: types of events, commands and mail, causes."""
    texts = [
        path.read_text()
        for path in sorted(schemas.folder().glob("*.avsc"))
        if json.loads(path.read_text())["name"] == name
    ]
    newest = parse_avro(texts[-1])
    for text in texts:
        found = ReaderWriterCompatibilityChecker().get_compatibility(newest, parse_avro(text))
        assert found.compatibility is SchemaCompatibilityType.compatible, found.messages
        found = ReaderWriterCompatibilityChecker().get_compatibility(parse_avro(text), newest)
        may_lack = (
            {"reader union lacking writer type: RECORD"}
            if name in ("Frame", "CommandBatch", "Mail")
            else set()
        )
        assert set(found.messages) <= may_lack


def test_fingerprints_never_change() -> None:
    """A released file is never edited: this list only grows."""
    released = dict(line.split() for line in (GOLDEN / "fingerprints.txt").read_text().splitlines())
    assert {
        f"{schema.name}.v{schema.version}": schema.header[2:].hex() for schema in schemas.by_header().values()
    } == released


# -- damage


def test_null_is_no_record() -> None:
    for read in (decode, decode_frame):
        with pytest.raises(DecodeError, match="null"):
            read(None)


def test_an_unknown_fingerprint_is_named_as_such() -> None:
    with pytest.raises(DecodeError, match="unknown schema"):
        decode(b"\xc3\x01" + bytes(8) + b"x")
    with pytest.raises(DecodeError, match="not in single-object encoding"):
        decode(b'{"json": true}')


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=lambda path: path.stem)
def test_a_cut_record_is_an_error_at_every_length(path: Path) -> None:
    data = path.read_bytes()
    for length in range(0, len(data), max(1, len(data) // 60)):
        with pytest.raises(DecodeError):
            again(data[:length])


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=lambda path: path.stem)
def test_bytes_after_the_end_are_an_error(path: Path) -> None:
    with pytest.raises(DecodeError, match="after the end"):
        again(path.read_bytes() + b"x")


@given(data=st.binary(max_size=60))
@settings(max_examples=200)
def test_no_bytes_make_decode_fail_in_another_way(data: bytes) -> None:
    for schema in (*NEWEST, None):
        try:
            decode((schema.header if schema else b"") + data)
        except DecodeError:
            pass


def test_a_frame_is_no_input() -> None:
    data = (GOLDEN / "frame.v1.bin").read_bytes()
    with pytest.raises(DecodeError, match="does not belong here"):
        decode(data)
    with pytest.raises(DecodeError, match="on the event log"):
        decode_frame((GOLDEN / "tick.v1.bin").read_bytes())


def test_a_batch_is_bounded_in_number_and_size() -> None:
    small = commands.CancelJob(tenant="t", job_id="j", command_id="c", issued_at=0)
    assert decode(encode(CommandBatch([small] * 500))) == CommandBatch([small] * 500)
    with pytest.raises(DecodeError, match="501 commands"):
        decode(encode(CommandBatch([small] * 501)))
    large = commands.CancelJob(tenant="t", job_id="j", command_id="c", issued_at=0, reason="x" * 600_000)
    with pytest.raises(DecodeError, match="1048576"):
        decode(encode(CommandBatch([large, large])))


# -- rows of frames


def test_tokens_number_the_rows_of_a_frame() -> None:
    queue = events.QueueCopied("q", 1, False, [])
    lost = events.AttemptsLost(
        ["t"], "lease_over", [0, 0], ["a:1", "b:1"], [5, 6], ["s"], [0, 0], [True, True]
    )
    frame = Frame(3, bytes(32), "o", 1, 0, 1, "", b"", [], [], -1, [queue, lost, queue])
    assert [token for _, token in placed(frame)] == [3 << 16, (3 << 16) + 1, (3 << 16) + 3]


def test_columns_of_unequal_length_break_a_frame() -> None:
    lost = events.AttemptsLost(["t"], "lease_over", [0], ["a:1", "b:1"], [5, 6], ["s"], [0, 0], [True, True])
    frame = Frame(3, bytes(32), "o", 1, 0, 1, "", b"", [], [], -1, [lost])
    with pytest.raises(BrokenFrameError, match="unequal"):
        list(placed(frame))
